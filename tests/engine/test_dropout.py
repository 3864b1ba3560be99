"""Dropout masks from counters: the right rate, nothing in common that should not be, and the same in any batch."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
import torch
from torch import Tensor

from engine.follow import Run, drawn
from engine.graphs import problem
from propreg.engine import Method, Model, Protocol, Replica
from propreg.engine.ops.dropout import Masks
from propreg.engine.ops.random import mask_keys, stream_key

SIZE = 200_000
RUN = Replica(split="a")


def masks(rates: list[float], epoch: int = 1, site: int = 4, seeds: list[int] | None = None) -> Masks:
    """Masks of runs with consecutive seeds, unless they are given."""
    seeds = list(range(len(rates))) if seeds is None else seeds
    streams = [stream_key("digest", replace(RUN, seed=s), Model(), "dropout") for s in seeds]
    keys = mask_keys(np.array(streams, np.uint64), epoch, site)
    return Masks(torch.from_numpy(keys), torch.tensor(rates, dtype=torch.float64))


def kept(drawn: Masks, size: int = SIZE) -> Tensor:
    """Which elements are kept, bool [R, size]."""
    return drawn.factors(size, torch.float64) != 0


def deviations(shares: Tensor | float, expected: float, number: int) -> float:
    """The largest distance from the expected share, in standard deviations."""
    spread = (expected * (1 - expected) / number) ** 0.5
    return float((torch.as_tensor(shares) - expected).abs().max() / spread)


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5, 0.6, 0.9, 0.99])
def test_the_rate_is_kept_to(rate: float) -> None:
    keep = kept(masks([rate] * 8))
    assert deviations(keep.double().mean(1), 1 - rate, SIZE) < 4
    # 16 bits a decision: also the low and the high half of each word on its own, and each block of a few elements
    for part in (keep[:, ::2], keep[:, 1::2]):
        assert deviations(part.double().mean(1), 1 - rate, SIZE // 2) < 4
    for block in (64, 1000):
        counts = keep[:, : SIZE // block * block].reshape(8, -1, block).sum(-1).double()
        assert float(counts.var()) == pytest.approx(block * rate * (1 - rate), rel=0.1)


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.6])
def test_the_expectation_is_left_as_it_is(rate: float) -> None:
    factors = masks([rate]).factors(SIZE, torch.float64)
    scale = float(factors.max())
    # A rate of 16 bits: what survives is scaled by the share that really survives.
    really = round(rate * 65536) / 65536
    assert scale == pytest.approx(1 / (1 - really), rel=1e-12)
    assert scale == pytest.approx(1 / (1 - rate), rel=2e-5)
    assert set(factors.flatten().tolist()) == {0.0, scale}
    assert float(factors.mean()) == pytest.approx(1, abs=4 * (rate / (1 - rate) / SIZE) ** 0.5)


def scores(pairs: Iterable[tuple[Tensor, Tensor]], rate: float) -> Tensor:
    """How far each pair of masks is from agreeing as often as chance has it, in standard deviations."""
    agree = rate * rate + (1 - rate) * (1 - rate)
    found = [((a == b).double().mean() - agree) / (agree * (1 - agree) / a.numel()) ** 0.5 for a, b in pairs]
    return torch.stack(found)


def independent(pairs: Iterable[tuple[Tensor, Tensor]], rate: float) -> None:
    """The scores of many pairs are as wide as a normal distribution, and none is five deviations out."""
    found = scores(pairs, rate)
    assert float(found.abs().max()) < 5
    assert abs(float(found.square().mean()) - 1) < 5 * (2 / len(found)) ** 0.5


@pytest.mark.parametrize("rate", [0.5, 0.6])
@pytest.mark.parametrize("shift", [0, 1, 2])
def test_masks_of_replicas_epochs_and_places_have_nothing_in_common(rate: float, shift: int) -> None:
    rows = [kept(masks([rate], epoch, site, [seed]))[0] for seed in (0, 1) for epoch in (1, 2, 300) for site in (4, 5)]
    independent(((a[: SIZE - shift], b[shift:]) for a, b in combinations(rows, 2)), rate)


@pytest.mark.parametrize("rate", [0.5, 0.6])
@pytest.mark.parametrize("distance", [1, 2, 3, 4, 7, 8, 16, 31, 32, 64, 1000, 65536])
def test_neighboring_elements_have_nothing_in_common(rate: float, distance: int) -> None:
    independent(((row[:-distance], row[distance:]) for row in kept(masks([rate] * 8))), rate)


def test_runs_of_eight_elements_are_as_frequent_as_each_other() -> None:
    # Chi-square over the 256 ways in which eight neighbors fall, for words that share a key.
    bits = kept(masks([0.5] * 6)).reshape(6, -1, 8).long()
    patterns = (bits * 2 ** torch.arange(8)).sum(-1)
    expected = patterns.shape[1] / 256
    for row in patterns:
        counts = torch.bincount(row, minlength=256).double()
        chi = float(((counts - expected) ** 2 / expected).sum())
        assert abs(chi - 255) < 4 * (2 * 255) ** 0.5


def test_an_element_falls_as_often_over_epochs_as_over_places() -> None:
    small = torch.stack([kept(masks([0.5] * 8, epoch), 64) for epoch in range(1, 301)], 1)  # [replicas, epochs, 64]
    often = small.sum(1).double()
    assert float((often - 150).abs().max()) < 5 * 75**0.5
    chi = float(((often - 150) ** 2 / 75).sum())
    assert abs(chi - 512) < 4 * (2 * 512) ** 0.5
    for lag in (1, 2, 64):
        independent(((row[:-lag], row[lag:]) for row in small), 0.5)


def test_both_ends_of_the_rate() -> None:
    factors = masks([0.0, 0.999, 1 - 2**-16]).factors(SIZE, torch.float64)
    assert torch.equal(factors[0], torch.ones(SIZE, dtype=torch.float64))
    assert deviations(float((factors[1] != 0).double().mean()), 0.001, SIZE) < 4
    assert float(factors[2].max()) in (0.0, 65536.0)
    assert bool(factors.isfinite().all())


@pytest.mark.parametrize("rate", [1 - 1e-7, 1.0])
def test_a_rate_of_1_leaves_nothing_and_no_infinity(rate: float) -> None:
    factors = masks([rate]).factors(1000, torch.float64)
    assert bool(factors.isfinite().all())
    assert int((factors != 0).sum()) <= 2


def test_a_rate_of_1_drops_everything() -> None:
    assert not masks([1.0]).factors(300_000, torch.float64).any()


def test_each_replica_has_its_own_rate() -> None:
    rates = [0.0, 0.2, 0.5, 0.8]
    together = masks(rates).factors(1001, torch.float64)
    for i, rate in enumerate(rates):
        assert torch.equal(masks([rate], seeds=[i]).factors(1001, torch.float64)[0], together[i])


def test_a_mask_depends_neither_on_the_batch_nor_on_its_length() -> None:
    rates = [0.5] * 7
    together = masks(rates).factors(999, torch.float64)
    for i in range(7):
        alone = masks([0.5], seeds=[i])
        assert torch.equal(alone.factors(999, torch.float64)[0], together[i])
        assert torch.equal(alone.factors(400, torch.float64)[0], together[i, :400])


def test_a_larger_rate_drops_what_the_smaller_one_did_and_more() -> None:
    low, high = kept(masks([0.3])), kept(masks([0.6]))
    assert not bool((high & ~low).any())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_both_precisions_draw_the_same(dtype: torch.dtype) -> None:
    factors = masks([0.6, 0.5]).factors(5000, dtype)
    assert factors.dtype == dtype
    assert torch.equal(factors != 0, kept(masks([0.6, 0.5]), 5000))


PLACES = ("input", "hidden1", "hidden2", "hidden3", "attention0", "attention1")


def test_every_place_and_pass_of_a_network_has_its_own_mask() -> None:
    model = Model("gat", input_dropout=0.5, attention_dropout=0.5)
    state = Run(problem(), model, Method(), [RUN], Protocol()).state
    rows: list[Tensor] = []
    for epoch in (1, 2):
        for number in (0, 1):
            rows += [kept(drawn(state, epoch, number, place), 20_000)[0] for place in PLACES]
    independent(combinations(rows, 2), 0.5)


@pytest.mark.parametrize("depth", [20, 40, 70])
def test_a_deep_network_does_not_use_a_mask_twice(depth: int) -> None:
    state = Run(problem(), Model("gcn", hidden=4), Method(), [RUN], Protocol()).state
    seen = set()
    for epoch in (1, 2, 3):
        for number in (0, 1):
            for place in ("input", *(f"hidden{i}" for i in range(1, depth))):
                seen.add(tuple(drawn(state, epoch, number, place).keys.flatten().tolist()))
    assert len(seen) == 3 * 2 * depth
