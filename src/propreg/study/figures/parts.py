"""The parts of a figure, as plain data: panels with series and levels, listings of numbers, and the caption.

:mod:`.drawing.sheet` draws it with Matplotlib, a page can draw it from :meth:`Figure.as_dict`. Coordinates are rounded
to nine digits, so that the last bit of a machine's arithmetic does not show.
"""

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from propreg.study.tables.text import Listing

Value = float | None
"""A number, or None where runs are missing: lines break there."""

Kind = Literal["line", "points", "cloud"]


@dataclass(frozen=True)
class Series:
    """One quantity that is followed through a panel.

    Args:
        key: Its name, the same in all figures, for colors: a method's (``"preg-reference"``), a model's (``"gcn"``), a
            class (``"class-0"``), with ``"paper:"`` in front for the paper's own numbers.
        label: Its name in the legend.
        x, y: The points, one for each value of what is varied; None where runs are missing.
        low, high: The 95 % interval of ``y``, as in :mod:`propreg.statistics`; empty if there is none.
        x_low, x_high: That of ``x``, if ``x`` is measured too.
        runs: Recorded runs behind each point, of ``of`` in the experiment.
        notes: A label for each point, for example ``"μ = 0.3"``; empty if ``x`` is enough.
        kind: ``"line"``: mean with a band; ``"points"``: means with bars, not connected; ``"cloud"``: bare dots.
        missing: How many runs are recorded; empty if all are.
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
    """A labeled reference line across a panel, ours or the paper's.

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
        x_label, y_label: The labels of the axes.
        series, levels: What is drawn.
        x_scale: ``"linear"`` or ``"log"``.
        x_ticks: Where the axis is labeled; empty for an even choice.
        y_names: Names of the rows 0, 1, 2 … of a y axis without a scale, from top to bottom.
        x_view, y_view: The part of the axis that is shown, None for all. Values below ``y_view`` are drawn at the lower
            edge, with a mark for being outside.
        notes: Short lines beside its heading, or under the picture if they are long.
        table: Rows of text in place of axes, the first of them the head; a cell's second line is small print.
        empty: Why the panel is empty; empty if it is not.
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
        marks: How to read lines, bands and dots, and how many runs a mean is of; printed under the picture.
        claim: What the paper says of it, in our words; empty if it says nothing.
        finding: What the project's complete record shows, written by hand; a test holds it against the record.
        missing: What is not recorded, a line each; empty if nothing is missing.
        panels: In reading order.
        columns: How many panels are side by side.
        share_y: Whether the panels of a row show the same part of the y axis.
        listings: The numbers behind the claim.
    """

    name: str
    title: str
    about: str
    marks: str
    claim: str
    finding: str
    missing: tuple[str, ...]
    panels: tuple[Panel, ...] = field(default=())
    columns: int = 1
    share_y: bool = False
    listings: tuple[Listing, ...] = ()

    @property
    def caption(self) -> str:
        """All the text, as one paragraph."""
        claims = [("The paper: ", self.claim), ("The project's record: ", self.finding)]
        missing = f"Missing: {'; '.join(self.missing)}." if self.missing else ""
        return " ".join(text for text in (self.about, self.marks, *(a + b for a, b in claims if b), missing) if text)

    def as_dict(self) -> dict[str, Any]:
        """Everything as JSON values, with the caption."""
        return asdict(self) | {"caption": self.caption}


def number(value: float | None) -> Value:
    """A coordinate: nine digits, no negative zero.

    Example:
        >>> number(2 / 3), number(1e-9), number(-0.0), number(None)
        (0.666666667, 1e-09, 0.0, None)
    """
    return None if value is None else float(f"{value:.9g}") + 0.0
