"""The driver of a sweep: it finds what is missing, has whole batches trained, longest first, and stores each run."""

import json
import secrets
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import Any

from propreg.store.batch import Batch
from propreg.store.errors import StudyError
from propreg.store.run import Cell, Record
from propreg.store.store import Store
from propreg.study.execute.executors import (
    Begun,
    Event,
    Executor,
    Failure,
    Finished,
    LocalExecutor,
    Lost,
    Trains,
)
from propreg.study.spec.batches import longest_first


@dataclass
class Progress:
    """The state of a sweep, passed to the caller whenever it changes."""

    runs: int
    done: int
    batches_left: int
    batch: str = ""
    seconds: float = 0.0
    seconds_left: float | None = None
    event: str = "start"
    note: str = ""


@dataclass
class SweepReport:
    """The end of a call: runs stored by it, runs still missing, and why it ended.

    ``skipped`` are sentences on batches that were left out, ``unequal`` the keys of runs whose new training for more
    reports contradicts what the same engine had recorded, and which keep their row.
    """

    stored: int = 0
    missing: int = 0
    reason: str = "done"
    seconds: float = 0.0
    skipped: list[str] = field(default_factory=list)
    unequal: list[str] = field(default_factory=list)

    def after(self, before: "SweepReport") -> "SweepReport":
        """The report of a call that went through a sweep before this one."""
        return replace(self, stored=before.stored + self.stored, seconds=before.seconds + self.seconds)


class Stop:
    """True once the time is up or a signal has come."""

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
        """Why it is true."""
        return "interrupted" if self.asked.is_set() else "time limit"

    @contextmanager
    def on_signals(self) -> Iterator[None]:
        """Ctrl-C and SIGTERM request a stop; a second one interrupts at once."""

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
) -> SweepReport:
    """:func:`run_sweep` in this process; ``trainer`` is called only if there is something to train."""
    return run_sweep(batches, store, LocalExecutor(store, trainer), stop, tell)


def run_sweep(
    batches: Sequence[Batch],
    store: Store,
    executor: Executor,
    stop: Stop | None = None,
    tell: Callable[[Progress], None] = lambda _: None,
) -> SweepReport:
    """Train what is missing of a sweep.

    Args:
        batches: The whole sweep, as :func:`propreg.study.spec.batches.cut` made it.
        store: Where results go, each the moment it is handed back.
        executor: What trains.
        stop: When to stop.
        tell: Called with the state of the sweep.
    """
    stop, started = stop or Stop(), time.monotonic()
    missing = {batch.id: batch.missing(store.recorded(batch)) for batch in batches}
    todo = longest_first([batch for batch in batches if missing[batch.id]])
    every = {run.key for batch in batches for run in batch.runs}
    sweep = _Sweep(store, tell, every, todo, set[str]().union(*missing.values()))
    tell(sweep.progress)
    if todo and not stop():
        sessions = _Sessions(store, executor.about())
        try:
            with closing(executor.run(todo, stop)) as events:
                for event in events:
                    sweep.follow(event, sessions)
        finally:
            sessions.end({"seconds": round(time.monotonic() - started, 1)})
    store.still_there()
    report = sweep.report
    missing = {batch.id: batch.missing(store.recorded(batch)) for batch in batches}
    report.missing = len(set[str]().union(*missing.values()))
    report.seconds = time.monotonic() - started
    # Other processes may have trained some of the batches that were left out here.
    report.skipped = [f"{each.batch.title}: {each.why}" for each in sweep.failures if missing[each.batch.id]]
    if stop() and report.missing:
        report.reason = stop.reason
    elif report.skipped:
        report.reason = "some batches left out"
    elif report.unequal:
        report.reason = "some runs came out differently"
    return report


def refuse_changed_graphs(store: Store, batches: Sequence[Batch]) -> None:
    """Refuse to train beside the recorded runs of a graph that has had another content, under the same name.

    Raises:
        StudyError: If a graph that is no benchmark has changed since runs on it were recorded.
    """
    files = {batch.runs[0].cell.dataset: batch.graph for batch in batches if batch.graph is not None}
    if not files:
        return
    for text in sorted({text for text, *_ in store.run_ids()}):
        cell = Cell.from_text(text)
        file = files.get(cell.dataset)
        if file is not None and cell.digest != file.digest(cell.split_kind):
            raise StudyError(
                f"{file.path} has changed since runs on {cell.dataset} were recorded in {store.path}, which are kept: "
                "put the old file back, or name the new graph differently, or name another store with --store."
            )


class _Sessions:
    """The notes of who trained, one for each maker of records; a batch is of the one that began it last."""

    def __init__(self, store: Store, about: dict[str, Any]) -> None:
        self._store, self._about = store, about
        self._numbers: dict[str, int] = {}
        self._batches: dict[str, int] = {}

    def begin(self, batch: Batch, maker: Mapping[str, Any] | None) -> int:
        """Note who is about to train a batch. Returns the session's number."""
        note = {**self._about, **(maker or {})}
        name = json.dumps(note, sort_keys=True)
        if name not in self._numbers:
            began = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            # The time alone would not tell two sessions apart that two machines began in the same second.
            token = secrets.token_hex(4)
            self._numbers[name] = self._store.begin_session({**note, "started": began, "session": token})
        self._batches[batch.id] = self._numbers[name]
        return self._numbers[name]

    def of(self, batch: str) -> int:
        """The number of the session that trains a batch."""
        return self._batches[batch]

    def end(self, info: dict[str, Any]) -> None:
        """Add to all notes."""
        for number in self._numbers.values():
            self._store.end_session(number, info)


class _Sweep:
    """What the driver does with each event."""

    def __init__(
        self, store: Store, tell: Callable[[Progress], None], every: set[str], todo: Sequence[Batch], missing: set[str]
    ) -> None:
        self.store, self.tell = store, tell
        self.every, self.done = every, every - missing
        self.todo = {batch.id: batch for batch in todo}
        self.left = dict(self.todo)
        self.report, self.failures = SweepReport(), list[Failure]()
        self.progress = Progress(len(every), len(self.done), len(todo))
        self.seconds = self.cost = 0.0
        self.began = time.monotonic()
        self.started: dict[str, float] = {}

    def follow(self, event: Event, sessions: _Sessions) -> None:
        """Store what there is to store, and tell of it."""
        if isinstance(event, Record):
            self._record(event, sessions.of(event.batch))
        elif isinstance(event, Begun):
            self._begun(event, sessions.begin(event.batch, event.maker))
        elif isinstance(event, Finished):
            self._finished(event, sessions.of(event.batch.id))
        elif isinstance(event, Lost):
            self.progress.batch, self.progress.note = event.batch.title, event.why
            self._told("lost")
        else:
            self.failures.append(event)
            self.left.pop(event.batch.id, None)

    def _begun(self, event: Begun, session: int) -> None:
        batch = event.batch
        self.done |= event.known
        self.progress.done, self.progress.batches_left = len(self.done), len(self.left)
        if not batch.missing(event.known):  # another process has trained it
            self._told("run")
            return
        self.started[batch.id] = time.monotonic()
        self.store.note_batch(batch, session)
        self.store.checkpoint()  # a copy of the file alone then says which runs it may lack
        self.progress.batch = f"{batch.title} ({len(batch.runs)} runs)"
        self._told("batch")

    def _record(self, record: Record, session: int) -> None:
        key = record.run.key
        if self.store.add(record, session):
            self.report.stored += 1
            self.done.add(key)
            self.progress.done = len(self.done)
            self._told("run")
        elif not self.todo[record.batch].is_complete(self.store.find(key).outcome.reports):
            self.report.unequal.append(key)

    def _finished(self, event: Finished, session: int) -> None:
        batch = self.left.pop(event.batch.id)
        self.store.checkpoint()
        if batch.id not in self.started:
            return
        took = time.monotonic() - self.started.pop(batch.id)
        if event.seconds is not None:
            self.store.note_batch(batch, session, event.seconds)
            self.seconds, self.cost = self.seconds + event.seconds, self.cost + batch.cost
        left = sum(each.cost for each in self.left.values())
        self.progress.seconds = took if event.seconds is None else event.seconds
        spent = min(self.seconds, time.monotonic() - self.began)  # less than their sum if batches are trained together
        self.progress.seconds_left = left * spent / self.cost if self.cost else None
        self._told("batch done")

    def _told(self, event: str) -> None:
        self.progress.event = event
        self.tell(self.progress)
