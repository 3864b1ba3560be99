"""Tasks in forked processes: what comes back, what an exception, a kill or an interruption leaves."""

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection

import pytest
import torch

from propreg.engine.training import processes
from propreg.engine.training.processes import can_fork, in_processes

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no fork")

Tick = Callable[[], bool]


def never() -> bool:
    return False


class OddError(Exception):
    """Cannot be unpickled: it needs two arguments and hands on one."""

    def __init__(self, one: str, two: str) -> None:
        super().__init__(one + two)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
    assert not multiprocessing.active_children()


def test_all_tasks_come_back_from_processes_of_their_own() -> None:
    def work(task: int, tick: Tick) -> Iterator[tuple[int, int, torch.Tensor]]:
        torch.manual_seed(task)
        tick()
        for _ in range(2):
            yield task, os.getpid(), torch.rand(3)

    before = torch.get_rng_state()
    found = list(in_processes(work, 5, 2, never))
    assert torch.equal(torch.get_rng_state(), before)
    assert sorted(task for task, _, _ in found) == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    assert os.getpid() not in {pid for _, pid, _ in found}
    for task in range(5):
        drawn = torch.Generator().manual_seed(task)
        mine = [numbers for number, _, numbers in found if number == task]
        assert all(torch.equal(numbers, torch.rand(3, generator=drawn)) for numbers in mine)


@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        (ValueError("a sentence"), ValueError, "a sentence"),
        (KeyboardInterrupt(), KeyboardInterrupt, ""),
        (OddError("a sen", "tence"), RuntimeError, "OddError: a sentence"),
    ],
)
def test_an_exception_is_raised_here_with_its_traceback(
    error: BaseException, kind: type[BaseException], said: str
) -> None:
    def work(task: int, _: Tick) -> Iterator[int]:
        if task == 1:
            raise error
        yield task

    with pytest.raises(kind) as caught:
        list(in_processes(work, 2, 1, never))
    assert str(caught.value) == said
    assert "in work" in caught.value.__notes__[0]


def test_a_killed_process_costs_its_task_only() -> None:
    def work(task: int, _: Tick) -> Iterator[int]:
        if task == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        yield task

    with pytest.warns(UserWarning, match="A training process was killed"):
        assert sorted(in_processes(work, 4, 2, never)) == [1, 2, 3]


def test_stop_is_asked_here_once_per_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "TICK", 0.0)

    def work(task: int, tick: Tick) -> Iterator[int]:
        yield task
        for _ in range(7):
            tick()
        yield task

    asked = iter(range(100))
    assert list(in_processes(work, 2, 1, lambda: next(asked) < 0)) == [0, 0, 1, 1]
    assert next(asked) == 14
    assert list(in_processes(work, 2, 1, lambda: True)) == [0]


def test_a_silent_process_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "QUIET", 0.3)

    monkeypatch.setattr(processes, "TICK", 0.0)

    def work(task: int, tick: Tick) -> Iterator[int]:
        yield task
        for _ in range(100):
            time.sleep(60 if task == 0 else 0.01)
            tick()

    with pytest.warns(UserWarning, match="A training process was killed, perhaps for lack of memory, or since it said"):
        assert sorted(in_processes(work, 3, 2, never)) == [0, 1, 2]


def long(task: int, tick: Tick) -> Iterator[tuple[int, int]]:
    yield task, os.getpid()
    for _ in range(2000):
        time.sleep(0.01)
        tick()


def ended(pid: int) -> bool:
    """Whether a process has ended, or is about to be forgotten by whoever has to wait for it."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_closing_and_ctrl_c_end_them() -> None:
    running = in_processes(long, 2, 2, never)
    pids = [next(running)[1] for _ in range(2)]
    for pid in pids:
        os.kill(pid, signal.SIGINT)  # as a terminal does
    time.sleep(0.05)
    assert not any(map(ended, pids))
    running.close()  # type: ignore[attr-defined]
    assert all(map(ended, pids))

    there, here = os.pipe()

    def interrupts(task: int, tick: Tick) -> Iterator[tuple[int, int]]:
        os.read(there, 1)  # in the middle of a fork Python may lose it
        os.kill(os.getppid(), signal.SIGINT)
        yield from long(task, tick)

    running = in_processes(lambda task, tick: (long, interrupts)[task](task, tick), 2, 2, never)
    next(running)
    with pytest.raises(KeyboardInterrupt):
        list(running) if os.write(here, b"!") else None
    running.close()  # type: ignore[attr-defined]
    os.close(there)
    os.close(here)


def test_they_end_with_their_caller() -> None:
    def caller(out: Connection) -> None:
        for _, pid in in_processes(long, 2, 2, never):
            out.send(pid)

    context = multiprocessing.get_context("fork")
    reader, writer = context.Pipe(duplex=False)
    process = context.Process(target=caller, args=(writer,))
    process.start()
    pids = [reader.recv(), reader.recv()]
    process.kill()
    process.join()
    until = time.monotonic() + 30
    while not all(map(ended, pids)) and time.monotonic() < until:
        time.sleep(0.02)
    assert all(map(ended, pids))


def test_where_threads_may_compute_nothing_is_forked(monkeypatch: pytest.MonkeyPatch) -> None:
    main = threading.main_thread()
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
    for others, expected in (([], True), ([threading.Thread(daemon=True)], True), ([threading.Thread()], False)):
        monkeypatch.setattr(threading, "enumerate", lambda others=others: [main, *others])
        assert can_fork() == expected
    found: list[bool] = []
    monkeypatch.setattr(threading, "enumerate", lambda: [main])
    elsewhere = threading.Thread(target=lambda: found.append(can_fork()))
    elsewhere.start()
    elsewhere.join()
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    assert [*found, can_fork()] == [False, False]
