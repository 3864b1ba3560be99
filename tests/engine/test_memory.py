"""How many runs are trained at a time: by what one takes, and by what the device, the machine and torch have."""

import functools
import os
import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from engine.graphs import problem
from propreg.data.features import from_dense
from propreg.data.graph import Graph, Split
from propreg.engine import Method, Model, Options, Problem, Protocol, Replica
from propreg.engine.training import batches as engine_batches
from propreg.engine.training import memory
from propreg.engine.training.batches import replicas_that_fit
from propreg.engine.training.epoch import Epoch
from propreg.engine.training.memory import bytes_per_replica
from propreg.engine.training.phases import one_phase

GCN, PAPER = Model("gcn", hidden=8), Method.preset("paper")
RUNS = [Replica(seed=seed, split="a") for seed in range(40)]


class LiveBytes(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """The peak of the memory that tensors made inside take."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.now = self.peak = 0
        self.known: set[int] = set()

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Count the storages of a function's results until they are freed."""
        out = function(*args, **(kwargs or {}))
        for leaf in tree_leaves(out):
            if isinstance(leaf, torch.Tensor) and leaf.layout == torch.strided:
                self._count(leaf.untyped_storage())
        return out

    def _count(self, storage: Any) -> None:
        key, size = storage._cdata, storage.nbytes()
        if key not in self.known:
            self.known.add(key)
            self.now += size
            self.peak = max(self.peak, self.now)
            weakref.finalize(storage, self._free, key, size)

    def _free(self, key: int, size: int) -> None:
        self.known.discard(key)
        self.now -= size


def peak(found: Problem, model: Model, method: Method, replicas: int, keep_weights: bool) -> int:
    """The peak of two epochs of so many replicas."""
    runs = [Replica(seed=i, split="a", strength=0.0 if method.name == "plain" else 0.5) for i in range(replicas)]
    live = LiveBytes()
    with live:
        (phase,) = one_phase(found, runs, model=model, method=method, protocol=Protocol())
        epoch = Epoch(phase, found.y, keep_weights=keep_weights)
        epoch(1), epoch(2)
    return live.peak


def measured(found: Problem, model: Model, method: Method, keep_weights: bool = False) -> float:
    """What one more replica really adds, once caches are filled."""
    peak(found, model, method, 3, keep_weights)
    return (peak(found, model, method, 3, keep_weights) - peak(found, model, method, 1, keep_weights)) / 2


@functools.cache
def large(dense: bool, classes: int) -> Problem:
    """Large enough for a slab of activations to be more than the odds and ends."""
    rng, nodes, columns = np.random.default_rng(0), 2000, 200 if dense else 700
    one, other = rng.integers(nodes, size=(2, 8000))
    edges = np.unique(np.stack([np.append(one, other), np.append(other, one)]), axis=1)
    x = rng.standard_normal((nodes, columns)).astype(np.float32) * (dense | (rng.random((nodes, columns)) < 0.05))
    part = np.arange(nodes) % 3
    graph = Graph("large", edges, x if dense else from_dense(x), np.arange(nodes) % classes, None)
    return Problem(graph, {"a": Split(part == 0, part == 1, part == 2)}, torch.device("cpu"), torch.float32)


WIDE, REFERENCE = Model("gcn"), Method.preset("reference")
GAT = Model("gat", hidden=16, input_dropout=0.6, attention_dropout=0.6)


@pytest.mark.parametrize("dense", [False, True], ids=["sparse", "dense"])
@pytest.mark.parametrize(
    ("model", "method", "classes"),
    [
        (WIDE, Method(), 5),
        (WIDE, PAPER, 5),
        (WIDE, REFERENCE, 5),
        (WIDE, REFERENCE, 40),
        (replace(WIDE, hidden=16), Method("laplacian"), 40),
        (replace(WIDE, hidden=16), Method("preg", phi="kl"), 40),
        (replace(WIDE, layers=3), REFERENCE, 5),
        (replace(WIDE, layers=5), PAPER, 5),
        (replace(WIDE, input_dropout=0.5), REFERENCE, 5),
        (Model("mlp"), PAPER, 5),
        (Model("appnp", input_dropout=0.5), REFERENCE, 5),
        (GAT, PAPER, 5),
        (GAT, REFERENCE, 5),
    ],
)
def test_the_estimate_is_what_an_epoch_takes_and_a_little_more(
    dense: bool, model: Model, method: Method, classes: int
) -> None:
    found = large(dense, classes)
    ratio = bytes_per_replica(found, model, method) / measured(found, model, method)
    assert 1.0 <= ratio <= 1.45, f"{ratio:.2f}"


def test_what_is_kept_of_the_reported_epoch_is_counted() -> None:
    found = large(True, 5)
    ratio = bytes_per_replica(found, WIDE, PAPER, keep_weights=True) / measured(found, WIDE, PAPER, keep_weights=True)
    assert 1.0 <= ratio <= 1.45, f"{ratio:.2f}"
    plain, kept = (bytes_per_replica(found, WIDE, PAPER, kept_logits=rules) for rules in (0, 2))
    assert kept - plain >= 4 * 2 * (2 * 2000 // 3) * 5


def test_numbers_of_half_the_size_take_half_as_much() -> None:
    single, double = (bytes_per_replica(problem(dtype=dtype), GCN, PAPER) for dtype in (torch.float32, torch.float64))
    nodes = 20 * problem().num_nodes  # which are numbered by integers
    assert 2 * (single - nodes) == double - nodes


@pytest.mark.parametrize(
    ("model", "method"),
    [
        (replace(GCN, hidden=9), PAPER),
        (replace(GCN, layers=3), PAPER),
        (replace(GCN, input_dropout=0.5), PAPER),
        (Model("appnp", hidden=8), PAPER),
        (Model("gat", hidden=8), PAPER),
        (GCN, Method.preset("reference")),
        (GCN, Method("laplacian", variant="official")),
    ],
)
def test_what_takes_more(model: Model, method: Method) -> None:
    assert bytes_per_replica(problem(), model, method) > bytes_per_replica(problem(), GCN, PAPER)


def on_a_gpu(monkeypatch: pytest.MonkeyPatch, free: int, reserved: int, allocated: int) -> Problem:
    """The graph as if on a GPU of which so much is left; nothing is moved there."""
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (free, 10 * free))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda _: reserved)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda _: allocated)
    found = problem()
    assert found.sizes.nodes, "its features are made where they are"
    found.device = torch.device("cuda")
    return found


def test_a_gpu_takes_as_many_as_two_fifths_of_its_free_memory_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    each = bytes_per_replica(problem(), GCN, PAPER)
    assert replicas_that_fit(on_a_gpu(monkeypatch, 100 * each, 0, 0), GCN, PAPER) == 40
    # What torch holds but nobody uses is free too.
    assert replicas_that_fit(on_a_gpu(monkeypatch, 100 * each, 60 * each, 10 * each), GCN, PAPER) == 60
    assert replicas_that_fit(on_a_gpu(monkeypatch, each, 0, 0), GCN, PAPER) == 1, "one is always tried"


@pytest.mark.parametrize(("hidden", "together"), [(16, 4), (2048, 4), (4096, 2), (10**5, 1)])
def test_a_core_takes_as_many_as_its_cache_holds(hidden: int, together: int) -> None:
    assert replicas_that_fit(problem(), replace(GCN, hidden=hidden), PAPER) == together


def workers(groups: int, **options: Any) -> int:
    job = engine_batches._Job(problem(), GCN, PAPER, RUNS, Protocol(), Options(**options))
    return engine_batches._workers(job, [[0, 1, 2, 3]] * groups)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, int, int | None], None]:
    """Sets cores, torch's threads and free memory, in groups of four runs."""

    def made(cores: int, threads: int, memory: int | None) -> None:
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)), raising=False)
        monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
        left = None if memory is None else memory * 4 * bytes_per_replica(problem(), GCN, PAPER)
        monkeypatch.setattr(engine_batches, "available_bytes", lambda: left)

    return made


@pytest.mark.parametrize(
    ("cores", "threads", "memory", "expected"),
    [(40, 1, None, 1), (40, 3, None, 3), (2, 8, None, 2), (40, 40, None, 10), (8, 8, 5, 5), (8, 8, 0, 1)],
)
def test_workers_are_as_many_as_torch_has_threads_and_cores_and_memory_allow(
    machine: Callable[[int, int, int | None], None], cores: int, threads: int, memory: int | None, expected: int
) -> None:
    machine(cores, threads, memory)
    assert workers(groups=10) == expected
    assert workers(groups=1) == 1
    assert workers(groups=10, workers=7) == 7, "as many as one asks for"


GIB = 2**30


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The system's files, of a machine with 5 GiB left and a process in the group ``jobs/mine``."""
    for name, place in (("MEMORY", "meminfo"), ("OWN_GROUP", "cgroup"), ("GROUPS", "groups")):
        monkeypatch.setattr(memory, name, tmp_path / place)
    (tmp_path / "meminfo").write_text(f"MemTotal: {9 * GIB // 1024} kB\nMemAvailable:    {5 * GIB // 1024} kB\n")
    (tmp_path / "cgroup").write_text("12:cpu:/old\n0::/jobs/mine\n")
    (tmp_path / "groups/jobs/mine").mkdir(parents=True)
    return tmp_path


def limit(group: Path, most: object, used: int, files: int = 0) -> None:
    (group / "memory.max").write_text(f"{most}\n")
    (group / "memory.current").write_text(f"{used}\n")
    (group / "memory.stat").write_text(f"anon 7\ninactive_file {files}\nactive_file 9\n")


def test_memory_that_is_left(files: Path) -> None:
    jobs = files / "groups/jobs"
    assert memory.available_bytes() == 5 * GIB
    limit(jobs / "mine", "max", 3 * GIB)
    assert memory.available_bytes() == 5 * GIB
    limit(jobs, 4 * GIB, 3 * GIB, files=GIB)  # of all jobs together; what is only cached files is given back
    assert memory.available_bytes() == 2 * GIB
    limit(jobs / "mine", 2 * GIB, GIB)
    assert memory.available_bytes() == GIB
    limit(jobs / "mine", GIB, 2 * GIB)
    assert memory.available_bytes() == 0
    limit(files, 1, 0)  # lies outside of the groups
    assert memory.available_bytes() == 0


def test_a_system_that_says_nothing(files: Path) -> None:
    for name in ("meminfo", "cgroup"):
        (files / name).unlink()
    assert memory.available_bytes() is None
