"""A figure's panels on one sheet, with heading, legend and missing runs. Matplotlib without its global state.

The layout is fixed by hand, in inches, so that nothing moves when a label is longer.
"""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from propreg.study.figures.drawing.axes import draw_panel, notes_below
from propreg.study.figures.drawing.style import BLACK, GRAY, look
from propreg.study.figures.parts import Figure, Panel

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Sheet

FOOT = 6.6
LETTER = 0.53  # of the size of the type: the mean width of a letter
PAPER = "the paper"
Box = tuple[float, float, float, float]
"""Left, bottom, width and height as fractions of the sheet."""


@dataclass(frozen=True)
class Frame:
    """The size of a panel's axes and the margins around and between them."""

    width: float
    height: float
    left: float = 0.55
    right: float = 0.15
    across: float = 0.42
    down: float = 0.62
    bottom: float = 0.45


FRAMES = {
    "fig-training-nodes": Frame(2.9, 2.1),
    "fig-mask": Frame(1.8, 1.45),
    "fig-strength": Frame(2.75, 1.95, right=1.65, across=1.3, down=0.74),
    "fig-depth": Frame(2.0, 1.6, right=0.6, across=1.12, down=0.75),
    "fig-tsne": Frame(2.6, 2.6, left=0.12, across=0.2, down=0.58, bottom=0.34),
    "table1": Frame(2.3, 4.7, left=0.8, across=0.22),
    "overview": Frame(5.1, 2.7, left=0.8, right=0.1),
    "accuracy-against-mu": Frame(3.9, 2.4, right=1.1),
    "paired-differences": Frame(3.9, 2.6, left=1.2),
    "training": Frame(2.4, 1.9, across=0.6),
    "classes": Frame(2.3, 2.6, left=1.2, across=1.3),
    "leaderboard": Frame(2.3, 1.8, left=2.2, across=0.22),
    "map": Frame(4.2, 3.2, left=0.12, bottom=0.1),
}
SMALL_MULTIPLES = Frame(1.5, 1.1, left=0.6, right=0.5, across=0.54, down=0.3)
HEAD, LEGEND_ROW, TITLE, FOOT_ROW, EDGE = 0.3, 0.19, 0.26, 0.125, 0.08
NAMES = 1.2  # for the names of rows that are not at the sheet's edge


@dataclass(frozen=True)
class Layout:
    """The sheet and the box of each panel."""

    width: float
    height: float
    boxes: tuple[Box, ...]
    legend_top: float

    def down(self, inches: float) -> float:
        """A distance from the top, as a height for Matplotlib."""
        return 1 - inches / self.height


def frame_of(figure: Figure) -> Frame:
    """The frame of a figure, or of small multiples if many panels are side by side."""
    return SMALL_MULTIPLES if figure.columns > 4 else FRAMES.get(figure.name, Frame(2.9, 2.1))


def sheet_width(figure: Figure) -> float:
    """Inches."""
    frame, columns = frame_of(figure), max(1, figure.columns)
    return frame.left + columns * frame.width + (columns - 1) * frame.across + frame.right


def lay_out(figure: Figure, legend_rows: int, foot_rows: int) -> Layout:
    """Place heading, legend, panels and foot from top to bottom."""
    frame, columns = frame_of(figure), max(1, figure.columns)
    rows = -(-len(figure.panels) // columns)
    top = EDGE + HEAD + legend_rows * LEGEND_ROW + (TITLE if any(panel.title for panel in figure.panels) else 0.06)
    panels = rows * frame.height + (rows - 1) * frame.down
    height = top + panels + frame.bottom + foot_rows * FOOT_ROW + EDGE
    width = sheet_width(figure)
    boxes = []
    for i, panel in enumerate(figure.panels):
        row, column = divmod(i, columns)
        left = frame.left + column * (frame.width + frame.across)
        above = top + row * (frame.height + frame.down)
        shared = columns == 1 or all(other.y_names == panel.y_names for other in figure.panels)
        inset = NAMES if panel.y_names and not shared else 0.0
        box = (left + inset, height - above - frame.height, frame.width - inset, frame.height)
        boxes.append((box[0] / width, box[1] / height, box[2] / width, box[3] / height))
    return Layout(width, height, tuple(boxes), EDGE + HEAD)


def draw(figure: Figure) -> "Sheet":
    """Draw a figure."""
    from matplotlib.figure import Figure as Sheet

    width = sheet_width(figure)
    foot, entries = _foot(figure, width), _legend(figure)
    columns = _legend_columns(list(entries), width)
    layout = lay_out(figure, -(-len(entries) // columns), len(foot))
    sheet = Sheet(figsize=(layout.width, layout.height))
    edge = EDGE / layout.width
    sheet.text(edge, layout.down(EDGE), figure.title, va="top", fontsize=10, fontweight="bold", color=BLACK)
    grid = [sheet.add_axes(box) for box in layout.boxes]
    for axes, panel in zip(grid, figure.panels, strict=True):
        draw_panel(axes, panel)
    _label_axes(grid, figure.panels, max(1, figure.columns))
    if figure.share_y:
        _share(grid, figure.panels, max(1, figure.columns))
    if entries:
        place = (edge, layout.down(layout.legend_top))
        sheet.legend(
            list(entries.values()), list(entries), loc="upper left", bbox_to_anchor=place, ncols=columns,
            borderpad=0, borderaxespad=0, labelspacing=0.35,
        )  # fmt: skip
    sheet.text(edge, EDGE / layout.height, "\n".join(foot), va="bottom", fontsize=FOOT, color=GRAY, linespacing=1.3)
    return sheet


def _foot(figure: Figure, width: float) -> list[str]:
    """How to read the marks, and the missing runs."""
    letters = int((width - 2 * EDGE) * 72 / (FOOT * LETTER))
    missing = f"Not recorded: {'; '.join(figure.missing)}." if figure.missing else ""
    notes = [
        f"{panel.title}: {'; '.join(panel.notes)}.".removeprefix(": ") for panel in figure.panels if notes_below(panel)
    ]
    return [line for text in (figure.marks, *notes, missing) for line in textwrap.wrap(text, letters)]


def _label_axes(grid: "Sequence[Axes]", panels: Sequence[Panel], columns: int) -> None:
    """A label that a whole row or column shares is drawn once, at its beginning or end."""
    same = len({panel.x_label for panel in panels if not panel.empty}) == 1
    for i, (axes, panel) in enumerate(zip(grid, panels, strict=True)):
        if panel.empty:
            continue
        begin = i - i % columns
        row = [other for other in panels[begin : begin + columns] if not other.empty]
        first = next(k for k in range(begin, i + 1) if not panels[k].empty)
        if panel.y_label and (i == first or any(other.y_label != panel.y_label for other in row)):
            axes.set_ylabel(panel.y_label)
        below = panels[i + columns :: columns]
        if panel.x_label and not (same and any(not other.empty for other in below)):
            axes.set_xlabel(panel.x_label)
        if panel.y_names and i != first and all(other.y_names == panel.y_names for other in row):
            axes.set_yticklabels([])


def _share(grid: "Sequence[Axes]", panels: Sequence[Panel], columns: int) -> None:
    """The same part of the y axis in all panels of a row."""
    for start in range(0, len(panels), columns):
        row = slice(start, start + columns)
        drawn = [axes for axes, panel in zip(grid[row], panels[row], strict=True) if not panel.empty]
        ends = [axes.get_ylim() for axes in drawn]
        for axes in drawn:
            axes.set_ylim(min(low for low, _ in ends), max(high for _, high in ends))


def _legend(figure: Figure) -> "dict[str, Artist]":
    """Each kind of series once; the paper's own points once for all, and last."""
    from matplotlib.lines import Line2D

    found: dict[str, Artist] = {}
    series = [each for panel in figure.panels if not panel.empty for each in panel.series]
    there = {each.key for each in series if not each.empty}
    for each in series:
        mine = look(each.key)
        label = each.label if each.key in there else f"{each.label}: not recorded"
        if each.key.startswith(("depth-", "paper")) or label in found:
            continue
        line = each.kind == "line"
        found[label] = Line2D(
            [], [], color=mine.color, marker=mine.mark, markersize=4 if line else 5,
            markeredgewidth=1.0 if mine.hollow else 0.0, markerfacecolor="white" if mine.hollow else mine.color,
            linestyle=mine.dash if line else "none",
        )  # fmt: skip
    if any(each.key.startswith("paper") for each in series):
        found[PAPER] = Line2D(
            [], [], color=GRAY, marker="D", markerfacecolor="white", markersize=4, markeredgewidth=0.9, linestyle="none"
        )
    return found


def _legend_columns(labels: Sequence[str], width: float) -> int:
    """As many as fit side by side."""
    longest = max((len(label) for label in labels), default=1)
    return max(1, min(len(labels), int(width * 72 / (longest * 4.7 + 36))))
