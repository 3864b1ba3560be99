"""One panel on one pair of Matplotlib's axes."""

import textwrap
from collections import Counter
from collections.abc import Sequence
from itertools import compress
from typing import TYPE_CHECKING, Any

from propreg.study.figures.drawing.marks import draw_cloud, draw_levels, draw_line, draw_points, draw_rows, with_gaps
from propreg.study.figures.drawing.style import BLACK, GRAY, SMALL, look
from propreg.study.figures.parts import Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAMED = 0.27  # of a table's width: what the first column has to itself
HALVES, FIFTHS, NARROW = (0.0, 0.5, 1.0), (0.0, 0.2, 0.4, 0.6, 0.8, 1.0), 1.9  # inches


def draw_panel(axes: "Axes", panel: Panel) -> None:
    """Draw everything of a panel but the labels of its axes."""
    axes.set_title(panel.title)
    if panel.empty:
        _draw_empty(axes, panel.empty)
        return
    if panel.table:
        _table(axes, panel.table)
        return
    if panel.x_scale == "log":
        axes.set_xscale("log")
    if panel.y_names:
        _name_rows(axes, panel)
    clouds = [series for series in panel.series if series.kind == "cloud"]
    for series in panel.series:
        if series.kind == "line":
            draw_line(axes, series)
        elif series.kind == "points" and not panel.y_names:
            draw_points(axes, series, [0.0] * len(series.x))
    if panel.y_names:
        draw_rows(axes, panel)
    else:
        axes.locator_params(axis="y", nbins=6, steps=[1, 2, 5, 10])
    for series in clouds:
        draw_cloud(axes, series)
    if clouds:
        _bare(axes)
    _views(axes, panel)
    draw_levels(axes, panel)
    _notes(axes, panel, bool(clouds))


def _draw_empty(axes: "Axes", why: str) -> None:
    axes.grid(False)
    axes.set(xticks=[], yticks=[])
    for side in axes.spines.values():
        side.set_visible(False)
    axes.set_facecolor("#f6f6f6")
    text = "\n".join(textwrap.fill(line, 30) for line in why.splitlines())
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", color=GRAY, fontsize=7.5)


def _table(axes: "Axes", rows: Sequence[Sequence[str]]) -> None:
    """Words and numbers in rows; a second line in a place is small print."""
    axes.set_axis_off()
    step, columns = 1 / len(rows), len(rows[0])
    for i, row in enumerate(rows):
        y = 1 - (i + 0.5) * step
        if i:
            axes.plot([0, 1], [1 - i * step] * 2, transform=axes.transAxes, color="#d0d0d0", linewidth=0.6)
        for k, cell in enumerate(row):
            x, side = (0.0, "left") if k == 0 else (NAMED + (1 - NAMED) * k / (columns - 1), "right")
            first, _, second = cell.partition("\n")
            style: dict[str, Any] = {"transform": axes.transAxes, "ha": side, "va": "center"}
            size, numbers = 7.2 if i else 6.4, i > 0 < k
            axes.text(x, y + (0.025 if second else 0), first, fontsize=size, color=BLACK if i else GRAY, **style)
            axes.text(
                x, y - 0.03, second, fontsize=6 if numbers else size, color=GRAY if numbers or not i else BLACK, **style
            )


def _name_rows(axes: "Axes", panel: Panel) -> None:
    count = len(panel.y_names)
    axes.set_yticks(range(count), panel.y_names)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(count - 0.5, -0.5)  # the first on top
    axes.grid(False, axis="y")
    axes.spines["left"].set_visible(False)
    for row in range(0, count, 2):
        axes.axhspan(row - 0.5, row + 0.5, color="#f5f5f5", linewidth=0, zorder=0)


def _bare(axes: "Axes") -> None:
    axes.set(xticks=[], yticks=[])
    axes.grid(False)
    axes.set_aspect("equal", adjustable="datalim")
    for side in axes.spines.values():
        side.set(visible=True, color="#d0d0d0")


def _views(axes: "Axes", panel: Panel) -> None:
    if panel.x_ticks:
        axes.set_xticks(panel.x_ticks, [f"{tick:,g}" for tick in panel.x_ticks])
        axes.minorticks_off()
    if panel.x_view == (0.0, 1.0) and not panel.x_ticks:
        axes.set_xticks(HALVES if axes.bbox.width < NARROW * axes.figure.dpi else FIFTHS)
        axes.xaxis.set_major_formatter("{x:g}")
    if panel.x_view is not None:
        width = panel.x_view[1] - panel.x_view[0]
        axes.set_xlim(panel.x_view[0] - 0.03 * width, panel.x_view[1] + 0.03 * width)
    if panel.y_view is None:
        return
    axes.set_ylim(*panel.y_view)
    taken: Counter[float] = Counter()  # marks at one point are stacked, so that none hides another
    step = 0.028 * (panel.y_view[1] - panel.y_view[0])
    for series in panel.series:
        below = [y is not None and y < panel.y_view[0] for y in series.y]
        x = list(compress(with_gaps(series.x), below))
        edge = [panel.y_view[0] + step * taken[place] for place in x]
        taken.update(x)
        axes.plot(x, edge, linestyle="none", marker=7, color=look(series.key).color, markersize=4, clip_on=False)


def _notes(axes: "Axes", panel: Panel, below: bool) -> None:
    if not panel.notes:
        return
    if below:
        axes.set_xlabel("\n".join(panel.notes), fontsize=7.5, color=BLACK, loc="left")
    elif not notes_below(panel):
        axes.set_title(", ".join(panel.notes), loc="right", fontsize=SMALL, fontweight="normal", color=GRAY)


def notes_below(panel: Panel) -> bool:
    """Whether a panel's notes are too long for its heading, and go under the picture."""
    clouds = any(series.kind == "cloud" for series in panel.series)
    return not clouds and len(", ".join(panel.notes)) > 30
