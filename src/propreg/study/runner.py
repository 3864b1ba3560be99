"""The runner: finds what is missing, trains whole batches, longest first, and stores each run as it finishes."""

import secrets
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Protocol

from propreg.study.batches import Batch, longest_first
from propreg.study.errors import Stopped
from propreg.study.leases import Heartbeat, Worker, claim, release
from propreg.study.record import Record
from propreg.study.store import Store


class Trains(Protocol):
    """What the runner needs of a trainer; :class:`propreg.study.training.Trainer` is the one."""

    def about(self) -> dict[str, Any]: ...

    def train(self, batch: Batch, stop: Callable[[], bool], known: Set[str]) -> Iterator[Record]: ...


@dataclass
class Progress:
    """Where a sweep stands; handed to the caller whenever that changes."""

    runs: int
    done: int
    batches_left: int
    batch: str = ""
    seconds: float = 0.0
    seconds_left: float | None = None
    event: str = "start"


@dataclass
class Report:
    """What came of a call: runs stored by it, runs still missing, and why it ended."""

    stored: int = 0
    missing: int = 0
    reason: str = "done"
    seconds: float = 0.0
    skipped: list[str] = field(default_factory=list)


class Stop:
    """Answers True once the time is up or somebody has asked to stop."""

    def __init__(self, time_limit: float | None = None) -> None:
        self.until = None if time_limit is None else time.monotonic() + time_limit
        self.asked = threading.Event()

    def __call__(self) -> bool:
        return self.asked.is_set() or self.left() <= 0

    def left(self) -> float:
        """Seconds until the time is up."""
        return float("inf") if self.until is None else self.until - time.monotonic()

    @property
    def reason(self) -> str:
        """Why."""
        return "interrupted" if self.asked.is_set() else "time limit"

    @contextmanager
    def on_signals(self) -> Iterator[None]:
        """Ctrl-C and SIGTERM ask to stop; a second one interrupts at once."""

        def ask(number: int, _: FrameType | None) -> None:
            self.asked.set()
            signal.signal(number, before[number])

        before: dict[int, Any] = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        for number in before:
            signal.signal(number, ask)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def reproduce(
    batches: Sequence[Batch],
    store: Store,
    trainer: Callable[[], Trains],
    stop: Stop | None = None,
    tell: Callable[[Progress], None] = lambda _: None,
) -> Report:
    """Train what is missing of a sweep.

    A program of which a run is missing is trained whole, and what is known already is discarded: on a GPU that is the
    batch, on a CPU a group of a few runs, which the engine trains by themselves. A batch that another worker holds, or
    that would not end before the time limit, is left out.

    Args:
        batches: The whole sweep, as :func:`propreg.study.batches.cut` made it.
        store: Where results go, each the moment it is there.
        trainer: Makes the trainer; called only when there is something to train.
        stop: Tells when to stop.
        tell: Is told how it goes.
    """
    stop, started = stop or Stop(), time.monotonic()
    keys = store.keys()
    every = {run.key for batch in batches for run in batch.runs}
    todo = longest_first([batch for batch in batches if any(run.key not in keys for run in batch.runs)])
    report, worker = Report(), Worker.me()
    progress = Progress(len(every), len(every & keys), len(todo))
    tell(progress)
    sweep = _Sweep(store, worker, stop, tell, progress, report, every)
    if todo and not stop():
        crew = trainer()
        began = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        # By its time alone a session could not be told from one that another machine began in the same second.
        session = store.begin_session({**crew.about(), "started": began, "session": secrets.token_hex(4)})
        try:
            with Heartbeat(store.path, worker):
                sweep.train(todo, crew, session)
        finally:
            store.end_session(session, {"seconds": round(time.monotonic() - started, 1)})
    store.still_there()
    keys = store.keys()
    report.missing = len(every - keys)
    report.seconds = time.monotonic() - started
    # Of those that were left out, others may have trained some meanwhile.
    report.skipped = [why for batch, why in sweep.skipped if any(run.key not in keys for run in batch.runs)]
    if stop() and report.missing:
        report.reason = stop.reason
    elif report.skipped:
        report.reason = "some batches left out"
    return report


@dataclass
class _Sweep:
    store: Store
    worker: Worker
    stop: Stop
    tell: Callable[[Progress], None]
    progress: Progress
    report: Report
    every: Set[str]
    skipped: list[tuple[Batch, str]] = field(default_factory=list)
    spent: float = 0.0
    cost: float = 0.0

    def train(self, todo: Sequence[Batch], trainer: Trains, session: int) -> None:
        for number, batch in enumerate(todo):
            self.progress.batches_left = len(todo) - number
            if self.stop():
                return
            if self._takes(batch) > self.stop.left():
                self.skipped.append((batch, f"{batch.title}: would not end before the time limit"))
                continue
            if not claim(self.store, batch.id, self.worker):
                self.skipped.append((batch, f"{batch.title}: another process is training it"))
                continue
            try:
                known = self.store.keys()  # again, now that nobody else trains it
                self.progress.done = len(self.every & known)
                mine = {run.key for run in batch.runs}
                if mine - known:
                    self._batch(batch, trainer, session, mine & known, sum(b.cost for b in todo[number + 1 :]))
                else:  # another process has trained it
                    self.progress.event = "run"
                    self.tell(self.progress)
            except Stopped:
                return
            finally:
                release(self.store, batch.id, self.worker)

    def _batch(self, batch: Batch, trainer: Trains, session: int, known: Set[str], cost_left: float) -> None:
        self.store.note_batch(batch, session)
        self.progress.batch, self.progress.event = f"{batch.title} ({len(batch.runs)} runs)", "batch"
        self.tell(self.progress)
        started = time.monotonic()
        for record in trainer.train(batch, self.stop, known):
            if self.store.add(record, session):
                self.report.stored += 1
                self.progress.done += 1
                self.progress.event = "run"
                self.tell(self.progress)
        took = time.monotonic() - started
        if not known:  # else it may have been a part, and says nothing of a batch's time
            self.store.note_batch(batch, session, took)
            self.spent, self.cost = self.spent + took, self.cost + batch.cost
        self.progress.seconds, self.progress.event = took, "batch done"
        self.progress.seconds_left = cost_left * self.spent / self.cost if self.cost else None
        self.tell(self.progress)

    def _takes(self, batch: Batch) -> float:
        """Seconds that a batch will take, by those before it; 0 while none is known."""
        return batch.cost * self.spent / self.cost if self.cost else 0.0
