"""Replicas of a user's own model as one program: the same as alone, and no more of them than memory takes."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from fitting.own_modules import GRAPH, QUICK, SPLIT, Base, Frozen, Scaled, Unregistered
from propreg.engine import Method, Model, Options, Problem, Protocol, Replica, Result, train_all
from propreg.engine.models.user_module import OwnNetwork
from propreg.fitting.fit import fit
from propreg.fitting.together import replicas_together


def trained(factory: Any, replicas: list[Replica], *, together: bool, batch: int) -> dict[int, Result]:
    problem = Problem(GRAPH, {"own": SPLIT}, torch.device("cpu"))
    network = OwnNetwork(factory, problem, together=together)
    options = Options(keep_history=True, keep_weights=True, batch=batch, workers=1, network=network)
    return dict(train_all(problem, Model(), Method("preg"), replicas, Protocol(max_epochs=25), options))


class FrozenQuiet(Frozen):
    """Without dropout, whose random numbers a batch shares."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        self.eval()
        return super().forward(x, edge_index)


def test_a_batch_gives_what_its_runs_give_alone() -> None:
    """Frozen parameters of each replica's own, through replicas that leave the batch early."""
    with torch.random.fork_rng(devices=[]):
        replicas = [Replica(seed, "own", 0.5, patience=[1, 25, 2, 25][seed]) for seed in range(4)]
        alone = trained(FrozenQuiet, replicas, together=False, batch=1)
        batch = trained(FrozenQuiet, replicas, together=True, batch=4)
    assert len({run.epochs for run in alone.values()}) > 1
    for number, run in alone.items():
        np.testing.assert_allclose(batch[number].history["loss"], run.history["loss"], rtol=1e-4)
        for name, p in run.weights.items():
            np.testing.assert_allclose(batch[number].weights[name], p, rtol=1e-3, atol=1e-4, err_msg=name)


def on_a_gpu(monkeypatch: pytest.MonkeyPatch, free: int, peak: int) -> Any:
    """A problem that says it is on a GPU with so much memory, where the measured pass takes ``peak``."""
    numbers = {"memory_allocated": 100, "memory_reserved": 100, "max_memory_allocated": 100 + peak}
    for name, value in numbers.items():
        monkeypatch.setattr(torch.cuda, name, lambda _, value=value: value)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (free, 2 * free))
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", lambda _: None)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    return SimpleNamespace(device=torch.device("cuda"), graph=GRAPH, num_nodes=120, num_classes=3)


def network(*, together: bool) -> OwnNetwork:
    return OwnNetwork(Base, Problem(GRAPH, {"own": SPLIT}, torch.device("cpu")), together=together)


def test_a_batch_is_cut_to_what_memory_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    peak = 2_000_000  # of two replicas
    beside = 5 * 4 * (8 * 6 + 6 + 6 * 3 + 3) + 4 * 3 * 12 * 120
    with torch.random.fork_rng(devices=[]):
        own = network(together=True)
        for free, wanted, size in ((10**7, 100, int(7e6 / (1e6 + beside))), (10**9, 100, 100), (10**5, 100, 1)):
            problem = on_a_gpu(monkeypatch, free, peak)
            assert replicas_together(own, problem, Method("preg"), wanted) == size
        twice = replicas_together(own, on_a_gpu(monkeypatch, 10**7, peak), Method.preset("reference"), 100)
        assert twice == int(7e6 / (2e6 + beside))
        assert replicas_together(network(together=False), problem, Method("preg"), 100) == 1


@pytest.mark.parametrize(("factory", "agrees"), [(Base, True), (Frozen, True), (Unregistered, False), (Scaled, False)])
def test_they_are_one_program_only_where_that_computes_the_same(factory: Any, agrees: bool) -> None:
    """A constant that is no parameter differs by replica, and running statistics have no meaning for a batch."""
    with torch.random.fork_rng(devices=[]):
        own = OwnNetwork(factory, Problem(GRAPH, {"own": SPLIT}, torch.device("cpu")))
        assert not own.together  # on a CPU it does not pay
        assert own._vmap_agrees(own._made(1)) == agrees


def test_where_two_do_not_fit_they_train_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_memory(*_: Any) -> Tensor:
        raise torch.OutOfMemoryError

    with torch.random.fork_rng(devices=[]):
        own, problem = network(together=True), on_a_gpu(monkeypatch, 10**9, 0)
        monkeypatch.setattr(OwnNetwork, "finish", no_memory)
        assert replicas_together(own, problem, Method("preg"), 100) == 1


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_on_a_gpu_runs_train_together_and_the_callers_random_numbers_are_left_alone() -> None:
    before = torch.get_rng_state(), torch.cuda.get_rng_state()
    result = fit(GRAPH, Frozen, device="cuda", **QUICK)
    assert torch.equal(before[0], torch.get_rng_state())
    assert torch.equal(before[1], torch.cuda.get_rng_state())
    assert len(result.runs) == 4


def test_on_a_cpu_runs_train_one_after_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interruption keeps those that have finished, and memory is that of one."""
    sizes = []
    stacked = OwnNetwork.stacked

    def counted(self: OwnNetwork, replicas: list[Replica]) -> dict[str, Tensor]:
        sizes.append(len(replicas))
        return stacked(self, replicas)

    monkeypatch.setattr(OwnNetwork, "stacked", counted)
    assert len(fit(GRAPH, Base, device="cpu", **QUICK).runs) == 4
    assert sizes == [1] * 5  # once before anything is trained
