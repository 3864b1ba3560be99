"""The depth that a μ is worth, read off levels that are known."""

import itertools

import numpy as np
import pytest

from propreg.statistics import Runs, paired
from propreg.study.figures.curves import Point
from propreg.study.figures.equivalent_depth import equivalent_depth

LEVELS = {2: 0.6, 3: 0.5, 4: 0.3}


def _same(value: float) -> Runs:
    return np.full((5, 2), value)


def _places(*values: float | None) -> list[Point]:
    return [Point(i / 10, None if value is None else _same(value), 10) for i, value in enumerate(values)]


def _levels(values: dict[int, float]) -> dict[int, Runs]:
    return {layers: _same(value) for layers, value in values.items()}


def test_depths_are_read_between_the_levels() -> None:
    reading = equivalent_depth(_levels(LEVELS), _places(0.6, 0.55, 0.5, 0.45, 0.3))
    assert reading.strengths == (0.0, 0.1, 0.2, 0.3, 0.4)
    assert reading.depths == pytest.approx((2, 2.5, 3, 3.25, 4))
    assert reading.low == reading.high == pytest.approx(reading.depths), "all splits are alike"
    assert reading.why == ""


@pytest.mark.parametrize(
    ("values", "depths", "why"),
    [
        ((0.6, 0.55, 0.56, 0.5), (2, 2.5), "not monotone: defined up to μ = 0.1, where ω / mean ‖z‖ stops falling"),
        ((0.6, 0.7, 0.8), (2,), "not monotone: defined up to μ = 0, where"),
        ((0.6, 0.5, 0.2, 0.1), (2, 3), "from μ = 0.2 on, more than 4 layers"),
        ((0.6, 0.5, None, 0.4), (2, 3), "defined up to μ = 0.1, beyond which runs are missing"),
        ((0.7, 0.65, 0.5), (), "undefined: at μ = 0 it lies above the 2-layer level"),
        ((0.6, None), (), "its runs are not recorded"),
    ],
)
def test_what_cannot_be_read_is_said(values: tuple[float | None, ...], depths: tuple[float, ...], why: str) -> None:
    reading = equivalent_depth(_levels(LEVELS), _places(*values))
    assert reading.depths == pytest.approx(depths)
    assert reading.why.startswith(why)


def test_levels_that_do_not_fall_give_no_reading() -> None:
    reading = equivalent_depth(_levels({2: 0.5, 3: 0.6, 4: 0.3}), _places(0.5, 0.4))
    assert reading.depths == ()
    assert reading.why == (
        "undefined: ω / mean ‖z‖ does not significantly fall with depth "
        "(2 layers 0.500, 3 layers 0.600, 4 layers 0.300)"
    )
    assert "not recorded" in equivalent_depth(_levels({2: 0.5}), _places(0.5, 0.4)).why


def test_intervals_are_of_the_levels_and_the_curve_together() -> None:
    """A jackknife: the depths that are read without one of the splits, by hand."""
    rng = np.random.default_rng(0)
    levels = {layers: value + 0.02 * rng.standard_normal((5, 3)) for layers, value in LEVELS.items()}
    curve = 0.45 + 0.02 * rng.standard_normal((5, 3))
    start = Point(0.0, levels[2], 15)
    reading = equivalent_depth(levels, [start, Point(0.5, curve, 15)])
    read = []
    for take in itertools.combinations(range(5), 4):
        at = {layers: float(np.mean([runs[i].mean() for i in take])) for layers, runs in levels.items()}
        mean = float(np.mean([curve[i].mean() for i in take]))
        above = 3 if mean <= at[3] else 2
        read.append(min(4.0, max(2.0, above + (at[above] - mean) / (at[above] - at[above + 1]))))
    half = 2.7764451 * np.sqrt(4 / 5 * sum((each - np.mean(read)) ** 2 for each in read))
    assert (reading.low[1], reading.high[1]) == pytest.approx((reading.depths[1] - half, reading.depths[1] + half))
    assert reading.low[1] is not None
    assert reading.low[1] < reading.depths[1]


def test_levels_that_splits_do_not_agree_on_give_no_reading() -> None:
    """One split of five crosses: the means fall, but not surely."""
    levels = {2: np.full((5, 1), 0.6), 3: np.array([[0.7], [0.5], [0.5], [0.5], [0.5]]), 4: np.full((5, 1), 0.3)}
    reading = equivalent_depth(levels, _places(0.6, 0.45))
    assert reading.depths == ()
    assert "does not significantly fall with depth (2 layers 0.600, 3 layers 0.540, 4 layers 0.300)" in reading.why


def test_levels_whose_means_fall_but_not_significantly_give_no_reading() -> None:
    """Each step falls in four of five splits, and its interval reaches above 0."""
    first, second = np.array([[-3.0], [-5.0], [2.0], [-3.0], [-9.0]]), np.array([[-3.0], [-5.0], [2.0], [-9.0], [-3.0]])
    levels = {2: np.full((5, 1), 60.0), 3: 60 + first, 4: 60 + first + second}
    reading = equivalent_depth(levels, _places(60.0, 55.0))
    assert all(found.mean < 0 < found.high for found in (paired(levels[n + 1], levels[n]) for n in (2, 3)))
    assert reading.depths == ()
    assert "does not significantly fall with depth" in reading.why
