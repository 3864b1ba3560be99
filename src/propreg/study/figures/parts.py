"""What a figure is made of, as plain data: panels with series and levels, and words computed from the same numbers.

Nothing here draws. :mod:`propreg.study.figures.draw` makes pictures of it, and a page can draw it from :meth:`as_dict`.
Coordinates are rounded to nine digits, so that the last bit of a machine's arithmetic does not show.
"""

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Value = float | None
"""A number, or None where runs are missing: a line is broken there."""

Kind = Literal["line", "points", "cloud"]


@dataclass(frozen=True)
class Series:
    """One thing that is followed through a panel.

    Args:
        key: What it is, the same in all figures, for colours: a method's name (``"preg-reference"``), a model's
            (``"gcn"``), a class (``"class-0"``), with ``"paper:"`` in front for the paper's own numbers.
        label: The same in words, for the legend.
        x, y: The places, one for each value of what is varied. A value is there only where all its runs are.
        low, high: The 95 % interval of ``y``, as in :mod:`propreg.statistics`; empty where there is none.
        x_low, x_high: That of ``x``, where ``x`` is measured too.
        runs: Recorded runs behind each place, of ``of`` that the experiment asks for.
        notes: A word for each place, for example ``"μ = 0.3"``; empty where ``x`` says it all.
        kind: ``"line"``: mean with a band; ``"points"``: means with bars, not connected; ``"cloud"``: bare dots.
        missing: What is not recorded, in words; empty where all is there.
    """

    key: str
    label: str
    x: tuple[Value, ...]
    y: tuple[Value, ...]
    low: tuple[Value, ...] = ()
    high: tuple[Value, ...] = ()
    x_low: tuple[Value, ...] = ()
    x_high: tuple[Value, ...] = ()
    runs: tuple[int, ...] = ()
    of: int = 0
    notes: tuple[str, ...] = ()
    kind: Kind = "line"
    missing: str = ""

    @property
    def empty(self) -> bool:
        """Whether there is nothing to draw."""
        return not any(a is not None and b is not None for a, b in zip(self.x, self.y, strict=True))


@dataclass(frozen=True)
class Level:
    """A reference line across a panel: a value with the words for it, ours or the paper's.

    ``axis`` is the axis that the value is read on: ``"y"`` is a horizontal line, ``"x"`` a vertical one.
    """

    key: str
    label: str
    value: float
    low: Value = None
    high: Value = None
    axis: Literal["x", "y"] = "y"
    source: Literal["ours", "paper"] = "ours"


@dataclass(frozen=True)
class Panel:
    """One pair of axes.

    Args:
        title: Its heading.
        x_label, y_label: What the axes show.
        series, levels: What is drawn.
        x_scale: ``"linear"`` or ``"log"``.
        x_ticks: Where the axis is labelled, empty where any even choice will do.
        y_names: Names of the places 0, 1, 2 … on the y axis, from top to bottom, where it has no scale.
        x_view, y_view: The part of the axis that is shown, None for all. Values below ``y_view`` belong to the lower
            edge, with a mark that says that they lie outside.
        joined: Whether the two points of a row belong together, before and after.
        notes: Short lines beside its heading, or under the picture where they are long.
        table: Rows of words in place of axes, the first of them the head; a place's second line is small print.
        empty: In words, why there is nothing to see; empty where there is something.
    """

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...] = ()
    levels: tuple[Level, ...] = ()
    x_scale: Literal["linear", "log"] = "linear"
    x_ticks: tuple[float, ...] = ()
    y_names: tuple[str, ...] = ()
    x_view: tuple[float, float] | None = None
    y_view: tuple[float, float] | None = None
    joined: bool = False
    notes: tuple[str, ...] = ()
    table: tuple[tuple[str, ...], ...] = ()
    empty: str = ""


@dataclass(frozen=True)
class Figure:
    """A figure and its caption.

    Args:
        name: As the command knows it.
        title: Its heading.
        about: What is drawn.
        marks: How to read lines, bands and dots, and how many runs a mean is of; stands under the picture.
        claim: What the paper says of it, in our words; empty where it says nothing.
        found: What our numbers say of that, sentence by sentence, computed from them.
        missing: What is not recorded, a line each; empty where all is there.
        panels: In reading order.
        columns: How many panels stand side by side.
        share_y: Whether the panels of a row show the same part of the y axis.
    """

    name: str
    title: str
    about: str
    marks: str
    claim: str
    found: tuple[str, ...]
    missing: tuple[str, ...]
    panels: tuple[Panel, ...] = field(default=())
    columns: int = 1
    share_y: bool = False

    @property
    def caption(self) -> str:
        """All the words, as one paragraph."""
        said = [f"The paper: {self.claim}"] if self.claim else []
        lacking = [f"Missing: {'; '.join(self.missing)}."] if self.missing else []
        return " ".join(text for text in (self.about, self.marks, *said, *self.found, *lacking) if text)

    def as_dict(self) -> dict[str, Any]:
        """Everything, as what JSON knows, with the caption."""
        return asdict(self) | {"caption": self.caption}


def number(value: float | None) -> Value:
    """A coordinate: nine digits, no negative zero.

    Example:
        >>> number(2 / 3), number(1e-9), number(-0.0), number(None)
        (0.666666667, 1e-09, 0.0, None)
    """
    return None if value is None else float(f"{value:.9g}") + 0.0
