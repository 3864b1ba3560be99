"""What datasets, models and methods are called on the page; a name that is not known is shown as it is."""

import re

from propreg.study.experiment import Line
from propreg.study.figures import words
from propreg.study.render import decimals

METHODS = {
    "plain": "plain",
    "preg": "P-reg",
    "laplacian": "Laplacian",
    "label_smoothing": "label smoothing",
    "confidence_penalty": "confidence penalty",
}
_MODELS = {"gat-8-heads": "GAT, 8 output heads, no input dropout", "mlp-16": "MLP, 16 units, no dropout"}
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
# Control characters and halves of surrogate pairs: no part of a name, and no part of HTML, XML or UTF-8.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def dataset_name(name: str) -> str:
    """A dataset as people write it.

    Example:
        >>> dataset_name("pubmed"), dataset_name("my <graph>")
        ('PubMed', 'my <graph>')
    """
    return words.dataset(name)


def model_name(name: str) -> str:
    """A model as people write it."""
    return _MODELS.get(name, words.model(name))


def method_name(name: str) -> str:
    """A family of methods as people write it."""
    return METHODS.get(name, name.replace("_", " "))


def line_name(line: Line) -> str:
    """The method of a line with its preset, for example ``P-reg (reference)``."""
    said = method_name(line.method.method)
    return f"{said} ({line.preset})" if line.preset else said


def clean(text: str) -> str:
    r"""Text from a file as text that HTML and XML can hold.

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
    """A strength with as few digits as tell it.

    Example:
        >>> strength(0.45), strength(1e-05), strength(3e-07)
        ('0.45', '10⁻⁵', '3 × 10⁻⁷')
    """
    if value == 0 or abs(value) >= 0.001:
        return f"{value:g}"
    digits, power = f"{value:.12e}".split("e")
    first = "" if float(digits) == 1 else f"{float(digits):g} × "
    return f"{first}10{str(int(power)).translate(_RAISED)}"
