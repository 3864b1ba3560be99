"""Any number of replicas on any device: cut into batches that fit, trained, and cut again if memory runs out.

On a GPU a batch is as large as memory allows. On a CPU small groups are faster, since their slabs stay in the cache,
and each core trains a group of its own: this scales, and threads inside one small product do not.
"""

import math
import queue
import threading
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral

import torch

from propreg.devices import cores, out_of_memory
from propreg.engine.models.network import Network
from propreg.engine.spec import Method, Model, Protocol, Replica, Result
from propreg.engine.tasks.node import Problem
from propreg.engine.torch_modes import ordinary_modes
from propreg.engine.training.memory import SHARE, available_bytes, bytes_per_replica
from propreg.engine.training.phases import Procedure, Trainer
from propreg.engine.training.processes import in_processes, sendable
from propreg.engine.training.train import train
from propreg.engine.validate import check, check_kind, listed

CPU_GROUP, CPU_CACHE = 4, 4_000_000  # replicas, and bytes of one of their activations, that a core works on at a time
CUDA_CHECK_EVERY = 16
Finished = tuple[int, Result]


@dataclass(frozen=True)
class Options:
    """How to train, apart from what is trained.

    Args:
        keep_history, keep_weights, measures, rules, network, procedure: As for :func:`.train.train`.
        batch: Replicas at a time; None: as many as fit.
        workers: CPU threads, one group of replicas each; None: one per thread of torch, if cores and memory allow.
            More than one of a network that draws from torch's random numbers are forked processes.
        trainer: Trains a group of replicas in place of :func:`.train.train`, which the first six options are for.
        stop: Called once per epoch; True ends the training, and its unfinished runs are lost.
        caught: Takes the exception of a run, which is then a failed run with its traceback; None: it is raised.
    """

    keep_history: bool = False
    keep_weights: bool = False
    measures: bool = False
    rules: Sequence[str] = ()
    network: Network | None = None
    procedure: Procedure | None = None
    batch: int | None = None
    workers: int | None = None
    trainer: Trainer | None = None
    stop: Callable[[], bool] = lambda: False
    caught: Callable[[Exception], None] | None = None


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
            raise ValueError(f"{name} must be a whole number of at least 1 or None, got {asked!r}.")
    size = options.batch or replicas_that_fit(problem, model, method, options)
    numbers = list(range(len(replicas)))
    groups = [numbers[i : i + size] for i in range(0, len(numbers), size)]
    job = _Job(problem, model, method, replicas, protocol, options)
    if problem.device.type == "cpu":
        network, workers = options.network, options.workers or 1
        forks = network is not None and network.draws and options.trainer is None and workers > 1
        yield from _in_forks(job, groups, workers) if forks else _on_cores(job, groups)
    else:
        for group in groups:
            yield from job.train(group)


def replicas_that_fit(problem: Problem, model: Model, method: Method, options: Options | None = None) -> int:
    """How many replicas to train at a time: by memory on a GPU, by cache on a CPU."""
    if problem.device.type != "cuda":
        width = model.width
        slab = problem.num_nodes * width * torch.finfo(problem.dtype).bits // 8
        return max(1, min(CPU_GROUP, CPU_CACHE // slab))
    free = SHARE.free_on_gpu(problem.device)
    reusable = torch.cuda.memory_reserved(problem.device) - torch.cuda.memory_allocated(problem.device)
    # A recorded epoch has memory of its own beside that of the epochs before it: its peak counts twice.
    return max(1, int(0.4 * (free + reusable) / _bytes(problem, model, method, options or Options())))


def _bytes(problem: Problem, model: Model, method: Method, options: Options) -> int:
    rules = 1 + len(options.rules) if options.measures else 0
    return bytes_per_replica(problem, model, method, keep_weights=options.keep_weights, kept_logits=rules)


@dataclass(frozen=True)
class _Job:
    problem: Problem
    model: Model
    method: Method
    replicas: Sequence[Replica]
    protocol: Protocol
    options: Options
    stop: threading.Event = field(default_factory=threading.Event)
    late: "queue.SimpleQueue[list[int]]" = field(default_factory=queue.SimpleQueue)

    def train(self, group: list[int], *, alone: bool = True) -> Iterator[Finished]:
        """Train a group; if memory runs out or a run raises, its unfinished replicas start again in two halves.

        Args:
            group: The numbers of its replicas.
            alone: False if other groups train at the same time: a run that does not fit beside them waits until
                they have ended.
        """
        if self.stopped():
            return
        done: set[int] = set()
        failed = None
        try:
            for place, result in self._once(group):
                done.add(group[place])
                yield group[place], result
            return
        except Exception as error:
            no_memory, caught = out_of_memory(error), self.options.caught
            if len(group) == 1 and no_memory and not alone:
                self.late.put(group)
                return
            if caught is None and (len(group) == 1 or not no_memory):
                raise
            if len(group) == 1 and caught is not None:
                failed = _raised(self.replicas[group[0]], error)
                caught(error)
        if failed is not None:
            yield group[0], failed
            return
        if self.problem.device.type == "cuda":
            torch.cuda.empty_cache()
        rest = [number for number in group if number not in done]
        half = (len(rest) + 1) // 2
        for part in (rest[:half], rest[half:]):
            if part:
                yield from self.train(part, alone=alone)

    def prepare(self) -> None:
        """Build what all groups share; a trainer of its own makes what it needs."""
        if self.options.trainer is not None:
            return
        if self.options.network is None:
            self.problem.network(self.model)
        self.problem.regularizer(self.method)

    def stopped(self) -> bool:
        """Whether the caller or another worker has ended the training."""
        return self.stop.is_set() or self.options.stop()

    def _once(self, group: list[int]) -> Iterator[Finished]:
        members, options = [self.replicas[number] for number in group], self.options
        serial = self.model.architecture.trainer if options.network is None else None
        if options.trainer is not None:
            training = options.trainer(self.problem, members, stop=self.stopped)
        elif serial is not None:
            training = serial(
                self.problem,
                members,
                model=self.model,
                method=self.method,
                protocol=self.protocol,
                options=replace(options, stop=self.stopped),
            )
        else:
            training = train(
                self.problem,
                self.model,
                self.method,
                members,
                self.protocol,
                keep_history=options.keep_history,
                keep_weights=options.keep_weights,
                measures=options.measures,
                rules=options.rules,
                network=options.network,
                procedure=options.procedure,
                stop=self.stopped,
                check_every=CUDA_CHECK_EVERY if self.problem.device.type == "cuda" else 1,
            )
        while True:
            with ordinary_modes(self.problem.device):  # and never across a yield: there the caller's modes are on
                finished = next(training, None)
            if finished is None:
                return
            yield finished


def _raised(replica: Replica, error: Exception) -> Result:
    """The failed run of an exception."""
    trace = "".join(traceback.format_exception(error))
    return Result(replica, val=math.nan, test=math.nan, epoch=0, epochs=0, error=trace)


def _workers(job: _Job, groups: list[list[int]]) -> int:
    """The number given; else one for each thread that torch may use, limited by cores and memory."""
    wanted = job.options.workers
    if wanted is None:
        wanted = min(cores(), torch.get_num_threads())
        free = available_bytes()
        if free is not None:
            each = max(map(len, groups)) * _bytes(job.problem, job.model, job.method, job.options)
            wanted = min(wanted, free // each)
    return max(1, min(wanted, len(groups)))


def _on_cores(job: _Job, groups: list[list[int]]) -> Iterator[Finished]:
    """Each core trains the next group in the queue, with one thread of torch.

    That holds for one worker, too, so that a group gives the same bits whichever worker trains it. A network of the
    caller's own keeps torch's threads if there is one worker.
    """
    workers = _workers(job, groups)
    with ordinary_modes(job.problem.device):  # what the groups share is built once, by all of torch's threads
        job.prepare()
    todo: queue.SimpleQueue[list[int]] = queue.SimpleQueue()
    for group in groups:
        todo.put(group)
    out: queue.SimpleQueue[Finished | BaseException | None] = queue.SimpleQueue()
    stop = job.stop

    def work() -> None:
        try:
            while not job.stopped():
                for finished in job.train(todo.get_nowait(), alone=workers == 1):
                    out.put(finished)
                    if stop.is_set():
                        break
        except queue.Empty:
            pass
        except BaseException as error:  # raised in the caller's thread
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
        while not job.late.empty():  # in this thread: nothing else trains now
            yield from job.train(job.late.get())
    finally:
        try:
            stop.set()
            for thread in crew:
                if thread.ident is not None:  # an interruption may come before all are started
                    thread.join()
        finally:  # and another while they are waited for
            torch.set_num_threads(threads)


def _in_forks(job: _Job, groups: list[list[int]], workers: int) -> Iterator[Finished]:
    """Each forked process trains the next group in the queue, with one thread of torch.

    What they leave, for lack of memory or since they were killed, is trained here, with one thread, too: a group gives
    the same bits wherever it is trained.
    """
    caught = job.options.caught

    def work(task: int, tick: Callable[[], bool]) -> Iterator[tuple[Finished, Exception | None]]:
        raised: list[Exception] = []
        options = replace(job.options, stop=tick, caught=None if caught is None else raised.append)
        for finished in replace(job, options=options).train(groups[task], alone=False):
            if options.network is not None:
                options.network.check_inputs()  # the caller's are others
            yield finished, sendable(raised.pop()) if raised else None

    threads, done = torch.get_num_threads(), set[int]()
    try:
        torch.set_num_threads(1)
        if len(groups) > 1:
            for finished, error in in_processes(work, len(groups), workers, job.stopped):
                if caught is not None and error is not None:
                    caught(error)
                done.add(finished[0])
                yield finished
        for group in groups:
            left = [number for number in group if number not in done]
            if left:
                yield from job.train(left)
    finally:
        torch.set_num_threads(threads)
