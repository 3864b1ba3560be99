"""Runs of a user's own module side by side, in forked processes: the same as one after another."""

import multiprocessing
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import propreg.fitting.fit as fitting
from fitting.own_modules import DATA, QUICK, Base, Scaled
from fitting.test_raising import BrokenError, Raises, RaisesAlways
from fitting.test_resume import same
from propreg.engine import Protocol, Replica
from propreg.engine.models.user_module import OwnNetwork
from propreg.engine.training import processes
from propreg.fitting import together
from propreg.fitting.fit import fit
from propreg.fitting.result import FitResult
from propreg.fitting.together import processes_for

pytestmark = pytest.mark.skipif(not hasattr(os, "fork") or torch.cuda.is_available(), reason="nothing is forked here")
HERE = os.getpid()


@pytest.fixture(autouse=True)
def two(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Two processes, however few the epochs."""
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    monkeypatch.setattr(fitting, "processes_for", lambda *_: 2)
    yield
    assert torch.get_num_threads() == 2
    torch.set_num_threads(threads)
    assert not multiprocessing.active_children()


def alone(model: Any, **more: Any) -> FitResult:
    """The fit in this process, with one thread."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(fitting, "processes_for", lambda *_: 1)
        torch.set_num_threads(1)
        try:
            return fit(DATA, model, **{**QUICK, **more})
        finally:
            torch.set_num_threads(2)


@pytest.mark.parametrize("factory", [Base, Scaled])
def test_runs_have_the_bits_of_runs_one_after_another(monkeypatch: pytest.MonkeyPatch, factory: Any) -> None:
    begun, stacked = iter(range(10)), OwnNetwork.stacked
    with monkeypatch.context() as patched:
        patched.setattr(OwnNetwork, "stacked", lambda *given: (next(begun), stacked(*given))[1])
        result = fit(DATA, factory, **QUICK)
    assert next(begun) == 1  # of the checks before the training
    same(result, alone(factory))
    assert result.model(DATA.x, DATA.edge_index).shape == (DATA.num_nodes, 3)


def test_a_run_that_raises_is_a_failed_run() -> None:
    with pytest.warns(UserWarning, match=r"2 of 4 runs \(seed 1\) raised an exception \(.*BrokenError: the second"):
        result = fit(DATA, Raises, **QUICK)
    assert [run.failed for run in result.runs] == [False, True] * 2
    assert "raise self.error" in result.runs[1].error
    with pytest.raises(BrokenError, match="the second seed") as caught:
        fit(DATA, RaisesAlways, **QUICK)
    assert "raise self.error" in caught.value.__notes__[0]
    with pytest.raises(BrokenError):
        fit(DATA, Raises, on_error="raise", **QUICK)


class Killed(Base):
    """Seed 1 does not survive beside others."""

    def __init__(self) -> None:
        super().__init__()
        self.dies = torch.initial_seed() == 1

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        if self.dies and os.getpid() != HERE:
            self.die()
        return super().forward(x, edge_index)

    def die(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


class NoMemory(Killed):
    """As torch says it."""

    def die(self) -> None:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes.")


def test_what_does_not_fit_beside_others_is_trained_alone() -> None:
    same(fit(DATA, NoMemory, **QUICK), alone(Base))
    with pytest.warns(UserWarning, match="A training process was killed, perhaps for lack of memory"):
        killed = fit(DATA, Killed, **QUICK)
    same(killed, alone(Base))


class InPlace(Base):
    """Writes into the features, once it trains in another process."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        if os.getpid() != HERE:
            x.mul_(1.5)
        return super().forward(x, edge_index)


def test_a_module_that_changes_its_input_is_refused() -> None:
    with pytest.raises(ValueError, match="the module changes x in place"):
        fit(DATA, InPlace, **QUICK)


def test_an_interrupted_fit_keeps_each_run_and_goes_on(tmp_path: Path) -> None:
    trained: list[Any] = []

    def second(run: Any) -> None:
        trained.append(run.replica)
        assert len(list(tmp_path.glob("*/*.safetensors"))) == len(trained)
        if len(trained) == 2:
            raise KeyboardInterrupt

    partial = fit(DATA, Base, resume=tmp_path, callbacks=[second], **QUICK)
    assert (partial.finished, len(partial.runs)) == (False, 2)
    again: list[Any] = []
    same(fit(DATA, Base, resume=tmp_path, callbacks=[again.append], **QUICK), alone(Base))
    assert len(again) == 2
    assert not {run.replica for run in again} & {*trained}


def test_a_time_limit_ends_them(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Any] = []
    monkeypatch.setattr(processes, "TICK", 0.0)
    monkeypatch.setattr(fitting, "monotonic", lambda: time.monotonic() + 1e6 * len(found))
    result = fit(DATA, Base, time_limit=1e5, callbacks=[found.append], **{**QUICK, "seeds": 20})
    assert not result.finished
    assert len(result.runs) < 40


def test_only_longer_fits_are_forked_and_only_where_memory_takes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(together, "can_fork", lambda: True)
    monkeypatch.setattr(together, "cores", lambda: 8)
    monkeypatch.setattr(together, "available_bytes", lambda: 10 * 10**9)
    monkeypatch.setattr(together, "peak_bytes", lambda: 10**9)
    ten, protocol = [Replica(seed, patience=100) for seed in range(10)], Protocol(max_epochs=1000)
    assert processes_for(ten, protocol) == 2  # threads of torch
    assert processes_for(ten, Protocol(max_epochs=99)) == 1
    assert processes_for(ten[:9], protocol) == 1
    torch.set_num_threads(4)
    assert processes_for(ten, protocol) == 4
    monkeypatch.setattr(together, "peak_bytes", lambda: 4 * 10**9)
    assert processes_for(ten, protocol) == 2
    monkeypatch.setattr(together, "peak_bytes", lambda: 20 * 10**9)
    assert processes_for(ten, protocol) == 1
    monkeypatch.setattr(together, "can_fork", lambda: False)
    assert processes_for(ten, protocol) == 1
    torch.set_num_threads(2)
