"""Any number of replicas on any device: cut into batches that fit, trained, and cut again where memory runs out.

On a GPU a batch is as large as memory allows. On a CPU small groups are faster, since their slabs stay in the cache,
and each core trains a group of its own: that scales where threads inside one small product do not.
"""

import os
import queue
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from numbers import Integral

import torch

from propreg.engine.available import available_bytes
from propreg.engine.check import check, check_kind, listed
from propreg.engine.memory import bytes_per_replica
from propreg.engine.models import Network
from propreg.engine.problem import Problem
from propreg.engine.spec import Method, Model, Protocol, Replica, Result
from propreg.engine.surroundings import ordinary_modes
from propreg.engine.train import train

CPU_GROUP, CPU_CACHE = 4, 4_000_000  # replicas, and bytes of one of their activations, that a core works on at a time
CUDA_CHECK_EVERY = 16
Finished = tuple[int, Result]
_NO_MEMORY = (
    "can't allocate memory",
    "not enough memory",
    "std::bad_alloc",
    # Of CUDA, where it is not torch's allocator that asks.
    "CUDA error: out of memory",
    "CUDA driver error: out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "insufficient resources",
)


@dataclass(frozen=True)
class Options:
    """How to train, apart from what is trained."""

    keep_history: bool = False
    keep_weights: bool = False
    batch: int | None = None  # replicas at a time; None: as many as fit
    workers: int | None = None  # CPU threads, one group each; None: as many as torch has, if cores and memory allow
    network: Network | None = None  # in place of the model's own
    stop: Callable[[], bool] = lambda: False  # asked once an epoch; True ends the training, its unfinished runs lost


def train_all(
    problem: Problem,
    model: Model,
    method: Method,
    replicas: Iterable[Replica],
    protocol: Protocol,
    options: Options | None = None,
) -> Generator[Finished, None, None]:
    """Train any number of replicas; yields (place in ``replicas``, result) as each one stops.

    Closing it ends what is still training.
    """
    options = Options() if options is None else options
    check_kind("problem", problem, Problem)
    check_kind("options", options, Options)
    replicas = listed(replicas)
    if not replicas:
        return
    check(model, method, replicas, protocol, problem.splits, problem.graph.y)
    for name in ("batch", "workers"):
        asked = getattr(options, name)
        if asked is not None and (isinstance(asked, bool) or not isinstance(asked, Integral) or asked < 1):
            raise ValueError(f"{name} must be a whole number of at least 1 or None, but {asked!r} came.")
    size = options.batch or replicas_that_fit(problem, model, method)
    numbers = list(range(len(replicas)))
    groups = [numbers[i : i + size] for i in range(0, len(numbers), size)]
    job = _Job(problem, model, method, replicas, protocol, options)
    if problem.device.type == "cpu":
        yield from _on_cores(job, groups)
    else:
        for group in groups:
            yield from job.train(group)


def replicas_that_fit(problem: Problem, model: Model, method: Method) -> int:
    """How many replicas to train at a time: by memory on a GPU, by cache on a CPU."""
    if problem.device.type != "cuda":
        width = model.width
        slab = problem.num_nodes * width * torch.finfo(problem.dtype).bits // 8
        return max(1, min(CPU_GROUP, CPU_CACHE // slab))
    free, _ = torch.cuda.mem_get_info(problem.device)
    reusable = torch.cuda.memory_reserved(problem.device) - torch.cuda.memory_allocated(problem.device)
    # An epoch is recorded beside the memory of those that ran before: it is there twice.
    return max(1, int(0.4 * (free + reusable) / bytes_per_replica(problem, model, method)))


@dataclass(frozen=True)
class _Job:
    problem: Problem
    model: Model
    method: Method
    replicas: Sequence[Replica]
    protocol: Protocol
    options: Options
    stop: threading.Event = field(default_factory=threading.Event)

    def train(self, group: list[int]) -> Iterator[Finished]:
        """Train a group; where memory runs out, its unfinished replicas start again in two halves."""
        if self.stopped():
            return
        done: set[int] = set()
        try:
            for place, result in self._once(group):
                done.add(group[place])
                yield group[place], result
            return
        except (RuntimeError, MemoryError) as error:
            if len(group) == 1 or not _out_of_memory(error):
                raise
        torch.cuda.empty_cache()
        rest = [number for number in group if number not in done]
        half = (len(rest) + 1) // 2
        for part in (rest[:half], rest[half:]):
            if part:
                yield from self.train(part)

    def stopped(self) -> bool:
        """Whether somebody has asked to stop."""
        return self.stop.is_set() or self.options.stop()

    def _once(self, group: list[int]) -> Iterator[Finished]:
        training = train(
            self.problem,
            self.model,
            self.method,
            [self.replicas[number] for number in group],
            self.protocol,
            keep_history=self.options.keep_history,
            keep_weights=self.options.keep_weights,
            network=self.options.network,
            stop=self.stopped,
            check_every=CUDA_CHECK_EVERY if self.problem.device.type == "cuda" else 1,
        )
        while True:
            with ordinary_modes(self.problem.device):  # and never across a yield: there the caller's modes are on
                finished = next(training, None)
            if finished is None:
                return
            yield finished


def _out_of_memory(error: RuntimeError | MemoryError) -> bool:
    """Torch has an error of its own for one allocator of CUDA, and else says so in words; so has NumPy."""
    said = str(error)
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or any(words in said for words in _NO_MEMORY)


def _cores() -> int:
    """The cores this process may use; not every system can tell."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _workers(job: _Job, groups: list[list[int]]) -> int:
    """As many as were asked for; else one for each thread that torch may use, as far as cores and memory go."""
    wanted = job.options.workers
    if wanted is None:
        wanted = min(_cores(), torch.get_num_threads())
        free = available_bytes()
        if free is not None:
            each = max(map(len, groups)) * bytes_per_replica(job.problem, job.model, job.method)
            wanted = min(wanted, free // each)
    return max(1, min(wanted, len(groups)))


def _on_cores(job: _Job, groups: list[list[int]]) -> Iterator[Finished]:
    """Each core trains the next group that nobody has taken; torch itself then uses one thread.

    Also with one worker, so that a group gives the same bits whoever trains it; but a network of the caller's own, with
    one worker and few replicas, keeps torch's threads.
    """
    workers = _workers(job, groups)
    todo: queue.SimpleQueue[list[int]] = queue.SimpleQueue()
    for group in groups:
        todo.put(group)
    out: queue.SimpleQueue[Finished | BaseException | None] = queue.SimpleQueue()
    stop = job.stop

    def work() -> None:
        try:
            while not job.stopped():
                for finished in job.train(todo.get_nowait()):
                    out.put(finished)
                    if stop.is_set():
                        break
        except queue.Empty:
            pass
        except BaseException as error:  # handed to the caller, whose thread it belongs to
            out.put(error)
        out.put(None)

    threads = torch.get_num_threads()
    crew = [threading.Thread(target=work, daemon=True) for _ in range(workers)]
    try:
        torch.set_num_threads(threads if workers == 1 and job.options.network is not None else 1)
        for thread in crew:
            thread.start()
        running = workers
        while running:
            item = out.get()
            if item is None:
                running -= 1
            elif isinstance(item, BaseException):
                raise item
            else:
                yield item
    finally:
        try:
            stop.set()
            for thread in crew:
                if thread.ident is not None:  # an interruption may come before all are started
                    thread.join()
        finally:  # and another while they are waited for
            torch.set_num_threads(threads)
