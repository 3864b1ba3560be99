"""The depth that a μ is worth: where P-reg's scale-free ω lies among those of plain GCNs of 2, 3 and 4 layers."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from propreg.statistics import Runs, paired, t_quantile
from propreg.study.figures.curves import Point
from propreg.study.figures.parts import Value


@dataclass(frozen=True)
class EquivalentDepth:
    """A depth for each μ, with its interval, as far as the curve falls with μ and stays above the 4-layer level.

    ``why`` is the reason for the end of it, empty if all of the curve is used.
    """

    strengths: tuple[float, ...] = ()
    depths: tuple[float, ...] = ()
    low: tuple[Value, ...] = ()
    high: tuple[Value, ...] = ()
    why: str = ""


def equivalent_depth(levels: Mapping[int, Runs], points: Sequence[Point]) -> EquivalentDepth:
    """Interpolate linearly between the levels.

    Args:
        levels: Runs [splits, seeds] of each depth.
        points: P-reg's, by strength, the plain model (μ = 0) first.
    """
    if len(levels) < 2:
        return EquivalentDepth(why="the levels of deeper GCNs are not recorded")
    layers = sorted(levels)
    at = np.array([float(levels[each].mean()) for each in layers])
    if any(paired(levels[after], levels[before]).verdict != "worse" for before, after in itertools.pairwise(layers)):
        levels_at = ", ".join(f"{each} layers {value:.3f}" for each, value in zip(layers, at, strict=True))
        return EquivalentDepth(why=f"undefined: ω / mean ‖z‖ does not significantly fall with depth ({levels_at})")
    known = list(itertools.takewhile(lambda point: point.values is not None, points))
    if len(known) < 2:
        return EquivalentDepth(why="its runs are not recorded")
    means = [float(point.values.mean()) for point in known if point.values is not None]
    falling = 1 + sum(1 for _ in itertools.takewhile(lambda p: p[1] < p[0], itertools.pairwise(means)))
    chosen = list(itertools.takewhile(lambda i: at[-1] <= means[i] <= at[0], range(falling)))
    depths = [float(_depths(np.array([means[i]]), at[None], layers)[0]) for i in chosen]
    ends = [_interval(each, levels, layers, known[i].values) for i, each in zip(chosen, depths, strict=True)]
    return EquivalentDepth(
        tuple(known[i].x for i in chosen),
        tuple(depths),
        tuple(None if end is None else end[0] for end in ends),
        tuple(None if end is None else end[1] for end in ends),
        _why(points, means, falling, len(chosen), (layers[0], layers[-1], float(at[-1]))),
    )


def _why(points: Sequence[Point], means: Sequence[float], falling: int, used: int, ends: tuple[int, int, float]) -> str:
    """What ends the curve; empty if all of it is used."""
    first, last, deepest = ends
    if used == len(points):
        return ""
    if used < falling and means[used] < deepest:
        return f"from μ = {points[used].x:g} on, more than {last} layers"
    if used < falling:
        return f"undefined: at μ = {points[used].x:g} it lies above the {first}-layer level"
    if falling < len(means):
        return f"not monotone: defined up to μ = {points[falling - 1].x:g}, where ω / mean ‖z‖ stops falling"
    return f"defined up to μ = {points[used - 1].x:g}, beyond which runs are missing"


def _depths(values: NDArray[np.float64], at: NDArray[np.float64], layers: Sequence[int]) -> NDArray[np.float64]:
    """Linear interpolation in each row of falling levels: how much of each step between two depths is done."""
    done = np.clip((at[:, :-1] - values[:, None]) / (at[:, :-1] - at[:, 1:]), 0, 1)
    return np.asarray(layers[0] + (done * np.diff(layers)).sum(axis=1), np.float64)


def _interval(
    depth: float, levels: Mapping[int, Runs], layers: Sequence[int], values: Runs | None
) -> tuple[float, float] | None:
    """A 95 % interval from the depths that are read without one split each: a jackknife, of a mean the usual interval.

    The levels fall significantly, so they do without any one split.
    """
    if values is None or len(values) < 2:
        return None
    count = len(values)
    others = (1 - np.eye(count)) / (count - 1)
    at = np.stack([others @ levels[each].mean(axis=1) for each in layers], axis=1)
    read = _depths(others @ values.mean(axis=1), at, layers)
    half = t_quantile(count - 1) * ((count - 1) * float(read.var())) ** 0.5
    return max(depth - half, layers[0]), min(depth + half, layers[-1])
