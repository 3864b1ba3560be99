"""How many runs are trained at a time: by what one takes, and by what the device, the machine and torch have."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.graphs import problem
from propreg.engine import Method, Model, Options, Problem, Protocol, Replica, available
from propreg.engine import batches as engine_batches
from propreg.engine.batches import replicas_that_fit
from propreg.engine.memory import bytes_per_replica

GCN, PAPER = Model("gcn", hidden=8), Method.preset("paper")
RUNS = [Replica(seed=seed, split="a") for seed in range(40)]


def test_a_replica_takes_its_parameters_five_times_and_its_activations() -> None:
    """Weights, gradients, two moments and the best of 40 · 8 + 8 · 4; 60 nodes with 6 hidden and 12 narrow slabs."""
    assert bytes_per_replica(problem(), GCN, PAPER) == 8 * (5 * (40 * 8 + 8 * 4) + 60 * (6 * 8 + 12 * 4))
    assert bytes_per_replica(problem(dtype=torch.float32), GCN, PAPER) == bytes_per_replica(problem(), GCN, PAPER) // 2


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
        monkeypatch.setattr(available, name, tmp_path / place)
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
    assert available.available_bytes() == 5 * GIB
    limit(jobs / "mine", "max", 3 * GIB)
    assert available.available_bytes() == 5 * GIB
    limit(jobs, 4 * GIB, 3 * GIB, files=GIB)  # of all jobs together; what is only cached files is given back
    assert available.available_bytes() == 2 * GIB
    limit(jobs / "mine", 2 * GIB, GIB)
    assert available.available_bytes() == GIB
    limit(jobs / "mine", GIB, 2 * GIB)
    assert available.available_bytes() == 0
    limit(files, 1, 0)  # lies outside of the groups
    assert available.available_bytes() == 0


def test_a_system_that_says_nothing(files: Path) -> None:
    for name in ("meminfo", "cgroup"):
        (files / name).unlink()
    assert available.available_bytes() is None
