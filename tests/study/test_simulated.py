"""Simulated studies with a known gain: how often p-values, intervals and verdicts are right.

Each study has a plain and a regularized model on the same splits and seeds. A split is easy or hard for both, and the
gain differs from split to split. Counts must be plausible: one in 1,000 correct ones lies outside of :func:`plausible`.
"""

import itertools
from functools import cache

import numpy as np
import pytest
from scipy.stats import binom, chi2, nct, norm, t

from propreg.statistics import SIGNIFICANCE, Difference, Runs, holm, paired, summarize
from propreg.study.spec.paper import MARGIN, verdict
from propreg.study.tables.rows import pick

STUDIES = 1000
SEEDS = 5
SPLIT, GAIN, SEED = 1.5, 0.8, 0.7
"""Standard deviations in points: of a split's difficulty, of the gain between splits, between seeds of a split; the
last two about those of P-reg in Table 1."""
APART = (GAIN**2 + 2 * SEED**2 / SEEDS) ** 0.5
"""That of the mean difference of a split."""


def plausible(count: int, share: float) -> bool:
    return bool(binom.ppf(5e-4, STUDIES, share) <= count <= binom.ppf(1 - 5e-4, STUDIES, share))


def at_most(count: int, share: float) -> bool:
    return bool(count <= binom.ppf(1 - 1e-3, STUDIES, share))


def simulate(splits: int, gain: float) -> tuple[Runs, Runs]:
    """Test accuracies of the regularized and the plain model, [studies, splits, seeds]."""
    draw = np.random.default_rng(splits)
    difficulty = 80 + SPLIT * draw.normal(size=(STUDIES, splits, 1))
    gains = gain + GAIN * draw.normal(size=(STUDIES, splits, 1))
    first, second = SEED * draw.normal(size=(2, STUDIES, splits, SEEDS))
    return difficulty + gains + first, difficulty + second


@cache
def differences(splits: int, gain: float) -> list[Difference]:
    return [paired(*study) for study in zip(*simulate(splits, gain), strict=True)]


@pytest.mark.parametrize("splits", [5, 6, 10])
def test_p_values_are_valid_without_a_gain(splits: int) -> None:
    """P(p ≤ α) = α, of which one half is better and one half worse."""
    found = np.array([each.p_value for each in differences(splits, 0.0)])
    for alpha in (0.01, 0.05, 0.1, 0.2, 0.5):
        assert plausible(int((found <= alpha).sum()), alpha)
    verdicts = [each.verdict for each in differences(splits, 0.0)]
    assert plausible(verdicts.count("better"), SIGNIFICANCE / 2)
    assert plausible(verdicts.count("worse"), SIGNIFICANCE / 2)


@pytest.mark.parametrize("splits", [5, 6, 10])
def test_power(splits: int) -> None:
    """That of the noncentral t, whose center is the gain in standard errors."""
    gain = 1.0
    power = nct.sf(t.ppf(0.975, splits - 1), splits - 1, gain / APART * splits**0.5)
    verdicts = [each.verdict for each in differences(splits, gain)]
    assert plausible(verdicts.count("better"), power)
    assert at_most(verdicts.count("worse"), 1e-3)


@pytest.mark.parametrize("splits", [5, 6, 10])
def test_intervals_cover_and_are_significance(splits: int) -> None:
    for gain in (0.0, 1.0):
        found = differences(splits, gain)
        assert plausible(sum(each.low <= gain <= each.high for each in found), 0.95)
        assert all((each.p_value < SIGNIFICANCE) == (each.low > 0 or each.high < 0) for each in found)
        plain = [summarize(study) for study in simulate(splits, gain)[1]]
        assert plausible(sum(each.low <= 80 <= each.high for each in plain), 0.95)


def sign_flips(units: Runs) -> float:
    """The share of sign patterns with a mean at least as far from 0: the test that t is compared with."""
    flips = np.array([*itertools.product((1, -1), repeat=len(units))])
    return float((abs(flips @ units) >= abs(units.sum()) * (1 - 1e-12)).mean())


@pytest.mark.parametrize(
    ("splits", "normal", "power", "skewed"),
    [  # shares with p < 0.05 by t and by sign flips; of skewed units t's intervals cover the rest
        (5, (0.050, 0.0), (0.46, 0.0), (0.116, 0.0)),
        (6, (0.050, 2 / 64), (0.58, 0.41), (0.115, 0.067)),
        (10, (0.050, 0.050), (0.87, 0.86), (0.100, 0.094)),
    ],
)
def test_t_against_sign_flips(
    splits: int, normal: tuple[float, ...], power: tuple[float, ...], skewed: tuple[float, ...]
) -> None:
    """Of five splits no flip is significant. Where a gain is skewed as an exponential, both err too often."""
    draw = np.random.default_rng([splits, 1])
    of_normal, of_skewed = draw.normal(size=(STUDIES, splits)), draw.exponential(size=(STUDIES, splits)) - 1
    for units, expected in ((of_normal, normal), (of_normal + 1 / APART, power), (of_skewed, skewed)):
        by_t = [paired(each[:, None], np.zeros((splits, 1))).p_value for each in units]
        by_flips = [sign_flips(each) for each in units]
        for found, share in ((by_t, expected[0]), (by_flips, expected[1])):
            assert plausible(sum(p < SIGNIFICANCE for p in found), share)


@pytest.mark.parametrize("units", [2, 3, 6])
def test_a_few_units_of_a_small_test_set_are_not_sure_by_being_equal(units: int) -> None:
    """Each is a count of test nodes more or less, so that two are often the same: that is no spread of 0."""
    counts = np.round(np.random.default_rng(units).normal(size=(STUDIES, units, 1)))
    found = [paired(each, np.zeros_like(each)) for each in counts]
    assert sum(np.ptp(each) == 0 and each.any() for each in counts) > 100 * (units == 2)
    assert at_most(sum(each.p_value < SIGNIFICANCE for each in found), SIGNIFICANCE)


def test_holm_errs_once_in_twenty_families() -> None:
    """Of 21 independent places without a gain, one or more of 1 − (1 − 0.05 / 21)²¹; gains are still found."""
    families = [differences(5, 0.0)[at : at + 21] for at in range(0, STUDIES - 21, 21)]
    draw = np.random.default_rng(3)
    families += [[paired(each, np.zeros((5, 1))) for each in study] for study in draw.normal(size=(953, 21, 5, 1))]
    wrong = [any(each.verdict != "inconclusive" for each in holm(family)) for family in families]
    assert len(wrong) == STUDIES
    assert plausible(sum(wrong), 1 - (1 - SIGNIFICANCE / 21) ** 21)
    assert all(each.verdict == "better" for each in holm(differences(10, 9.0)[:21]))


@pytest.mark.parametrize(
    ("selection", "share"), [("validation alone", SIGNIFICANCE), ("validation, same gains", 0.11), ("test", 0.23)]
)
def test_p_values_of_a_picked_strength(selection: str, share: float) -> None:
    """One of 20 strengths without a gain, which have nothing in common: how often p < 0.05.

    It is valid only if what picks knows nothing of a split's own gain. Validation and test share the training, and may
    share this gain: picked and tested on the same splits, p is too small, less so the noisier validation is.
    """
    draw = np.random.default_rng(7)
    gains = GAIN * draw.normal(size=(STUDIES, 20, 5))
    seeds = SEED * draw.normal(size=(2, STUDIES, 20, 5, SEEDS))
    test = gains[..., None] + seeds[0] - seeds[1][:, :1]  # all strengths have the same plain runs
    noise = draw.normal(size=gains.shape)
    known = {"validation alone": noise, "validation, same gains": gains + noise, "test": test.mean(axis=3)}
    best = [pick(means) for means in known[selection].mean(axis=2)]
    found = [paired(study[at], np.zeros((5, SEEDS))).p_value for study, at in zip(test, best, strict=True)]
    assert plausible(sum(p < SIGNIFICANCE for p in found), share)


def papers_numbers(splits: int, seeds: int, apart: float, spread: float) -> list[str]:
    """Verdicts on studies whose paper had the same splits, other seeds, and a mean that is lower by ``apart``."""
    draw = np.random.default_rng([splits, seeds])
    difficulty = 80 + SPLIT * draw.normal(size=(STUDIES, splits, 1))
    ours = difficulty + spread * draw.normal(size=(STUDIES, splits, seeds))
    paper = difficulty - apart + spread * draw.normal(size=(STUDIES, splits, seeds))
    return [verdict(mine, float(theirs.mean())) for mine, theirs in zip(ours, paper, strict=True)]


@pytest.mark.parametrize(("splits", "seeds"), [(5, 5), (1, 10)])
def test_verdicts_on_the_paper_s_numbers(splits: int, seeds: int) -> None:
    """Errors are 2.5 % on each side. The same function judges gains, whose runs are differences."""
    degrees = splits * (seeds - 1)
    equal = papers_numbers(splits, seeds, 0.0, 8.0)  # so noisy that none can be reproduced
    assert equal.count("reproduced") == 0
    assert plausible(equal.count("higher"), 0.025)
    assert plausible(equal.count("lower"), 0.025)
    at_margin = papers_numbers(splits, seeds, MARGIN, SEED)
    assert plausible(at_margin.count("reproduced"), 0.025)
    assert at_margin.count("lower") == 0
    assert papers_numbers(splits, seeds, 3 * MARGIN, SEED).count("higher") == STUDIES

    # Equal means are reproduced where |d| ≤ margin − t s √(2/n): the mean of it over s, from its quantiles.
    error = SEED * (2 / (splits * seeds)) ** 0.5
    spread = np.sqrt(chi2.ppf((np.arange(10_000) + 0.5) / 10_000, degrees) / degrees)
    noise = t.ppf(0.975, degrees) * error * spread
    power = float(np.mean(2 * norm.cdf(np.maximum(MARGIN - noise, 0) / error) - 1))
    assert plausible(papers_numbers(splits, seeds, 0.0, SEED).count("reproduced"), power)
