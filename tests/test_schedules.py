"""Schedules: pure functions of the epoch, held against their formulas."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from propreg import annealed, constant, cosine_warmup, linear_warmup
from strategies import thorough

strengths = st.floats(0.0, 1.0)
epochs = st.integers(1, 10_000)
SCHEDULES: list[Callable[[float, int], float]] = [
    constant,
    annealed,
    partial(linear_warmup, epochs=5),
    partial(cosine_warmup, epochs=5),
]


@thorough
@given(mu=st.floats(0.0, 1e6), epoch=epochs)
def test_constant_stays(mu: float, epoch: int) -> None:
    assert constant(mu, epoch) == mu


@thorough
@given(mu=strengths, epoch=epochs)
def test_annealed_is_the_papers_power(mu: float, epoch: int) -> None:
    """Appendix C: μ^t with t = 1/epoch; it starts at μ, never falls and stays within [μ, 1]."""
    value = annealed(mu, epoch)
    assert value == pytest.approx(mu ** (1 / epoch), rel=1e-15)
    assert mu <= value <= 1.0
    assert annealed(mu, 1) == mu
    assert annealed(mu, epoch + 1) >= value


@pytest.mark.parametrize("mu", [1e-6, 0.01, 0.5, 0.99])
def test_annealed_rises_to_one_whatever_mu_is(mu: float) -> None:
    """μ sets how fast the regularizer arrives and not how strong it ends: the paper does not say so."""
    assert annealed(mu, 10**6) == pytest.approx(1.0, abs=2e-5)


def test_annealed_keeps_zero_and_one() -> None:
    assert [annealed(0.0, epoch) for epoch in (1, 2, 1000)] == [0.0, 0.0, 0.0]
    assert [annealed(1.0, epoch) for epoch in (1, 2, 1000)] == [1.0, 1.0, 1.0]


@thorough
@given(mu=st.floats(0.0, 100.0), epoch=st.integers(1, 300), length=st.integers(1, 200))
def test_warmups_are_their_formulas(mu: float, epoch: int, length: int) -> None:
    progress = min(epoch / length, 1.0)
    assert linear_warmup(mu, epoch, epochs=length) == pytest.approx(mu * progress, rel=1e-14)
    cosine = mu * (1 - math.cos(math.pi * progress)) / 2
    assert cosine_warmup(mu, epoch, epochs=length) == pytest.approx(cosine, rel=1e-14, abs=1e-300)


@pytest.mark.parametrize("schedule", [linear_warmup, cosine_warmup])
def test_warmups_rise_to_mu_and_stay(schedule: object) -> None:
    assert callable(schedule)
    values = [schedule(0.7, epoch, epochs=10) for epoch in range(1, 31)]
    assert values == sorted(values)
    assert 0 < values[0] < 0.7
    assert all(value == 0.7 for value in values[9:])
    assert schedule(0.7, 1, epochs=1) == 0.7


def test_the_cosine_starts_slower_than_the_line_and_meets_it_half_way() -> None:
    assert cosine_warmup(1.0, 2, epochs=10) < linear_warmup(1.0, 2, epochs=10)
    assert cosine_warmup(1.0, 5, epochs=10) == pytest.approx(linear_warmup(1.0, 5, epochs=10))
    assert cosine_warmup(1.0, 8, epochs=10) > linear_warmup(1.0, 8, epochs=10)


@pytest.mark.parametrize("mu", [1.0000001, 2.0, 50.0])
def test_annealed_refuses_a_mu_above_one(mu: float) -> None:
    with pytest.raises(ValueError, match=f"mu must lie between 0 and 1 for annealed, got {mu}"):
        annealed(mu, 3)


@pytest.mark.parametrize("mu", [-0.1, -1e-9, math.nan, math.inf, -math.inf])
def test_every_schedule_refuses_a_bad_mu(mu: float) -> None:
    for schedule in SCHEDULES:
        with pytest.raises(ValueError, match=r"mu must be a finite number of at least 0, got .*"):
            schedule(mu, 1)


@pytest.mark.parametrize("epoch", [0, -1, math.nan])
def test_every_schedule_counts_epochs_from_one(epoch: Any) -> None:
    for schedule in SCHEDULES:
        with pytest.raises(ValueError, match=f"epoch must be at least 1, got {epoch}.*count from 1"):
            schedule(0.5, epoch)


@pytest.mark.parametrize("length", [0, -3])
def test_a_warmup_has_at_least_one_epoch(length: int) -> None:
    for schedule in (linear_warmup, cosine_warmup):
        with pytest.raises(ValueError, match=f"epochs must be at least 1.*got {length}"):
            schedule(0.5, 1, epochs=length)
