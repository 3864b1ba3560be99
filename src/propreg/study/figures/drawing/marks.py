"""The marks of a panel: lines with bands, points with bars, points in rows, clouds of dots, and reference lines."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from propreg.study.figures.drawing.style import DOTTED, GRAY, SMALL, SOLID, look
from propreg.study.figures.parts import Level, Panel, Series, Value

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GAP = 0.12  # inches between two names


def with_gaps(values: Sequence[Value]) -> list[float]:
    """Matplotlib breaks a line at NaN."""
    return [math.nan if value is None else value for value in values]


def draw_line(axes: "Axes", series: Series) -> None:
    """A line with its band; bars where a point has no neighbors, or where both directions are measured."""
    mine, x = look(series.key), with_gaps(series.x)
    if series.low and not series.x_low:
        axes.fill_between(x, with_gaps(series.low), with_gaps(series.high), color=mine.color, alpha=0.15, linewidth=0)
    if series.x_low:  # both are measured: bars both ways, since a band has no meaning there
        _bars(axes, series, [0.0] * len(series.x), alpha=0.35, width=0.8)
    alone = _alone(series)
    if series.low and any(alone):  # a band needs two points
        _bars(axes, _only(series, alone), [0.0] * len(series.x))
    axes.plot(
        x,
        with_gaps(series.y),
        color=mine.color,
        linestyle=mine.dash,
        marker=mine.mark if len(series.x) <= 30 else "",
        markersize=2.8 if len(series.x) > 12 else 3.8,
        markeredgewidth=0.9 if mine.hollow else 0.0,
        markerfacecolor="white" if mine.hollow else mine.color,
    )


def _alone(series: Series) -> list[bool]:
    """Which points have no neighbor."""
    there = [False, *(y is not None for y in series.y), False]
    return [mine and not before and not after for before, mine, after in zip(there, there[1:], there[2:], strict=False)]


def _only(series: Series, chosen: Sequence[bool]) -> Series:
    return replace(series, y=tuple(y if yes else None for y, yes in zip(series.y, chosen, strict=True)))


def _bars(axes: "Axes", series: Series, shifts: Sequence[float], alpha: float = 1.0, width: float = 1.1) -> None:
    mine = look(series.key)
    style: dict[str, Any] = {"color": mine.color, "linewidth": width, "alpha": alpha, "solid_capstyle": "butt"}
    for i, (x, y, shift) in enumerate(zip(series.x, series.y, shifts, strict=True)):
        if x is None or y is None:
            continue
        if series.x_low and series.x_low[i] is not None:
            axes.plot(with_gaps([series.x_low[i], series.x_high[i]]), [y + shift] * 2, **style)
        if series.low and series.low[i] is not None:
            axes.plot([x, x], with_gaps([series.low[i], series.high[i]]), **style)


def draw_points(axes: "Axes", series: Series, shifts: Sequence[float], size: float = 4.4) -> None:
    """Points with bars, moved up or down by shifts; the paper's are diamonds."""
    mine, paper = look(series.key), series.key.startswith("paper")
    hollow = paper or mine.hollow
    _bars(axes, series, shifts)
    y = [math.nan if value is None else value + shift for value, shift in zip(series.y, shifts, strict=True)]
    axes.plot(
        with_gaps(series.x),
        y,
        linestyle="none",
        marker="D" if paper else mine.mark,
        markersize=size - 0.6 if paper else size,
        color=mine.color,
        markerfacecolor="white" if hollow else mine.color,
        markeredgewidth=1.1 if hollow else 0.0,
        zorder=3 if paper else 4,
    )
    if mine.mark.startswith("$"):  # a digit, which a bar behind it would hide
        axes.plot(with_gaps(series.x), y, linestyle="none", marker="o", markersize=8, color=mine.color, zorder=3)
        axes.plot(with_gaps(series.x), y, linestyle="none", marker="o", markersize=6.6, color="white", zorder=3)


def draw_rows(axes: "Axes", panel: Panel) -> None:
    """Points by row; several series are side by side within a row."""
    keys = list(dict.fromkeys(series.key.removeprefix("paper:") for series in panel.series))
    step = min(0.22 if len(keys) < 4 else 0.16, 0.8 / max(len(keys), 1))
    for series in panel.series:
        shift = step * (keys.index(series.key.removeprefix("paper:")) - (len(keys) - 1) / 2)
        draw_points(axes, series, [shift] * len(series.y), size=4.0)


def draw_cloud(axes: "Axes", series: Series) -> None:
    """Bare dots."""
    mine = look(series.key)
    # As pixels: thousands of dots would make the file large, and slow to show. Those with notes are few.
    pixels, size = not series.notes, 2.2 if not series.notes else 5.0
    axes.scatter(
        with_gaps(series.x), with_gaps(series.y), s=size, color=mine.color, alpha=0.75, linewidths=0, rasterized=pixels
    )


def draw_levels(axes: "Axes", panel: Panel) -> None:
    """Draw the levels of a panel, whose view must be set already."""
    beside = []
    for level in panel.levels:
        mine = look(level.key)
        dash = DOTTED if level.source == "paper" else mine.dash
        if level.axis == "x":
            axes.axvline(level.value, color=mine.color, linestyle=SOLID if level.value == 0 else dash, linewidth=0.9)
            if level.value != 0:
                left = axes.transData.transform((level.value, 1))[0] < axes.bbox.x0 + axes.bbox.width / 2
                axes.annotate(
                    level.label, (level.value, 0.02), (3 if left else -3, 0), xycoords=("data", "axes fraction"),
                    textcoords="offset points", fontsize=SMALL, color=GRAY, ha="left" if left else "right",
                )  # fmt: skip
            continue
        axes.axhline(level.value, color=mine.color, linestyle=dash, linewidth=0.9, zorder=1.5)
        if level.low is not None and level.high is not None:
            axes.axhspan(level.low, level.high, color=mine.color, alpha=0.06, linewidth=0, zorder=1)
        if level.label:
            beside.append(level)
    if beside:
        _label_beside(axes, beside)


def _label_beside(axes: "Axes", levels: Sequence[Level]) -> None:
    """The names of horizontal levels to the right of the axes, moved apart where they are close."""
    low, high = axes.get_ylim()
    shown = sorted((level for level in levels if low <= level.value <= high), key=lambda level: level.value)
    gap = GAP * axes.figure.dpi / axes.bbox.height
    places = move_apart([(level.value - low) / (high - low) for level in shown], gap)
    for place, level in zip(places, shown, strict=True):
        axes.annotate(
            level.label, (1.0, (level.value - low) / (high - low)), (1.03, place), xycoords="axes fraction",
            textcoords="axes fraction", va="center", fontsize=SMALL, color=look(level.key).color,
            annotation_clip=False, arrowprops={
                "arrowstyle": "-", "color": look(level.key).color, "linewidth": 0.5, "shrinkA": 0, "shrinkB": 0,
            },
        )  # fmt: skip


def move_apart(places: Sequence[float], gap: float) -> list[float]:
    """Move rising places apart until neighbors have the gap; moved ones stay around their middle.

    Example:
        >>> [round(place, 2) for place in move_apart([0.1, 0.5, 0.5], 0.1)]
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
