"""When a run stops and which epoch it reports: the vectorized rule against the rules written out for one run."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from propreg.engine.training.stopping import RULES, Rule, Stopper
from strategies import thorough

Name = Literal["official", "strict"]
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


def judged(rule: Name, runs: list[Counts], patience: list[int], max_epochs: int) -> list[Outcome]:
    """The engine's verdict on a batch; finished runs go on getting counts, as between two looks at a GPU."""
    stopper = Stopper([RULES[rule]], torch.tensor(patience), max_epochs)
    length = max(len(counts) for counts in runs)
    padded = torch.tensor([counts + [(10**6, 10**6)] * (length - len(counts)) for counts in runs])
    for epoch in range(length):
        stopper.take(padded[:, epoch, 0], padded[:, epoch, 1], torch.zeros(len(runs)))
    return [outcome(stopper, i) for i in range(len(runs))]


def outcome(stopper: Stopper, i: int, watch: int = 0) -> Outcome:
    """What a rule reports of a run."""
    found = stopper.watches[watch]
    return Outcome(int(found.val[i]), int(found.test[i]), int(found.epoch[i]), int(stopper.epochs[i]))


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
def test_those_who_report_are_known_at_once(batch: tuple[list[Counts], list[int], int]) -> None:
    """On the device the weights of the reported epoch are kept by this."""
    runs, patience, _ = batch
    vals = torch.tensor([[val for val, _ in counts] for counts in runs])
    for rule, alone in (("official", official), ("strict", strict)):
        device, epochs = Stopper([RULES[rule]], torch.tensor(patience), 10**6), [0] * len(runs)
        for epoch in range(1, vals.shape[1] + 1):
            (reported,) = device.take(vals[:, epoch - 1], vals[:, epoch - 1], torch.zeros(len(runs)))
            for i in reported.nonzero().flatten().tolist():
                epochs[i] = epoch
        assert epochs == [alone(c, p, vals.shape[1]).epoch for c, p in zip(runs, patience, strict=True)]


@thorough
@given(batches(), st.integers(1, 7))
def test_finished_runs_may_leave_the_batch(batch: tuple[list[Counts], list[int], int], every: int) -> None:
    runs, patience, max_epochs = batch
    stopper = Stopper([RULES["official"]], torch.tensor(patience), max_epochs)
    number, found = list(range(len(runs))), dict[int, Outcome]()
    for epoch in range(1, len(runs[0]) + 1):
        now = torch.tensor([runs[i][epoch - 1] for i in number]).view(-1, 2)
        if number:
            stopper.take(now[:, 0], now[:, 1], torch.zeros(len(number)))
        if epoch % every == 0 or epoch == len(runs[0]):
            for row, i in enumerate(number):
                found[i] = outcome(stopper, row)
            kept = (~stopper.stopped).nonzero().flatten()
            stopper.keep(kept)
            number = [number[row] for row in kept]
    for i, counts in enumerate(runs):
        assert found[i] == official(counts, patience[i], max_epochs)


Losses = list[float]


def at_the_end(name: str, counts: Counts, losses: Losses) -> int:
    """The epoch that a rule without patience reports, from all epochs at once."""
    vals = [val for val, _ in counts]
    return {
        "latest_best": len(vals) - vals[::-1].index(max(vals)),
        "first_best": vals.index(max(vals)) + 1,
        "lowest_val_loss": losses.index(min(losses)) + 1,
        "last": len(vals),
    }[name]


def with_losses(name: str, counts: Counts, losses: Losses, patience: int) -> int:
    """The epoch that a rule with losses and a stop of its own reports, written out for one run."""
    best, lowest, kept, reported, counter = -1, np.inf, np.inf, 0, 0
    for epoch, ((val, _), loss) in enumerate(zip(counts, losses, strict=True), 1):
        window = 1 if name == "last_on_rise" else 10
        before = losses[max(epoch - 1 - window, 0) : epoch - 1]
        risen = len(before) == window and loss > sum(before) / window
        counter += 1
        if name == "loss_or_accuracy":
            if loss <= lowest or val >= best:
                counter = 0
                if loss <= kept:
                    kept, reported = loss, epoch
        elif name.startswith("last_") or loss < lowest:
            counter, reported = 0, epoch
        best, lowest = max(best, val), min(lowest, loss)
        if name in ("val_loss", "loss_or_accuracy"):
            if counter >= patience:
                break
        elif risen and epoch > (100 if name == "loss_window" else window):
            break
    return reported


@thorough
@given(batches(), st.sampled_from(["latest_best", "official", "strict"]))
def test_every_rule_reports_what_it_would_alone(batch: tuple[list[Counts], list[int], int], first: str) -> None:
    """If the first one trains for as long: official and strict then stop at their own patience."""
    runs, patience, _ = batch
    length, rng = len(runs[0]), np.random.default_rng(len(runs))
    losses = rng.integers(1, 5, (len(runs), length)).astype(float)
    names = [first, *(name for name in RULES if name != first)]
    stopper = Stopper([RULES[name] for name in names], torch.tensor(patience), length)
    counts = torch.tensor(runs)
    for epoch in range(length):
        val, test = counts[:, epoch].unbind(1)
        stopper.take(val, test, torch.zeros(len(runs)), torch.from_numpy(losses[:, epoch]))
    for i, run in enumerate(runs):
        trained = {"official": official, "strict": strict}.get(first)
        epochs = trained(run, patience[i], length).epochs if trained else length
        seen = run[:epochs]
        assert int(stopper.epochs[i]) == epochs
        for k, name in enumerate(names):
            if name in ("official", "strict"):
                expected = (official if name == "official" else strict)(seen, patience[i], length).epoch
            elif RULES[name].losses and RULES[name].stops:
                expected = with_losses(name, seen, losses[i, :epochs].tolist(), patience[i])
            else:
                expected = at_the_end(name, seen, losses[i, :epochs].tolist())
            found = outcome(stopper, i, k)
            assert (found.epoch, found.val, found.test) == (expected, *seen[expected - 1]), name


@pytest.mark.parametrize(("name", "epochs"), [("loss_window", 101), ("last_in_window", 11), ("last_on_rise", 2)])
def test_windows_open_after_so_many_epochs(name: str, epochs: int) -> None:
    """Of a loss that rises all the time."""
    stopper = Stopper([RULES[name]], torch.tensor([0]), 200)
    for epoch in range(1, 151):
        stopper.take(torch.tensor([1]), torch.tensor([1]), torch.zeros(1), torch.tensor([float(epoch)]))
    assert int(stopper.epochs) == epochs
    assert int(stopper.watches[0].epoch) == (1 if name == "loss_window" else epochs)


def test_a_run_whose_loss_is_not_finite_stops() -> None:
    stopper = Stopper([RULES["official"]], torch.tensor([9, 9]), 100)
    for epoch, loss in enumerate(([1.0, 1.0], [1.0, torch.nan], [1.0, 1.0]), 1):
        val = torch.tensor([epoch, epoch])
        stopper.take(val, val, torch.tensor(loss))
    assert (stopper.watches[0].epoch.tolist(), stopper.epochs.tolist()) == ([3, 2], [3, 2])
    assert stopper.stopped.tolist() == [False, True]


def test_a_rule_of_ones_own_reads_the_latest_losses() -> None:
    """PyG's APPNP: the lowest validation loss, until it exceeds the mean of the two before; here after epoch 3."""
    window = Rule(
        "window",
        lambda watch: watch.losses[:, -1] < watch.lowest,
        stops=lambda watch: (watch.at > 3) & (watch.losses[:, -1] > watch.losses[:, :-1].mean(1)),
        losses=3,
    )
    stopper = Stopper([window], torch.tensor([0, 0]), 10)
    losses = torch.tensor([[5.0, 5.0], [4.0, 6.0], [6.0, 7.0], [4.5, 3.0], [3.0, 6.0], [9.0, 2.0], [1.0, 1.0]])
    for epoch, loss in enumerate(losses, 1):
        val = torch.full((2,), epoch)
        stopper.take(val, val, torch.zeros(2), loss)
    assert stopper.epochs.tolist() == [6, 5]
    assert stopper.watches[0].epoch.tolist() == [5, 4]
    assert stopper.watches[0].loss.tolist() == [3.0, 3.0]
