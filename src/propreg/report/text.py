"""Text and numbers as the page shows them."""

import re

from propreg.study.tables.rows import decimals

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
# Control characters and lone surrogates, which HTML, XML and UTF-8 cannot hold.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def clean(text: str) -> str:
    r"""Replace the characters that HTML and XML cannot hold.

    Example:
        >>> clean("a\x00b\ud800") == "a\ufffdb\ufffd"
        True
    """
    return _UNPRINTABLE.sub("\ufffd", text)


def clip(text: str, length: int = 60) -> str:
    """The start of a name that is too long to read.

    Example:
        >>> clip("a long name", 7)
        'a long…'
    """
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


def number(value: float | None, places: int = 2, sign: bool = False) -> str:
    """A number for people, with a minus that is as wide as a plus.

    Example:
        >>> number(-1.5), number(0.25, 1, sign=True), number(None)
        ('−1.50', '+0.2', '')
    """
    return decimals(value, places, sign).replace("-", "−")


def strength(value: float) -> str:
    """A strength with as few digits as identify it.

    Example:
        >>> strength(0.45), strength(1e-05), strength(3e-07)
        ('0.45', '10⁻⁵', '3 × 10⁻⁷')
    """
    if value == 0 or abs(value) >= 0.001:
        return f"{value:g}"
    digits, power = f"{value:.12e}".split("e")
    first = "" if float(digits) == 1 else f"{float(digits):g} × "
    return f"{first}10{str(int(power)).translate(_RAISED)}"
