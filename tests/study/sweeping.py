"""Sweeps for tests: a trainer that makes results up, and processes that can be killed."""

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Set
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import quick_start
from propreg.store.batch import Batch
from propreg.store.errors import Stopped
from propreg.store.export import to_lines
from propreg.store.run import Outcome, Record, Run
from propreg.store.store import Store
from propreg.study.execute.runner import reproduce
from propreg.study.spec.batches import cut
from propreg.study.spec.experiment import load_experiment


class MadeUp:
    """Results from the key alone, at once."""

    def __init__(self, pause: float = 0.0) -> None:
        self.pause, self.trained = pause, 0
        self.known: Set[str] = frozenset()

    def about(self) -> dict[str, Any]:
        """Nothing in particular."""
        return {"device": "none"}

    def kept(self, batch: Batch) -> None:
        """Nothing."""

    def train(self, batch: Batch, stop: Callable[[], bool], known: Set[str] = frozenset()) -> Iterator[Record]:
        """As :class:`propreg.study.execute.trainer.Trainer` does on a GPU: the whole batch."""
        self.known = known
        for run in batch.runs:
            if stop():
                raise Stopped
            time.sleep(self.pause)
            self.trained += 1
            yield Record(run, made_up(run), batch.id)


def made_up(run: Run) -> Outcome:
    """An outcome that depends on the key only."""
    number = int.from_bytes(hashlib.sha256(run.key.encode()).digest()[:4], "little")
    return Outcome(number % 101, 100, number % 997, 1000, 1 + number % 50, 60)


def batches(name: str = "digits-smoke") -> list[Batch]:
    """The batches of an experiment."""
    return cut(load_experiment(name).lines)


def fill(path: Path, runs: Iterable[Run]) -> Path:
    """A store with made-up results of these runs."""
    with Store(path) as store:
        session = store.begin_session({})
        for run in runs:
            store.add(Record(run, made_up(run), "b"), session)
    return path


def exported(path: Path) -> str:
    """The canonical text of a store."""
    with Store(path, "read") as store:
        return "".join(to_lines(store.rows()))


def sweep(path: Path) -> None:
    """Train the smoke experiment for real."""
    from propreg.study.execute.trainer import Trainer

    with Store(path) as store:
        reproduce(batches(), store, lambda: Trainer("cpu"))


def begin(path: Path) -> BaseProcess:
    """The same in another process, which starts at once: its parent has imported torch already."""
    return quick_start.begin(sweep, path)
