"""Intervals and p-values against SciPy's t test, and when a difference is significant."""

import numpy as np
import pytest
from scipy import stats

from propreg.statistics import Difference, holm, paired, summarize, t_quantile, t_tails


def _against_zero(values: list[float]) -> Difference:
    splits = np.array(values)[:, None]
    return paired(splits, np.zeros_like(splits))


@pytest.mark.parametrize("degrees", [1, 2, 3, 4, 5, 9, 20, 45, 100, 1000, 100_000])
def test_students_t_is_scipys(degrees: int) -> None:
    for at in (0.0, 0.1, 1.0, 2.776, -10.0):
        assert t_tails(at, degrees) == pytest.approx(2 * stats.t.sf(abs(at), degrees), rel=1e-10)
    assert t_quantile(degrees) == pytest.approx(stats.t.ppf(0.975, degrees), rel=1e-12)


@pytest.mark.parametrize("shape", [(5, 5), (2, 3), (10, 1), (1, 7)])
def test_units_are_means_of_splits_or_the_seeds_of_one(shape: tuple[int, int]) -> None:
    first, second = np.random.default_rng(0).normal(80, 2, size=(2, *shape))
    apart = first - second
    units = apart[0] if shape[0] == 1 else apart.mean(axis=1)
    found, test = paired(first, second), stats.ttest_1samp(units, 0)
    ends = test.confidence_interval()
    assert (found.low, found.high) == pytest.approx((ends.low, ends.high))
    assert (found.mean, found.p_value) == pytest.approx((apart.mean(), test.pvalue))
    assert vars(summarize(apart)) == pytest.approx(
        {"mean": apart.mean(), "std": apart.std(), "low": ends.low, "high": ends.high, "runs": apart.size}
    )


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ([1.0, 2.0, 1.0, 2.0, 1.5], "better"),
        ([-1.0, -2.0, -1.0, -2.0, -1.5], "worse"),
        ([5.0, 5.0, 5.0, 5.0, -0.5], "better"),  # by hand: 3.9 ± 2.776 · 1.1
        ([5.0, 5.0, 5.0, 5.0, -2.0], "inconclusive"),  # 3.6 ± 2.776 · 1.4
        ([1.0, -1.0, 2.0, -2.0, 0.1], "inconclusive"),
        ([1.0, 2.0, 1.5, 2.0], "better"),
        ([1.0, 2.0], "inconclusive"),
        ([1.0] * 9 + [-0.5], "better"),
        ([1.0] * 6 + [-0.9] * 4, "inconclusive"),
    ],
)
def test_a_difference_is_significant_where_its_interval_excludes_zero(values: list[float], says: str) -> None:
    found = _against_zero(values)
    assert found.verdict == says
    assert (found.low > 0, found.high < 0) == (says == "better", says == "worse")


@pytest.mark.parametrize(
    ("values", "p_value"),
    [([0.0] * 5, 1.0), ([1.0], 1.0), ([1.0] * 2, 2 / 9), ([0.3] * 3, 2 / 27), ([-1.0] * 4, 2 / 81)],
)
def test_equal_units_have_no_spread_and_count_by_their_number(values: list[float], p_value: float) -> None:
    base = np.random.default_rng(0).uniform(60, 90, size=(len(values), 1))
    found = paired(base + np.array(values)[:, None], base)  # the differences are equal but for rounding
    assert found.p_value == pytest.approx(p_value)
    assert (found.low + found.high) / 2 == pytest.approx(values[0])
    assert (found.verdict == "inconclusive") == (len(values) < 4 or not values[0])
    if p_value < 1:  # the interval is that of a t test with this p
        assert (found.low > 0 or found.high < 0) == (p_value < 0.05)


def test_two_equal_units_have_the_interval_of_their_p() -> None:
    """Of one degree P(|T| ≥ t) = 1 − 2 arctan(t) / π: 2/9 at tan 70°, 0.05 at tan 85.5°."""
    found = paired(np.array([[3.0], [3.0]]), np.array([[1.0], [1.0]]))
    half = 2 * np.tan(np.radians(85.5)) / np.tan(np.radians(70))
    assert (found.low, found.high) == pytest.approx((2 - half, 2 + half))


def test_seeds_that_cancel_but_for_rounding_are_no_difference() -> None:
    """0.8 − 0.7 and 0.6 − 0.7 have a mean of 5e-17, on each of ten splits."""
    found = paired(np.array([[0.8, 0.6]] * 10), np.full((10, 2), 0.7))
    assert (found.mean, found.low, found.high, found.p_value, found.won) == (0.0, 0.0, 0.0, 1.0, 0.5)


def test_an_unknown_difference_is_inconclusive() -> None:
    assert Difference(*[float("nan")] * 5).verdict == "inconclusive"


def test_holm_is_the_step_down_correction() -> None:
    """By hand: 4 · 0.01, 3 · 0.012, which may not be less, 2 · 0.03, and 0.04, which may not be less either."""
    found = [Difference(float(i), 0.0, 1.0, p, 1.0) for i, p in enumerate((0.03, 0.01, 0.04, 0.012))]
    adjusted = holm(found)
    assert [each.p_value for each in adjusted] == pytest.approx([0.06, 0.04, 0.06, 0.04])
    assert [each.mean for each in adjusted] == [0.0, 1.0, 2.0, 3.0]
    assert [each.p_value for each in holm(found[:1] * 40)] == [1.0] * 40
    assert holm([]) == []
