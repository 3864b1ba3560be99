"""Simulated studies with a known gain: how often p-values, intervals and verdicts are right.

Each study has a plain and a regularized model on the same splits and seeds. A split is easy or hard for both, and the
gain differs from split to split. Counts must be plausible: one in 1,000 correct ones lies outside of :func:`plausible`.
"""

from functools import cache

import numpy as np
import pytest
from scipy.stats import binom, chi2, norm, t

from propreg.statistics import SIGNIFICANCE, Difference, Runs, paired, smallest_p
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
    """P(p ≤ α) ≤ α, and equal where α is a p-value that so many splits can give."""
    found = np.array([each.p_value for each in differences(splits, 0.0)])
    for alpha in (0.01, 0.05, SIGNIFICANCE, 0.1, 0.2, 0.5):
        assert at_most(int((found <= alpha).sum()), alpha)
    for alpha in (smallest_p(splits), 2 * smallest_p(splits), 0.25, 0.5):
        assert plausible(int((found <= alpha).sum()), alpha)


@pytest.mark.parametrize("splits", [5, 6, 10])
def test_without_a_gain_few_verdicts_are_better_or_worse(splits: int) -> None:
    verdicts = [each.verdict for each in differences(splits, 0.0)]
    assert at_most(verdicts.count("better"), SIGNIFICANCE / 2)
    assert at_most(verdicts.count("worse"), SIGNIFICANCE / 2)


@pytest.mark.parametrize("splits", [5, 6, 10])
def test_power(splits: int) -> None:
    """The smallest p-value is that of splits which all agree: Φ(d)ⁿ + Φ(−d)ⁿ with d the gain in deviations."""
    gain = 1.0
    agree = float(norm.cdf(gain / APART) ** splits)
    contrary = float(norm.cdf(-gain / APART) ** splits)
    found = differences(splits, gain)
    assert plausible(sum(each.p_value == smallest_p(splits) for each in found), agree + contrary)
    verdicts = [each.verdict for each in found]
    if splits == 5:
        assert plausible(verdicts.count("better"), agree)
    else:
        assert verdicts.count("better") >= binom.ppf(1e-3, STUDIES, agree), "fewer than all may agree"
    assert at_most(verdicts.count("worse"), max(contrary, 1e-3))


@pytest.mark.parametrize(("splits", "covers"), [(5, 0.84), (6, 0.86), (10, 0.90)])
def test_coverage_of_intervals(splits: int, covers: float) -> None:
    """The bootstrap's measured share; an interval from Student's t on means of splits has the 95 % that it names."""
    gain = 1.0
    assert plausible(sum(each.low <= gain <= each.high for each in differences(splits, gain)), covers)
    first, second = simulate(splits, gain)
    units = (first - second).mean(axis=2)
    half = t.ppf(0.975, splits - 1) * units.std(axis=1, ddof=1) / splits**0.5
    assert plausible(int((abs(units.mean(axis=1) - gain) <= half).sum()), 0.95)


@pytest.mark.parametrize(
    ("selection", "share"), [("validation alone", SIGNIFICANCE), ("validation, same gains", 0.13), ("test", 0.26)]
)
def test_p_values_of_a_picked_strength(selection: str, share: float) -> None:
    """One of 20 strengths without a gain, which have nothing in common: how often p ≤ 1/16.

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
    assert plausible(sum(p <= SIGNIFICANCE for p in found), share)


def papers_numbers(splits: int, seeds: int, apart: float, spread: float) -> list[str]:
    """Verdicts on studies whose paper had the same splits, other seeds, and a mean that is lower by ``apart``."""
    draw = np.random.default_rng([splits, seeds])
    difficulty = 80 + SPLIT * draw.normal(size=(STUDIES, splits, 1))
    ours = difficulty + spread * draw.normal(size=(STUDIES, splits, seeds))
    paper = difficulty - apart + spread * draw.normal(size=(STUDIES, splits, seeds))
    return [verdict(mine, float(theirs.mean())) for mine, theirs in zip(ours, paper, strict=True)]


@pytest.mark.parametrize(("splits", "seeds"), [(5, 5), (1, 10)])
def test_verdicts_on_the_paper_s_numbers(splits: int, seeds: int) -> None:
    """1.96 is a normal quantile and the deviation is estimated: errors are t's, 3 and 4 % on each side."""
    degrees = splits * (seeds - 1)
    errs = float(t.sf(1.96, degrees))
    equal = papers_numbers(splits, seeds, 0.0, 8.0)  # so noisy that none can be reproduced
    assert equal.count("reproduced") == 0
    assert plausible(equal.count("higher"), errs)
    assert plausible(equal.count("lower"), errs)
    at_margin = papers_numbers(splits, seeds, MARGIN, SEED)
    assert plausible(at_margin.count("reproduced"), errs)
    assert at_margin.count("lower") == 0
    assert papers_numbers(splits, seeds, 3 * MARGIN, SEED).count("higher") == STUDIES

    # Equal means are reproduced where |d| ≤ margin − 1.96 s √(2/n): the mean of it over s, from its quantiles.
    error = SEED * (2 / (splits * seeds)) ** 0.5
    noise = 1.96 * error * np.sqrt(chi2.ppf((np.arange(10_000) + 0.5) / 10_000, degrees) / degrees)
    power = float(np.mean(2 * norm.cdf(np.maximum(MARGIN - noise, 0) / error) - 1))
    assert plausible(papers_numbers(splits, seeds, 0.0, SEED).count("reproduced"), power)
