"""The regions of a page that are computed: ``<!-- begin: name -->`` … ``<!-- end: name -->``."""

import re
from collections.abc import Callable

_REGION = re.compile(r"(<!-- begin: (?!output -->)(?P<name>.+?) -->\n)(?P<body>.*?)(<!-- end: (?P=name) -->)", re.S)
_MARK = re.compile(r"<!-- (?:begin|end): (?!output -->)(.+?) -->")


def filled(text: str, write: Callable[[str], str]) -> str:
    """The text with every region written anew.

    Args:
        text: The page.
        write: The Markdown of a region, given its name.

    Raises:
        ValueError: If a region has no beginning or no end.

    Example:
        >>> filled("<!-- begin: a -->\\nold\\n<!-- end: a -->\\n", str.upper).splitlines()
        ['<!-- begin: a -->', 'A', '<!-- end: a -->']
    """
    marks, whole = _MARK.findall(text), [found["name"] for found in _REGION.finditer(text)]
    if marks != [name for name in whole for _ in range(2)]:
        odd = next(name for name in marks if marks.count(name) != 2 * whole.count(name))
        raise ValueError(f"The region {odd!r} needs one begin mark and, below it, one end mark.")
    return _REGION.sub(lambda found: found[1] + write(found["name"]).strip("\n") + "\n" + found[4], text)


def prose(text: str) -> str:
    """A page without regions, code and output, on one line."""
    text = re.sub(r"^```.*?^```$", "", _REGION.sub("", text), flags=re.M | re.S)
    return " ".join(text.split())
