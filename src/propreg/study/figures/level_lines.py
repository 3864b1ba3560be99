"""Reference lines across a panel, and their names beside it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from propreg.study.figures.parts import Level, Panel
from propreg.study.figures.style import DOTTED, GREY, SMALL, SOLID, look

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GAP = 0.12  # inches between two names


def draw_levels(axes: "Axes", panel: Panel) -> None:
    """Draw the levels of a panel, whose view must be set already."""
    beside = []
    for level in panel.levels:
        mine = look(level.key)
        dash = DOTTED if level.source == "paper" else mine.dash
        if level.axis == "x":
            axes.axvline(level.value, color=mine.colour, linestyle=SOLID if level.value == 0 else dash, linewidth=0.9)
            if level.value != 0:
                left = axes.transData.transform((level.value, 1))[0] < axes.bbox.x0 + axes.bbox.width / 2
                axes.annotate(
                    level.label, (level.value, 0.02), (3 if left else -3, 0), xycoords=("data", "axes fraction"),
                    textcoords="offset points", fontsize=SMALL, color=GREY, ha="left" if left else "right",
                )  # fmt: skip
            continue
        axes.axhline(level.value, color=mine.colour, linestyle=dash, linewidth=0.9, zorder=1.5)
        if level.low is not None and level.high is not None:
            axes.axhspan(level.low, level.high, color=mine.colour, alpha=0.06, linewidth=0, zorder=1)
        if level.label:
            beside.append(level)
    if beside:
        _label_beside(axes, beside)


def _label_beside(axes: "Axes", levels: Sequence[Level]) -> None:
    """The names of horizontal levels to the right of the axes, moved apart where they are close."""
    low, high = axes.get_ylim()
    shown = sorted((level for level in levels if low <= level.value <= high), key=lambda level: level.value)
    gap = GAP * axes.figure.dpi / axes.bbox.height
    places = spread([(level.value - low) / (high - low) for level in shown], gap)
    for place, level in zip(places, shown, strict=True):
        axes.annotate(
            level.label, (1.0, (level.value - low) / (high - low)), (1.03, place), xycoords="axes fraction",
            textcoords="axes fraction", va="center", fontsize=SMALL, color=look(level.key).colour,
            annotation_clip=False, arrowprops={
                "arrowstyle": "-", "color": look(level.key).colour, "linewidth": 0.5, "shrinkA": 0, "shrinkB": 0,
            },
        )  # fmt: skip


def spread(places: Sequence[float], gap: float) -> list[float]:
    """Move rising places apart until neighbours have the gap; those that are moved stay around their middle.

    Example:
        >>> [round(place, 2) for place in spread([0.1, 0.5, 0.5], 0.1)]
        [0.1, 0.45, 0.55]
    """
    groups: list[list[float]] = []
    for place in places:
        groups.append([place])
        while len(groups) > 1 and _start(groups[-1], gap) - _end(groups[-2], gap) < gap - 1e-12:
            last = groups.pop()
            groups[-1] += last
    return [_start(group, gap) + gap * i for group in groups for i in range(len(group))]


def _start(group: Sequence[float], gap: float) -> float:
    return sum(group) / len(group) - gap * (len(group) - 1) / 2


def _end(group: Sequence[float], gap: float) -> float:
    return _start(group, gap) + gap * (len(group) - 1)
