"""A page as a program sees it: its elements, attributes, text and data."""

import json
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any


@dataclass
class Element:
    """A start tag with its attributes, and the text that follows it up to the next tag."""

    tag: str
    attributes: dict[str, str]
    text: str = ""


@dataclass
class Reading(HTMLParser):
    """All elements in order; ``text`` is what people see."""

    elements: list[Element] = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)
    inside: bool = False

    def __post_init__(self) -> None:
        HTMLParser.__init__(self)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep it."""
        self.inside = True
        self.elements.append(Element(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, _: str) -> None:
        """What follows belongs to no element that is looked at."""
        self.inside = False

    def handle_data(self, data: str) -> None:
        """Add text to the element before."""
        if self.inside:
            self.elements[-1].text += data
        if not self.inside or self.elements[-1].tag not in ("script", "style"):
            self.pieces.append(data)

    @property
    def text(self) -> str:
        """All text, with single spaces."""
        return " ".join("".join(self.pieces).split())

    def all(self, tag: str) -> list[Element]:
        """The elements of a kind."""
        return [element for element in self.elements if element.tag == tag]

    def data(self, name: str) -> Any:
        """The JSON of a script element."""
        (found,) = [each for each in self.all("script") if each.attributes.get("id") == name]
        return json.loads(found.text)


def read(page: str) -> Reading:
    """Parse a page."""
    reading = Reading()
    reading.feed(page)
    reading.close()
    return reading
