"""Tasks in forked processes: each has a copy of torch's global state, such as its random numbers, for itself.

A fork has the caller's graph, functions and modules as they are; only what it computes is pickled, on its way back.
"""

import multiprocessing
import pickle
import random
import signal
import sys
import tempfile
import threading
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from time import monotonic
from typing import IO, Any, TypeVar

import numpy as np
import torch

TICK = 0.1  # seconds between two messages about epochs
QUIET = 120.0  # seconds without a message after which a fork counts as hung, and is killed

Item = TypeVar("Item")
Error = TypeVar("Error", bound=BaseException)
Work = Callable[[int, Callable[[], bool]], Iterable[Item]]


def can_fork() -> bool:
    """Whether a fork of this process can compute with torch, as far as this can be known.

    Autograd has threads, which a fork lacks, as soon as there is an accelerator. Threads that are no daemons may be
    computing; a daemon has no children.
    """
    return (
        sys.platform == "linux"
        and not torch.accelerator.is_available()
        and not multiprocessing.current_process().daemon
        and threading.current_thread() is threading.main_thread()
        and all(thread.daemon for thread in threading.enumerate() if thread is not threading.main_thread())
    )


def in_processes(work: Work[Item], tasks: int, processes: int, stop: Callable[[], bool]) -> Iterator[Item]:
    """Yield what the tasks yield, each in one of so many forked processes; closing it ends them.

    Torch must have one thread: GNU OpenMP hangs in a fork whose parent has computed with several, unless it needs one.
    What a task of a killed process would have yielded is missing, with a warning.

    Args:
        work: Called with the number of a task, and a function to call once per epoch.
        tasks: Their number.
        processes: Their number.
        stop: Called here once per epoch of any task; True ends all.

    Raises:
        BaseException: What a task raises, with its traceback as a note.
    """
    context = multiprocessing.get_context("fork")
    crew: dict[Connection, multiprocessing.context.ForkProcess] = {}
    with tempfile.TemporaryFile(buffering=0) as queue:  # forks share its position: each reads the next number
        queue.write(b"".join(number.to_bytes(4, "little") for number in range(tasks)))
        queue.seek(0)
        try:
            for _ in range(min(processes, tasks)):
                reader, writer = context.Pipe(duplex=False)
                process = context.Process(target=_fork, args=(work, queue, [*crew, reader], writer), daemon=True)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", DeprecationWarning)  # of OpenMP's idle threads
                    process.start()
                crew[reader] = process
                writer.close()
            yield from _received(crew, stop)
        finally:
            for process in crew.values():
                process.kill()
            for reader, process in crew.items():
                process.join()
                reader.close()


def _received(crew: Mapping[Connection, BaseProcess], stop: Callable[[], bool]) -> Iterator[Any]:
    """The items in what the forks send, until all have ended; an int is a number of epochs, an exception is raised."""
    heard = dict.fromkeys(crew, monotonic())
    while heard:
        ready = [reader for reader in wait([*heard], QUIET) if isinstance(reader, Connection)]
        heard |= dict.fromkeys(ready, monotonic())
        for reader, last in heard.items():
            if monotonic() - last > QUIET:
                crew[reader].kill()
        for reader in ready:
            try:
                message = pickle.loads(reader.recv_bytes())
            except (EOFError, OSError):
                del heard[reader]
                crew[reader].join(1.0)
                if crew[reader].exitcode:
                    why = f"for lack of memory, or since it said nothing for {QUIET:.0f} seconds"
                    warnings.warn(f"A training process was killed, perhaps {why}.", stacklevel=3)
                continue
            if isinstance(message, BaseException):
                raise message
            if not isinstance(message, int):
                yield message[0]
            elif any(stop() for _ in range(message)):
                return


def _fork(work: Work[Any], queue: IO[bytes], readers: list[Connection], writer: Connection) -> None:
    """The life of a process: it does the next task until there are no more, or its caller has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all: the caller ends its processes
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for reader in readers:  # or writing would not fail once the caller has ended
        reader.close()
    epochs, last = 0, monotonic()

    def send(message: object) -> None:
        writer.send_bytes(pickle.dumps(message))

    def tick() -> bool:
        nonlocal epochs, last
        epochs += 1
        if (now := monotonic()) - last >= TICK:
            send(epochs)
            epochs, last = 0, now
        return False

    try:
        while number := queue.read(4):
            task = int.from_bytes(number, "little")
            random.seed(task)  # the other processes have the same states of Python and NumPy
            np.random.seed(task)
            for item in work(task, tick):
                send((item,))
    except BrokenPipeError:
        return
    except BaseException as error:
        send(sendable(error))


def sendable(error: Error) -> Error | RuntimeError:
    """The exception, or one that says the same if it cannot be pickled, with its traceback as a note."""
    found: Error | RuntimeError = error
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        found = RuntimeError(f"{type(error).__name__}: {error}")
    found.add_note("".join(traceback.format_exception(error)))
    return found
