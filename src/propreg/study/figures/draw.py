"""A figure's panels on one sheet, with heading, legend and what is missing. Matplotlib without its global state."""

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from propreg.study.figures.axes import draw_panel, notes_below
from propreg.study.figures.layout import EDGE, lay_out, sheet_width
from propreg.study.figures.parts import Figure, Panel
from propreg.study.figures.style import BLACK, GREY, look

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Sheet

FOOT = 6.6
LETTER = 0.53  # of the size of the type: the mean width of a letter
PAPER = "the paper"


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
    sheet.text(edge, EDGE / layout.height, "\n".join(foot), va="bottom", fontsize=FOOT, color=GREY, linespacing=1.3)
    return sheet


def _foot(figure: Figure, width: float) -> list[str]:
    """How to read the marks, and what is missing."""
    letters = int((width - 2 * EDGE) * 72 / (FOOT * LETTER))
    missing = f"Not recorded: {'; '.join(figure.missing)}." if figure.missing else ""
    notes = [
        f"{panel.title}: {'; '.join(panel.notes)}.".removeprefix(": ") for panel in figure.panels if notes_below(panel)
    ]
    return [line for text in (figure.marks, *notes, missing) for line in textwrap.wrap(text, letters)]


def _label_axes(grid: "Sequence[Axes]", panels: Sequence[Panel], columns: int) -> None:
    """A label that a whole row or column shares stands once, at its beginning or end."""
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
            [], [], color=mine.colour, marker=mine.mark, markersize=4 if line else 5,
            markeredgewidth=1.0 if mine.hollow else 0.0, markerfacecolor="white" if mine.hollow else mine.colour,
            linestyle=mine.dash if line else "none",
        )  # fmt: skip
    if any(each.key.startswith("paper") for each in series):
        found[PAPER] = Line2D(
            [], [], color=GREY, marker="D", markerfacecolor="white", markersize=4, markeredgewidth=0.9, linestyle="none"
        )
    return found


def _legend_columns(labels: Sequence[str], width: float) -> int:
    """As many as stand side by side."""
    longest = max((len(label) for label in labels), default=1)
    return max(1, min(len(labels), int(width * 72 / (longest * 4.7 + 36))))
