"""The depth that a μ is worth: P-reg's scale-free ω, read off those of plain GCNs of 2, 3 and 4 layers."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from propreg.statistics import EXACT_UP_TO, Runs, paired
from propreg.study.figures.measured import Place
from propreg.study.figures.parts import Value
from propreg.study.telling import told


@dataclass(frozen=True)
class Reading:
    """A depth for each μ that can be read, with its interval, and in words why others cannot.

    A curve is read as far as it falls with μ and stays above the 4-layer level.
    """

    strengths: tuple[float, ...] = ()
    depths: tuple[float, ...] = ()
    low: tuple[Value, ...] = ()
    high: tuple[Value, ...] = ()
    why: str = ""


def read_depth(levels: Mapping[int, Runs], places: Sequence[Place]) -> Reading:
    """Read depths by linear interpolation between the levels.

    Args:
        levels: Runs [splits, seeds] of each depth.
        places: Those of P-reg by strength, the plain model (μ = 0) first.
    """
    if len(levels) < 2:
        return Reading(why="the levels of deeper GCNs are not recorded")
    layers = sorted(levels)
    at = np.array([float(levels[each].mean()) for each in layers])
    if any(told(paired(levels[after], levels[before])) != "worse" for before, after in itertools.pairwise(layers)):
        said = ", ".join(f"{each} layers {value:.3f}" for each, value in zip(layers, at, strict=True))
        return Reading(why=f"cannot be read: ω / mean ‖z‖ does not surely fall with depth ({said})")
    known = list(itertools.takewhile(lambda place: place.values is not None, places))
    if len(known) < 2:
        return Reading(why="its runs are not recorded")
    means = [float(place.values.mean()) for place in known if place.values is not None]
    falling = 1 + sum(1 for _ in itertools.takewhile(lambda p: p[1] < p[0], itertools.pairwise(means)))
    chosen = list(itertools.takewhile(lambda i: at[-1] <= means[i] <= at[0], range(falling)))
    ends = [_interval(levels, layers, known[i].values) for i in chosen]
    return Reading(
        tuple(known[i].x for i in chosen),
        tuple(float(_depths(np.array([means[i]]), at[None], layers)[0]) for i in chosen),
        tuple(None if end is None else end[0] for end in ends),
        tuple(None if end is None else end[1] for end in ends),
        _why(places, means, falling, len(chosen), (layers[0], layers[-1], float(at[-1]))),
    )


def _why(places: Sequence[Place], means: Sequence[float], falling: int, read: int, ends: tuple[int, int, float]) -> str:
    """What ends the reading, in words; empty where all of the curve is read."""
    first, last, deepest = ends
    if read == len(places):
        return ""
    if read < falling and means[read] < deepest:
        return f"from μ = {places[read].x:g} on, more than {last} layers"
    if read < falling:
        return f"cannot be read: at μ = {places[read].x:g} it lies above the {first}-layer level"
    if falling < len(means):
        return f"not monotone: read up to μ = {places[falling - 1].x:g}, where ω / mean ‖z‖ stops falling"
    return f"read up to μ = {places[read - 1].x:g}, beyond which runs are missing"


def _depths(values: NDArray[np.float64], at: NDArray[np.float64], layers: Sequence[int]) -> NDArray[np.float64]:
    """Linear interpolation in each row of falling levels: how much of each step between two depths is done."""
    done = np.clip((at[:, :-1] - values[:, None]) / (at[:, :-1] - at[:, 1:]), 0, 1)
    return np.asarray(layers[0] + (done * np.diff(layers)).sum(axis=1), np.float64)


def _interval(levels: Mapping[int, Runs], layers: Sequence[int], values: Runs | None) -> tuple[float, float] | None:
    """A 95 % interval by resampling splits, of the levels and the curve together.

    The levels fall in every split, or they would not surely fall; so they do in every resample.
    """
    if values is None or not 1 < len(values) <= EXACT_UP_TO:
        return None
    takes = np.array(list(itertools.product(range(len(values)), repeat=len(values))))
    at = np.stack([levels[each].mean(axis=1)[takes].mean(axis=1) for each in layers], axis=1)
    means = values.mean(axis=1)[takes].mean(axis=1)
    low, high = np.quantile(_depths(means, at, layers), [0.025, 0.975])
    return float(low), float(high)
