"""The marks of a series: lines with bands, points with bars, points in rows, and clouds of dots."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from propreg.study.figures.parts import Panel, Series, Value
from propreg.study.figures.style import BLACK, look

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def with_gaps(values: Sequence[Value]) -> list[float]:
    """Matplotlib breaks a line at NaN."""
    return [math.nan if value is None else value for value in values]


def draw_line(axes: "Axes", series: Series) -> None:
    """A line with its band; bars where a place stands alone, or where both directions are measured."""
    mine, x = look(series.key), with_gaps(series.x)
    if series.low and not series.x_low:
        axes.fill_between(x, with_gaps(series.low), with_gaps(series.high), color=mine.colour, alpha=0.15, linewidth=0)
    if series.x_low:  # both are measured: bars both ways, since a band has no meaning there
        _bars(axes, series, [0.0] * len(series.x), alpha=0.35, width=0.8)
    alone = _alone(series)
    if series.low and any(alone):  # a band needs two places
        _bars(axes, _only(series, alone), [0.0] * len(series.x))
    axes.plot(
        x,
        with_gaps(series.y),
        color=mine.colour,
        linestyle=mine.dash,
        marker=mine.mark if len(series.x) <= 30 else "",
        markersize=2.8 if len(series.x) > 12 else 3.8,
        markeredgewidth=0.9 if mine.hollow else 0.0,
        markerfacecolor="white" if mine.hollow else mine.colour,
    )


def _alone(series: Series) -> list[bool]:
    """Which places have no neighbour."""
    there = [False, *(y is not None for y in series.y), False]
    return [mine and not before and not after for before, mine, after in zip(there, there[1:], there[2:], strict=False)]


def _only(series: Series, chosen: Sequence[bool]) -> Series:
    return replace(series, y=tuple(y if yes else None for y, yes in zip(series.y, chosen, strict=True)))


def _bars(axes: "Axes", series: Series, shifts: Sequence[float], alpha: float = 1.0, width: float = 1.1) -> None:
    mine = look(series.key)
    style: dict[str, Any] = {"color": mine.colour, "linewidth": width, "alpha": alpha, "solid_capstyle": "butt"}
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
        color=mine.colour,
        markerfacecolor="white" if hollow else mine.colour,
        markeredgewidth=1.1 if hollow else 0.0,
        zorder=3 if paper else 4,
    )
    if mine.mark.startswith("$"):  # a digit, which a bar behind it would hide
        axes.plot(with_gaps(series.x), y, linestyle="none", marker="o", markersize=8, color=mine.colour, zorder=3)
        axes.plot(with_gaps(series.x), y, linestyle="none", marker="o", markersize=6.6, color="white", zorder=3)


def draw_rows(axes: "Axes", panel: Panel) -> None:
    """Points by row; those of several series side by side within it, or joined on one line."""
    keys = list(dict.fromkeys(series.key.removeprefix("paper:") for series in panel.series))
    step = 0.0 if panel.joined else min(0.16, 0.8 / max(len(keys), 1))
    if panel.joined:
        axes.margins(x=0.09)  # for the numbers at the right
        _join(axes, panel.series[0], panel.series[1])
    for series in panel.series:
        shift = step * (keys.index(series.key.removeprefix("paper:")) - (len(keys) - 1) / 2)
        draw_points(axes, series, [shift] * len(series.y), size=6.5 if panel.joined else 4.0)


def _join(axes: "Axes", first: Series, second: Series) -> None:
    for i, (a, b, y) in enumerate(zip(first.x, second.x, second.y, strict=True)):
        if a is None or b is None or y is None:
            continue
        axes.plot([a, b], [y, y], color="#bdbdbd", linewidth=3.0, solid_capstyle="round", zorder=1)
        ends = [value for each in (first, second) for value in (each.x[i], each.x_high[i]) if value is not None]
        note = second.notes[i] if second.notes else ""
        axes.annotate(note, (max(ends), y), (5, 0), textcoords="offset points", va="center", fontsize=7.5, color=BLACK)


def draw_cloud(axes: "Axes", series: Series) -> None:
    """Bare dots."""
    mine = look(series.key)
    # As pixels: thousands of dots would make the file large, and slow to show.
    axes.scatter(
        with_gaps(series.x), with_gaps(series.y), s=2.2, color=mine.colour, alpha=0.75, linewidths=0, rasterized=True
    )
