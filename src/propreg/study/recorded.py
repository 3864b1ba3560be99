"""Recorded runs, from a store or from exports: those to train again, and how many of a sweep there are."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from propreg.study.errors import StudyError
from propreg.study.merging import made_by
from propreg.study.provenance import provenance
from propreg.study.record import Record
from propreg.study.results import load_results
from propreg.study.run import Cell, Run
from propreg.study.store import Store


class Recorded(Protocol):
    """What training a run again needs to know; :class:`propreg.study.store.Store` is one."""

    def find(self, key: str) -> Record: ...

    def members(self, batch: str) -> list[str]: ...

    def tests(self, cell: str, split: int, but: int) -> list[float]: ...


class Exported:
    """Runs of a store, an export or a folder of exports, in memory.

    Raises:
        StudyError: If there is nothing to read, or it cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self.path, self._results = path, load_results(path)

    def find(self, key: str) -> Record:
        """The run of a key, or of the beginning of one."""
        found: list[Record] = []
        for text, split, seed, outcome, batch in self._results.runs():
            # The text is canonical, so that a key can be had without parsing it, a hundred thousand times.
            if Run.key_of(text, split, seed).startswith(key):
                found.append(Record(Run(Cell.from_text(text), split, seed), outcome, batch))
        if len(found) != 1:
            many = "no run" if not found else "more than one run"
            raise StudyError(f"{self.path} has {many} whose key begins with {key!r}: propreg table --runs lists keys.")
        return found[0]

    def __enter__(self) -> "Exported":
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def members(self, batch: str) -> list[str]:  # noqa: ARG002  (as a store is asked)
        """None: exports name batches but not their members, which the experiments know."""
        return []

    def tests(self, cell: str, split: int, but: int) -> list[float]:
        """Test accuracies of a cell on a split, as fractions, of every seed but one."""
        runs = self._results.runs(cell)
        return [out.test / out.test_of for _, at, seed, out, _ in runs if at == split and seed != but]


def open_recorded(store: Path, results: Path | None, usual: Path | None = None) -> "Store | Exported":
    """The store, or else exports: those that are named, or a usual folder where there is no store.

    Raises:
        StudyError: If there is neither.
    """
    if results is not None:
        return Exported(results)
    if store.exists() or usual is None:
        return Store(store, "read")
    if usual.is_dir():
        return Exported(usual)
    raise StudyError(
        f"There is no store {store} and no folder {usual}: name exported runs with --results, or take them into a "
        "store with propreg store import results/runs.jsonl.gz."
    )


@dataclass(frozen=True)
class Pace:
    """How fast recorded runs were trained: the mean seconds of a run, and where, if that was one kind of device."""

    seconds_per_run: float
    device: str


@dataclass(frozen=True)
class Done:
    """What there is of a sweep.

    Args:
        read: The store or the folder of exports that was read; None where there is neither.
        files: The exports that a store can take in to go on; none where a store was read.
        keys: Of the runs that are there, at least of those asked for.
        seconds_per_cost: The pace of the store's batches, None where none was timed.
        pace: That of all recorded runs, None where nobody noted it.
    """

    read: Path | None = None
    files: tuple[Path, ...] = ()
    keys: frozenset[str] = frozenset()
    seconds_per_cost: float | None = None
    pace: Pace | None = None


def what_is_done(runs: Iterable[Run], store: Path, usual: Path | None = None) -> Done:
    """How far a sweep is: by the store, or else by a usual folder of exports.

    Raises:
        StudyError: If what is there cannot be read.
    """
    read = where_done(store, usual)
    if read is None:
        return Done()
    if read == store:
        with Store(store, "read") as opened:
            keys, rate = frozenset(opened.keys()), opened.seconds_per_cost()
            return Done(store, (), keys, rate, pace_of(provenance(opened)))
    results, files = load_results(read), tuple(sorted(read.glob("*.jsonl*")))
    keys = frozenset(run.key for run in runs if results.outcome(run.cell, run.split, run.seed) is not None)
    return Done(read, files, keys, None, pace_of(note for file in files for note in made_by(file)))


def where_done(store: Path, usual: Path | None = None) -> Path | None:
    """The store, or else a usual folder that holds exports; None where there is neither."""
    if store.exists():
        return store
    return usual if usual is not None and any(usual.glob("*.jsonl*")) else None


def pace_of(sessions: Iterable[dict[str, Any]]) -> Pace | None:
    """The mean time of a run over sessions that noted their seconds and runs; None where none did.

    Of a session that trained more runs than those that are meant, so much of its time counts as these are of all.

    Example:
        >>> pace_of([{"runs": 30, "seconds": 20.0, "device": "cpu"}, {"runs": 10, "seconds": 20.0}, {"runs": 5}])
        Pace(seconds_per_run=1.0, device='')
        >>> pace_of([{"runs": 30, "runs_of_session": 300, "seconds": 60.0, "device": "cpu"}])
        Pace(seconds_per_run=0.2, device='cpu')
    """
    timed = [note for note in sessions if _is_number(note.get("runs")) and _is_number(note.get("seconds"))]
    if not timed:
        return None
    devices = {str(note.get("device", "")) for note in timed}
    seconds = (note["seconds"] * note["runs"] / max(note["runs"], _runs_of_session(note)) for note in timed)
    return Pace(sum(seconds) / sum(note["runs"] for note in timed), devices.pop() if len(devices) == 1 else "")


def _runs_of_session(note: dict[str, Any]) -> float:
    """How many runs its seconds are of."""
    named: Any = note.get("runs_of_session")
    return float(named if _is_number(named) else note["runs"])


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and value > 0
