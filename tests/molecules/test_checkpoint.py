"""A batch in training on disk: whenever it ends, it goes on to the same bits."""

import itertools
import os
import random
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import torch

import quick_start
from molecules.made_up import molecules
from propreg.engine.models.molecules import MoleculeModel
from propreg.molecules import checkpoint
from propreg.molecules.checkpoint import Checkpoint
from propreg.molecules.regularizers import Form
from propreg.molecules.steps import MoleculeProtocol
from propreg.molecules.tasks import MoleculeTask
from propreg.molecules.train import MoleculeResult, MoleculeRun, train_molecules
from propreg.store.store import Store
from propreg.study.execute.runner import Stop, reproduce
from propreg.study.execute.trainer import Trainer
from propreg.study.spec.batches import cut
from propreg.study.spec.experiment import read_experiment
from study.sweeping import exported

EPOCHS = 5
RUNS = [MoleculeRun(seed, strength) for seed in (0, 1) for strength in (0.0, 0.5)]
GIN, GCN = MoleculeModel("mol-gin", 8, 2, virtual_node=True), MoleculeModel("mol-gcn", 8, 2)
TASK = MoleculeTask(molecules(), "regression", torch.device("cpu"))
Results = dict[int, MoleculeResult]


class Killed(BaseException):
    """In the place of a kill."""


def trained(kept: Checkpoint | None, model: MoleculeModel = GIN, form: Form = "plain", stop: object = None) -> Results:
    stop = stop if callable(stop) else lambda: False
    protocol = MoleculeProtocol(EPOCHS, 4)
    return dict(train_molecules(TASK, model, form, RUNS, protocol, stop=stop, keep_weights=True, checkpoint=kept))


def at(epoch: int, action: Callable[[], bool]) -> Callable[[], bool]:
    """``action`` at the end of this epoch of the call."""
    calls = itertools.count(1)
    return lambda: action() if next(calls) == epoch else False


def kill() -> bool:
    raise Killed


def same(found: Results, expected: Results) -> None:
    assert found.keys() == expected.keys()
    for place, result in found.items():
        for name, value in expected[place].weights.items():
            assert torch.equal(result.weights[name], value), name
        assert np.array_equal(result.val, expected[place].val)
        assert np.array_equal(result.test, expected[place].test)


@pytest.mark.parametrize(("model", "form"), [(GIN, "paper"), (GCN, "reference")])
def test_stopped_or_killed_at_any_epoch_it_ends_in_the_same_bits(
    tmp_path: Path, model: MoleculeModel, form: Form
) -> None:
    expected = trained(None, model, form)
    for epoch in range(1, EPOCHS + 1):
        stopped = Checkpoint(tmp_path / "made" / "a.safetensors", seconds=1e9)
        assert trained(stopped, model, form, at(epoch, lambda: True)) == {}
        same(trained(stopped, model, form, at(EPOCHS - epoch + 1, kill)), expected)
        killed = Checkpoint(tmp_path / "made" / "b.safetensors", seconds=0)
        with pytest.raises(Killed):
            trained(killed, model, form, at(epoch, kill))
        assert killed.path.exists() == (epoch > 1)
        same(trained(killed, model, form), expected)
        assert list(tmp_path.iterdir()) == [], "the files are gone, and the folder that was made for one"


def test_it_is_written_when_it_is_due(tmp_path: Path) -> None:
    kept = Checkpoint(tmp_path / "a.safetensors", seconds=1e9)
    with pytest.raises(Killed):
        trained(kept, stop=at(3, kill))
    assert not kept.path.exists()


def test_it_stays_until_all_results_are_taken(tmp_path: Path) -> None:
    kept = Checkpoint(tmp_path / "a.safetensors", seconds=0)
    results = train_molecules(TASK, GIN, "plain", RUNS, MoleculeProtocol(2, 4), checkpoint=kept)
    for _ in RUNS:
        next(results)
    assert kept.path.exists()
    assert next(results, None) is None
    assert not kept.path.exists()


@pytest.mark.parametrize("what", ["damaged", "of other code", "of another model"])
def test_a_file_that_would_not_give_the_same_bits_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    kept = Checkpoint(tmp_path / "a.safetensors", seconds=0)
    other = GIN if what != "of another model" else GCN
    with monkeypatch.context() as patch:
        if what == "of other code":
            patch.setattr(checkpoint, "engine_digest", lambda *_: "other")
        trained(kept, other, stop=at(2, lambda: True))
    if what == "damaged":
        kept.path.write_bytes(kept.path.read_bytes()[:-9])
    reason = {"of other code": "with another code", "of another model": "with another settings"}.get(what, "damaged")
    with pytest.warns(UserWarning, match=rf"a\.safetensors.*{reason}.*The batch is trained from its first epoch\."):
        found = trained(kept)
    same(found, trained(None))


SWEEP = """
[[parts]]
datasets = ["ogbg-molfreesolv"]
models = ["mol-gcn"]
methods = ["plain", "preg-paper"]
strengths = [0.5]
split_kind = "scaffold"
splits = 1
seeds = 1
rule = "first_best"
max_epochs = 4
lr = 0.001
"""


def sweep(path: Path, stop: Stop | None = None) -> None:
    """Train it, kept after each epoch."""
    checkpoint.SECONDS = 0.0
    with Store(path) as store:
        batches = cut(read_experiment("mine", SWEEP).lines)
        reproduce(batches, store, lambda: Trainer("cpu", folder=path.parent / "in"), stop)


def written(folder: Path) -> dict[str, int]:
    """The kept batches, and when each was written."""
    found = {}
    for file in (folder / "in").glob("*.safetensors"):
        with suppress(FileNotFoundError):
            found[file.name] = file.stat().st_mtime_ns
    return found


class AfterCalls(Stop):
    """True at a call; never out of time."""

    def __init__(self, calls: int) -> None:
        super().__init__()
        self.calls = calls

    def __call__(self) -> bool:
        self.calls -= 1
        if self.calls <= 0:
            self.asked.set()
        return super().__call__()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="processes are forked and killed the way Linux does it")
def test_a_sweep_that_is_stopped_and_killed_ends_in_the_same_bytes(tmp_path: Path) -> None:
    if not (Path(os.environ.get("PROPREG_DATA", "")) / "ogbg_molfreesolv.npz").exists():
        pytest.skip("the benchmark files are not there: set PROPREG_DATA to the folder that holds ogbg_molfreesolv.npz")
    alone, path, draw = tmp_path / "alone.sqlite", tmp_path / "store.sqlite", random.Random(0)
    sweep(alone)
    seen = set[int]()
    for number in range(8):
        before, until = written(tmp_path), time.monotonic() + 60
        process = quick_start.begin(sweep, path)
        while number % 4 and process.is_alive() and written(tmp_path) in (before, {}) and time.monotonic() < until:
            process.join(0.01)
        process.join(draw.uniform(0.0, 0.1))
        process.kill()
        process.join(300)
        seen.add(len(written(tmp_path)))
    sweep(path, AfterCalls(4))
    sweep(path)
    assert 1 in seen, "a kill should have come while a batch was in training"
    assert exported(path) == exported(alone)
    assert not (tmp_path / "in").exists()
