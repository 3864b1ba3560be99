"""Seeds of P-reg on a GPU: different numbers, every set of them equally likely."""

from collections import Counter
from itertools import combinations

import pytest
import torch
from scipy.stats import chisquare

from propreg.scale.randomness import distinct_numbers, torch_generator

CPU = torch.device("cpu")


@pytest.mark.parametrize(("count", "below"), [(2, 33), (2, 5)])  # by draws, and by a permutation
def test_every_set_is_equally_likely(count: int, below: int) -> None:
    generator = torch_generator([0], CPU)
    sets = [tuple(sorted(distinct_numbers(count, below, generator).tolist())) for _ in range(6000)]
    drawn = Counter(sets)
    possible = list(combinations(range(below), count))
    assert set(drawn) <= set(possible)
    assert chisquare([drawn[each] for each in possible]).pvalue > 1e-3


@pytest.mark.parametrize(("count", "below"), [(1, 1), (1, 17), (300, 4801), (300, 300), (5, 10**12)])
def test_numbers_differ_and_repeat_with_their_seed(count: int, below: int) -> None:
    first, again, other = (distinct_numbers(count, below, torch_generator([seed], CPU)) for seed in (1, 1, 2))
    assert len(set(first.tolist())) == count
    assert 0 <= first.min() <= first.max() < below
    assert torch.equal(first, again)
    assert below == 1 or not torch.equal(first, other)


def test_of_equal_draws_the_first_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    draws = torch.tensor([0.5, 0.25, 0.5, 0.25, 0.75, *[0.5] * 65], dtype=torch.float64)
    monkeypatch.setattr(torch, "rand", lambda *_, **__: draws.clone())
    assert distinct_numbers(3, 100, torch.Generator()).tolist() == [50, 25, 75]
