"""Any number of runs: cut into batches, trained on all cores, each result handed out once."""

import threading
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import pytest
import torch

from engine.graphs import problem
from propreg.engine import Method, Model, Options, Protocol, Replica, train_all
from propreg.engine.training import batches as engine_batches
from propreg.engine.training.train import train

GCN = Model("gcn", hidden=8)
METHOD = Method.preset("paper")
RUNS = [Replica(seed=s, split="ab"[s % 2], strength=0.1 * s, patience=5 + s) for s in range(11)]
PROTOCOL = Protocol(max_epochs=40)


def expected() -> dict[int, Any]:
    return dict(train(problem(), GCN, METHOD, RUNS, PROTOCOL))


@pytest.mark.parametrize("batch", [None, 1, 3, 11, 100])
@pytest.mark.parametrize("workers", [1, 3])
def test_each_run_gives_its_result_once(batch: int | None, workers: int) -> None:
    options = Options(batch=batch, workers=workers)
    found = list(train_all(problem(), GCN, METHOD, RUNS, PROTOCOL, options))
    assert sorted(place for place, _ in found) == list(range(len(RUNS)))
    assert dict(found) == expected()


def test_no_runs_give_no_results() -> None:
    assert list(train_all(problem(), GCN, METHOD, [], PROTOCOL)) == []


def test_threads_and_their_number_are_left_as_they_were() -> None:
    threads, alive = torch.get_num_threads(), threading.active_count()
    list(train_all(problem(), GCN, METHOD, RUNS, PROTOCOL, Options(workers=3)))
    assert torch.get_num_threads() == threads
    assert threading.active_count() == alive


@pytest.mark.parametrize(("own", "used"), [(False, 1), (True, 2)])
def test_a_network_of_the_callers_own_keeps_torchs_threads(
    monkeypatch: pytest.MonkeyPatch, own: bool, used: int
) -> None:
    seen: list[int] = []

    def looking(*args: Any, **options: Any) -> Any:
        seen.append(torch.get_num_threads())
        return train(*args, **options)

    monkeypatch.setattr(engine_batches, "train", looking)
    before, found = torch.get_num_threads(), problem()
    torch.set_num_threads(2)
    try:
        options = Options(workers=1, network=found.network(GCN) if own else None)
        list(train_all(found, GCN, METHOD, RUNS[:2], PROTOCOL, options))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert set(seen) == {used}


def test_warning_filters_are_left_as_they_were() -> None:
    before = list(warnings.filters)
    list(train_all(problem(), GCN, METHOD, RUNS, PROTOCOL, Options(batch=1, workers=6)))
    assert list(warnings.filters) == before


def test_an_error_in_a_worker_reaches_the_caller() -> None:
    alive = threading.active_count()
    with pytest.raises(ValueError, match=r"split must be one of .* got 'nowhere'"):
        list(train_all(problem(), GCN, METHOD, [*RUNS, replace(RUNS[0], split="nowhere")], PROTOCOL, Options(batch=2)))
    assert threading.active_count() == alive


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("no memory left"),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: 9 bytes"),
        RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 9 bytes."),
        RuntimeError("std::bad_alloc"),
        RuntimeError("CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported"),
        RuntimeError("CUDA driver error: out of memory"),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
        RuntimeError("CUDA error: insufficient resources when calling `cusparseSpMM(handle)`"),
        MemoryError("Unable to allocate 9 bytes for an array"),
    ],
)
def test_memory_that_runs_out_loses_nothing(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    sizes: list[int] = []

    def small_memory(*args: Any, **options: Any) -> Any:
        runs = args[3]
        sizes.append(len(runs))
        results = train(*args, **options)
        yield next(results)  # one is handed out before memory runs out
        if len(runs) > 3:
            raise error
        yield from results

    monkeypatch.setattr(engine_batches, "train", small_memory)
    found = list(train_all(problem(), GCN, METHOD, RUNS, PROTOCOL, Options(batch=11, workers=1)))
    assert sorted(place for place, _ in found) == list(range(len(RUNS)))
    assert dict(found) == expected()
    assert max(sizes) == 11
    assert min(sizes) <= 3


def test_a_single_run_that_does_not_fit_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_memory(*args: Any, **options: Any) -> Any:  # noqa: ARG001
        raise torch.OutOfMemoryError("no memory left")
        yield

    monkeypatch.setattr(engine_batches, "train", no_memory)
    with pytest.raises(torch.OutOfMemoryError):
        list(train_all(problem(), GCN, METHOD, RUNS, PROTOCOL))


def test_a_run_that_does_not_fit_beside_others_is_trained_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    crowded = threading.Event()
    first = threading.Barrier(2)

    def small_memory(*args: Any, **options: Any) -> Any:
        if not crowded.is_set() and args[3][0] in RUNS[:2]:
            if first.wait(60) == 0:
                raise RuntimeError("DefaultCPUAllocator: can't allocate memory: 9 bytes")
            crowded.set()
        yield from train(*args, **options)

    monkeypatch.setattr(engine_batches, "train", small_memory)
    found = list(train_all(problem(), GCN, METHOD, RUNS, PROTOCOL, Options(batch=1, workers=2)))
    assert sorted(place for place, _ in found) == list(range(len(RUNS)))
    assert found[-1][0] in (0, 1), "when the others have ended"
    assert dict(found) == expected()


def test_an_error_is_a_failed_run_of_its_group_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(*args: Any, **options: Any) -> Any:
        if RUNS[4] in args[3]:
            raise ZeroDivisionError
        yield from train(*args, **options)

    monkeypatch.setattr(engine_batches, "train", breaks)
    caught: list[Exception] = []
    options = Options(batch=11, workers=1, caught=caught.append)
    found = dict(train_all(problem(), GCN, METHOD, RUNS, PROTOCOL, options))
    failed = found.pop(4)
    assert failed.failed
    assert failed.error.endswith("ZeroDivisionError\n")
    assert found == {place: result for place, result in expected().items() if place != 4}
    assert list(map(type, caught)) == [ZeroDivisionError]


def test_after_a_stop_no_group_is_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[int] = []
    finished: list[int] = []

    def counted(*args: Any, **options: Any) -> Any:
        begun.append(1)
        return train(*args, **options)

    monkeypatch.setattr(engine_batches, "train", counted)
    options = Options(batch=1, workers=1, stop=lambda: len(finished) > 0)
    for place, _ in train_all(problem(), GCN, METHOD, RUNS, PROTOCOL, options):
        finished.append(place)
    assert 1 <= len(begun) <= 3
    assert len(finished) <= len(begun)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize(
    "modes",
    [torch.no_grad, torch.inference_mode, lambda: torch.autocast("cpu", torch.bfloat16)],
    ids=["no_grad", "inference_mode", "autocast"],
)
def test_the_callers_modes_are_off_in_a_training_and_on_outside(
    monkeypatch: pytest.MonkeyPatch, device: str, modes: Callable[[], AbstractContextManager[None]]
) -> None:
    """Whatever the device: a GPU's batches are trained in the caller's own thread."""

    def on() -> tuple[bool, bool, bool]:
        return torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.is_autocast_enabled("cpu")

    seen = []

    def looking(*args: Any, **options: Any) -> Any:
        seen.append(on())
        for finished in train(found, *args[1:], **options):
            seen.append(on())
            yield finished

    monkeypatch.setattr(engine_batches, "train", looking)
    found, asked = problem(), problem()
    asked.device = torch.device(device)
    with modes():
        outside = on()
        for _ in train_all(asked, GCN, METHOD, RUNS[:3], PROTOCOL, Options(batch=3)):
            assert on() == outside
    assert set(seen) == {(True, False, False)}
    assert len(seen) == 4


def test_replicas_may_come_from_a_generator() -> None:
    found = train_all(problem(), GCN, METHOD, (replica for replica in RUNS), PROTOCOL)
    assert dict(found) == expected()


@pytest.mark.parametrize("moment", ["start", "join"])
def test_threads_are_put_right_whenever_an_interruption_comes(moment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before all workers are started, or again while they are waited for."""
    before, method, calls = torch.get_num_threads(), getattr(threading.Thread, moment), []

    def interrupted(self: threading.Thread, *arguments: Any) -> None:
        calls.append(self)
        if len(calls) == 2:
            raise KeyboardInterrupt
        method(self, *arguments)

    monkeypatch.setattr(threading.Thread, moment, interrupted)
    torch.set_num_threads(2)
    try:
        with pytest.raises(KeyboardInterrupt):
            list(train_all(problem(), GCN, METHOD, RUNS, PROTOCOL, Options(batch=1, workers=2)))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
