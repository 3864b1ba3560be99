"""Executors: where batches are trained. They hand back records and failures; only the driver writes to the store.

:class:`LocalExecutor` trains in this process. Several processes may run one each on the same store: a lease keeps two
of them from training the same batch. :class:`.cluster.RayExecutor` trains on the workers of a cluster.
"""

import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from propreg.store.batch import Batch
from propreg.store.errors import Stopped
from propreg.store.leases import Heartbeat, claim, release
from propreg.store.locks import Worker
from propreg.store.run import Record
from propreg.store.store import Store


@dataclass(frozen=True)
class Begun:
    """A batch is about to be trained; ``known`` are the keys of its runs that are recorded already.

    ``maker`` says where, in addition to :meth:`Executor.about`; None if it says it all.
    """

    batch: Batch
    known: Set[str]
    maker: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Finished:
    """All runs of a batch are handed back, after so many seconds if all of it was trained."""

    batch: Batch
    seconds: float | None


@dataclass(frozen=True)
class Failure:
    """A batch is not trained, or not to its end."""

    batch: Batch
    why: str


@dataclass(frozen=True)
class Lost:
    """A batch is trained no longer where it was begun, and will begin again."""

    batch: Batch
    why: str


Event = Begun | Record | Finished | Failure | Lost


class Stops(Protocol):
    """Whether to stop, asked once an epoch, and the seconds until then; :class:`propreg.study.execute.runner.Stop`."""

    def __call__(self) -> bool: ...

    def left(self) -> float: ...


class Executor(Protocol):
    """What trains the batches of a sweep: in this process, in others, or on a cluster.

    ``run`` yields for each batch ``Begun``, its records in any order, and ``Finished``; or ``Failure``; or ``Lost``,
    and then again what is missing of it. Batches may overlap. A record is stored before the next event is taken, so
    that a kill loses at most what has not been yielded.
    Soon after ``stop`` is true it ends, without further events.
    """

    def about(self) -> dict[str, Any]:
        """The machine, the versions and the engine's code, for the provenance."""

    def run(self, batches: Sequence[Batch], stop: Stops) -> Generator[Event, None, None]:
        """Train batches, in this order where there is a choice."""


class Pace:
    """How long batches take, by those before them."""

    def __init__(self) -> None:
        self._seconds = self._cost = 0.0

    def add(self, batch: Batch, seconds: float) -> None:
        """Count a batch that was trained whole."""
        self._seconds, self._cost = self._seconds + seconds, self._cost + batch.cost

    def estimate(self, batch: Batch) -> float:
        """The seconds that a batch will take; 0 before the first one."""
        return batch.cost * self._seconds / self._cost if self._cost else 0.0


class Trains(Protocol):
    """What the local executor needs of a trainer; :class:`propreg.study.execute.trainer.Trainer` is the one."""

    def about(self) -> dict[str, Any]: ...

    def train(self, batch: Batch, stop: Callable[[], bool], known: Set[str]) -> Iterator[Record]: ...

    def kept(self, batch: Batch) -> Path | None:
        """The file that a batch that is stopped goes on from; None if it begins anew."""


class LocalExecutor:
    """Trains one batch after the other in this process, each under a lease.

    A program of which a run is missing is trained whole, and results that are recorded are discarded: on a GPU that is
    the batch, on a CPU a group of a few runs, which the engine trains by themselves. A batch that another worker holds
    fails, and one that would not end before the time limit, unless it can go on from there later.

    Args:
        store: Where the leases are, and which runs are recorded.
        trainer: Makes the trainer, when there is something to train.
    """

    def __init__(self, store: Store, trainer: Callable[[], Trains]) -> None:
        self._store, self._make, self._worker = store, trainer, Worker.me()
        self._trainer: Trains | None = None
        self._pace = Pace()

    def about(self) -> dict[str, Any]:
        """What the trainer says of this machine."""
        return self._crew().about()

    def run(self, batches: Sequence[Batch], stop: Stops) -> Generator[Event, None, None]:
        """See :class:`Executor`."""
        with Heartbeat(self._store.path, self._worker):
            for batch in batches:
                if stop():
                    return
                if self._crew().kept(batch) is None and self._pace.estimate(batch) > stop.left():
                    yield Failure(batch, "would not end before the time limit")
                    continue
                if not claim(self._store, batch.id, self._worker):
                    yield Failure(batch, "another process is training it")
                    continue
                try:
                    yield from self._train(batch, stop)
                except Stopped:
                    return
                finally:
                    release(self._store, batch.id, self._worker)

    def _train(self, batch: Batch, stop: Stops) -> Generator[Event, None, None]:
        known = self._store.recorded(batch)  # read under the lease: nobody else trains the batch now
        yield Begun(batch, known)
        if not batch.missing(known):  # another process has trained it
            yield Finished(batch, None)
            return
        started, file = time.monotonic(), self._crew().kept(batch)
        resumed = file is not None and file.exists()
        yield from self._crew().train(batch, stop, known)
        seconds = time.monotonic() - started
        if known or resumed:  # it may have been a part, whose time is not the batch's
            yield Finished(batch, None)
            return
        self._pace.add(batch, seconds)
        yield Finished(batch, seconds)

    def _crew(self) -> Trains:
        if self._trainer is None:
            self._trainer = self._make()
        return self._trainer
