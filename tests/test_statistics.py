"""When a difference is significant, and how often the interval behind it covers the truth."""

import numpy as np
import pytest

import propreg.statistics
from propreg.statistics import paired, summarize


def _against_zero(values: list[float]) -> str:
    splits = np.array(values)[:, None]
    return paired(splits, np.zeros_like(splits)).verdict


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ([1.0, 2.0, 1.0, 2.0, 1.5], "better"),
        ([-1.0, -2.0, -1.0, -2.0, -1.5], "worse"),
        ([5.0, 5.0, 5.0, 5.0, -0.5], "inconclusive"),  # the interval leaves out 0, but a split disagrees
        ([5.0, 5.0, 5.0, 5.0, 0.0], "inconclusive"),
        ([1.0, -1.0, 2.0, -2.0, 0.1], "inconclusive"),
        ([0.0] * 5, "inconclusive"),
        ([1.0, 2.0, 1.5, 2.0], "inconclusive"),  # four may agree by chance
        ([1.0], "inconclusive"),
        ([1.0] * 9 + [-0.5], "better"),  # of ten one may disagree
        ([1.0] * 6 + [-0.9] * 4, "inconclusive"),
    ],
)
def test_splits_must_agree_so_far_as_five_of_them_can(values: list[float], says: str) -> None:
    assert _against_zero(values) == says


def test_an_interval_alone_is_not_enough() -> None:
    splits = np.array([5.0, 5.0, 5.0, 5.0, -0.5])[:, None]
    found = paired(splits, np.zeros_like(splits))
    assert found.low > 0
    assert found.p_value > 1 / 16


@pytest.mark.parametrize(("units", "covers"), [(5, 0.84), (10, 0.90)])
def test_the_interval_covers_as_often_as_the_statistics_say(units: int, covers: float) -> None:
    """Normal splits with mean 0: how often the interval of their mean has 0 in it."""
    drawn = np.random.default_rng(units).normal(size=(1500, units, 1))
    found = [summarize(each) for each in drawn]
    share = np.mean([each.low <= 0 <= each.high for each in found])
    assert share == pytest.approx(covers, abs=0.03)  # three standard errors of 1,500 draws
    assert f"{100 * covers:.0f}" in (propreg.statistics.__doc__ or "")
