"""When a run stops and which epoch it reports: the vectorised rule against the rules written out for one run."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from propreg.engine import Protocol
from propreg.engine.state import Patience
from propreg.engine.stopping import Stopper
from strategies import thorough

Rule = Literal["official", "strict"]
Counts = list[tuple[int, int]]


@dataclass(frozen=True)
class Outcome:
    """What a run reports: its best validation count, the test count and epoch that go with it, and its last epoch."""

    val: int
    test: int
    epoch: int
    epochs: int


def official(counts: Counts, patience: int, max_epochs: int) -> Outcome:
    """The released loop: a strict gain resets the counter, a tie overwrites what is reported and nothing else."""
    best, reported, counter = 0, (0, 0), 0
    for epoch, (val, test) in enumerate(counts, 1):
        if val > best:
            counter = 0
        if val >= best:
            best, reported = val, (test, epoch)
        else:
            counter += 1
        if counter > patience or epoch == max_epochs:
            break
    return Outcome(best, *reported, epoch)


def strict(counts: Counts, patience: int, max_epochs: int) -> Outcome:
    """The paper's words: stop when validation accuracy has not increased for so many epochs; the first best counts."""
    best, reported = -1, (0, 0)
    for epoch, (val, test) in enumerate(counts, 1):
        if val > best:
            best, reported = val, (test, epoch)
        if epoch - reported[1] >= patience or epoch == max_epochs:
            break
    return Outcome(best, *reported, epoch)


def judged(rule: Rule, runs: list[Counts], patience: list[int], max_epochs: int) -> list[Outcome]:
    """The engine's verdict on a batch; finished runs go on getting counts, as between two looks at a GPU."""
    stopper = Stopper(Protocol(rule, max_epochs), np.array(patience, np.int64))
    length = max(len(counts) for counts in runs)
    padded = np.array([counts + [(10**6, 10**6)] * (length - len(counts)) for counts in runs])
    for epoch in range(1, length + 1):
        stopper.update(epoch, padded[:, epoch - 1, 0], padded[:, epoch - 1, 1])
    return [
        Outcome(int(stopper.best[i]), int(stopper.best_test[i]), int(stopper.best_epoch[i]), int(stopper.epochs[i]))
        for i in range(len(runs))
    ]


def numbered(vals: list[int]) -> Counts:
    """Test counts that tell the epochs apart."""
    return [(val, 100 + epoch) for epoch, val in enumerate(vals, 1)]


@pytest.mark.parametrize(
    ("vals", "patience", "epoch", "epochs"),
    [
        # The third worse epoch is one more than the patience of 2.
        ([5, 4, 4, 4, 4], 2, 1, 4),
        # Ties move the report to the latest and neither reset the counter nor advance it.
        ([5, 4, 5, 4, 5, 5, 4, 9], 2, 6, 7),
        # A strict gain resets.
        ([5, 4, 4, 6, 4, 4, 4, 9], 2, 4, 7),
        # Nothing but ties never stops by itself.
        ([5, 5, 5, 5, 5, 5], 0, 6, 6),
        # Patience 0: the first worse epoch is the last.
        ([3, 4, 3, 9], 0, 2, 3),
        # Nobody right at all ties with the start.
        ([0, 0, 0, 1, 0, 0], 1, 4, 6),
        # Falling all the way.
        ([9, 8, 7, 6, 5], 3, 1, 5),
    ],
)
def test_official_sequences_by_hand(vals: list[int], patience: int, epoch: int, epochs: int) -> None:
    counts, cap = numbered(vals), len(vals)
    expected = Outcome(vals[epoch - 1], 100 + epoch, epoch, epochs)
    assert official(counts, patience, cap) == expected
    assert judged("official", [counts], [patience], cap) == [expected]


@pytest.mark.parametrize(
    ("vals", "patience", "epoch", "epochs"),
    [
        ([5, 4, 4, 4, 4], 2, 1, 3),
        ([5, 5, 5, 9], 2, 1, 3),  # a tie is no increase
        ([5, 4, 6, 4, 4, 9], 2, 3, 5),
        ([1, 2, 3, 4, 5], 1, 5, 5),
        ([0, 0, 0], 2, 1, 3),
    ],
)
def test_strict_sequences_by_hand(vals: list[int], patience: int, epoch: int, epochs: int) -> None:
    counts, cap = numbered(vals), len(vals)
    expected = Outcome(vals[epoch - 1], 100 + epoch, epoch, epochs)
    assert strict(counts, patience, cap) == expected
    assert judged("strict", [counts], [patience], cap) == [expected]


def test_the_official_patience_ends_at_the_201st_worse_epoch() -> None:
    vals = [7] + [6, 7] * 150 + [6] * 51
    counts = numbered(vals)
    expected = Outcome(7, 100 + 301, 301, 352)  # 150 worse epochs among ties, then 51 in a row
    assert judged("official", [counts], [200], 10_000) == [expected]
    assert official(counts, 200, 10_000) == expected


def test_the_cap_ends_a_run_that_would_go_on() -> None:
    rising = numbered(list(range(1, 9)))
    assert judged("official", [rising], [200], 5) == [Outcome(5, 105, 5, 5)]
    assert judged("strict", [rising], [200], 5) == [Outcome(5, 105, 5, 5)]


@st.composite
def batches(draw: st.DrawFn) -> tuple[list[Counts], list[int], int]:
    """Runs of one length with few different counts, so that ties are frequent, each with its own patience."""
    length, number = draw(st.integers(1, 60)), draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    levels = draw(st.integers(1, 6))
    counts = rng.integers(0, (levels, 50), (number, length, 2), endpoint=True).tolist()
    runs = [[(val, test) for val, test in run] for run in counts]
    patience = draw(st.lists(st.integers(0, 12), min_size=number, max_size=number))
    return runs, patience, length + draw(st.integers(-5, 5).filter(lambda d: length + d >= 1))


@thorough
@given(batches())
def test_a_batch_is_judged_as_its_runs_are(batch: tuple[list[Counts], list[int], int]) -> None:
    runs, patience, max_epochs = batch
    for rule, alone in (("official", official), ("strict", strict)):
        # Patience 0 of the strict rule is over with the first epoch: an increase cannot come in no epochs.
        expected = [alone(counts, p, max_epochs) for counts, p in zip(runs, patience, strict=True)]
        assert judged(rule, runs, patience, max_epochs) == expected  # type: ignore[arg-type]


@thorough
@given(batches())
def test_the_rule_on_the_device_reports_the_same_epochs(batch: tuple[list[Counts], list[int], int]) -> None:
    runs, patience, _ = batch
    vals = torch.tensor([[val for val, _ in counts] for counts in runs])
    for rule, alone in (("official", official), ("strict", strict)):
        device, epochs = Patience.fresh(patience, torch.device("cpu")), [0] * len(runs)
        for epoch in range(1, vals.shape[1] + 1):
            for i in device.recorded(vals[:, epoch - 1], rule == "official").nonzero().flatten().tolist():
                epochs[i] = epoch
        assert epochs == [alone(c, p, vals.shape[1]).epoch for c, p in zip(runs, patience, strict=True)]


@thorough
@given(batches(), st.integers(1, 7))
def test_finished_runs_may_leave_the_batch(batch: tuple[list[Counts], list[int], int], every: int) -> None:
    runs, patience, max_epochs = batch
    stopper = Stopper(Protocol("official", max_epochs), np.array(patience, np.int64))
    number, found = list(range(len(runs))), dict[int, tuple[int, ...]]()
    for epoch in range(1, len(runs[0]) + 1):
        now = np.array([runs[i][epoch - 1] for i in number])
        if number:
            stopper.update(epoch, now[:, 0], now[:, 1])
        if epoch % every == 0 or epoch == len(runs[0]):
            for row, i in enumerate(number):
                found[i] = tuple(int(v[row]) for v in (stopper.best, stopper.best_test, stopper.best_epoch))
            kept = np.flatnonzero(~stopper.stopped)
            stopper.keep(kept)
            number = [number[row] for row in kept]
    for i, counts in enumerate(runs):
        expected = official(counts, patience[i], max_epochs)
        assert found[i] == (expected.val, expected.test, expected.epoch)
