"""Which runs of a sweep are recorded, in which of two records they are read, and how long the rest will take.

A *record* is a store, an export, or a folder of exports. One rule for all commands that read one: a record that is
named is read, and nothing else. Else it is the folder, if it holds exports; but the store, if it has more of the
wanted runs. If both have some of them and not the same, a remark says which was read.
"""

import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from propreg.store.batch import Batch, cost_of
from propreg.store.errors import StudyError
from propreg.store.export import export_files, record_files
from propreg.store.provenance import made_by, provenance
from propreg.store.results import Results, load_results
from propreg.store.run import Cell, RunId
from propreg.store.sqlite import is_store
from propreg.store.store import Store


class Grid(Protocol):
    """Cells × splits × seeds; a line of an experiment is one."""

    @property
    def cells(self) -> Sequence[Cell]: ...
    @property
    def splits(self) -> Sequence[int]: ...
    @property
    def seeds(self) -> Sequence[int]: ...


class Sweep(Protocol):
    """Several grids; an experiment is one."""

    @property
    def lines(self) -> Sequence[Grid]: ...


class HasRuns(Protocol):
    """What knows which runs are recorded, such as :class:`propreg.store.results.Results`."""

    def splits_and_seeds(self, cell: Cell) -> Set[tuple[int, int]]: ...


@dataclass(frozen=True)
class Reading:
    """The record that is read.

    Args:
        path: Where it is.
        results: Its runs.
        remark: A sentence on the other record; empty if there is nothing to say.
        other: The path of the other one, None if there is none.
        behind: Whether the other one lacks wanted runs that this one has.
    """

    path: Path
    results: Results
    remark: str = ""
    other: Path | None = None
    behind: bool = True

    @property
    def paths(self) -> list[Path]:
        """Where files that belong to the record may lie: first beside the one that is read."""
        return [self.path] if self.other is None else [self.path, self.other]


@dataclass(frozen=True)
class Pace:
    """The mean seconds of a recorded run, and the device, if it was one kind of device."""

    seconds_per_run: float
    device: str


@dataclass(frozen=True)
class SweepProgress:
    """How much of a sweep is recorded, and at what pace.

    Args:
        read: The record; None if there is none.
        files: The exports that a store can import to go on; none if a store was read.
        keys: The sweep's runs that need no more training.
        seconds_per_cost: The pace of the store's batches, None if none was timed.
        pace: The pace of all recorded runs, None if it was not noted.
        mean_cost: The mean cost of a recorded run, see :attr:`propreg.store.batch.Batch.cost`; 0 if there is none.
    """

    read: Path | None = None
    files: tuple[Path, ...] = ()
    keys: frozenset[str] = frozenset()
    seconds_per_cost: float | None = None
    pace: Pace | None = None
    mean_cost: float = 0.0

    @classmethod
    def of(cls, batches: Iterable[Batch], reading: Reading) -> "SweepProgress":
        """The progress of a sweep by a record.

        Raises:
            StudyError: If it cannot be read.
        """
        path, results = reading.path, reading.results
        keys = frozenset(key for batch in batches for key in _complete(batch, results))
        if path.is_file() and is_store(path):
            with Store(path, "read") as opened:
                pace = opened.seconds_per_cost(), pace_of(provenance(opened))
                return cls(path, (), keys, *pace, _mean_cost(results))
        files = tuple(record_files(path))
        pace_of_all = pace_of(note for file in files for note in made_by(file))
        return cls(path, files, keys, None, pace_of_all, _mean_cost(results))


def recorded_runs(sweeps: Iterable[Sweep], results: HasRuns) -> tuple[set[RunId], int]:
    """The recorded runs of experiments, and how many they should have, each once: experiments share many."""
    wanted: dict[str, tuple[Cell, set[tuple[int, int]]]] = {}
    for line in (line for sweep in sweeps for line in sweep.lines):
        runs = {(split, seed) for split in line.splits for seed in line.seeds}
        for cell in line.cells:
            wanted.setdefault(cell.text, (cell, set()))[1].update(runs)
    found = ((text, runs & results.splits_and_seeds(cell)) for text, (cell, runs) in wanted.items())
    return {(text, *at) for text, runs in found for at in runs}, sum(len(runs) for _, runs in wanted.values())


def count_runs(sweeps: Iterable[Sweep], results: HasRuns) -> tuple[int, int]:
    """How many runs of experiments are recorded, and how many they should have."""
    found, runs = recorded_runs(sweeps, results)
    return len(found), runs


def find_records(named: Path | None, folder: Path, store: Path) -> list[Path]:
    """The records to read, the first choice first: the named one, or else those of the two that exist."""
    if named is not None:
        return [named]
    return [*([folder] if folder.is_dir() and export_files(folder) else []), *([store] if store.exists() else [])]


def need_records(named: Path | None, folder: Path, store: Path) -> list[Path]:
    """:func:`find_records`, at least one.

    Raises:
        StudyError: If none is named and neither of the two exists.
    """
    found = find_records(named, folder, store)
    if not found:
        raise StudyError(
            f"There are no recorded runs here: neither a folder {folder}/ with exported runs, which a clone of the "
            f"repository has, nor a store {store}: go to one, or name a store or exports with --results."
        )
    return found


def read_recorded(sweeps: Collection[Sweep], found: Sequence[Path]) -> Reading:
    """Read the record that the rule names.

    Args:
        sweeps: The experiments whose runs are wanted.
        found: One or two records, see :func:`find_records`.

    Raises:
        StudyError: If it cannot be read. A store that cannot be read only becomes a remark if there is a folder.
    """
    first, *others = found
    results = load_results(first)
    if not others:
        return Reading(first, results)
    store = others[0]
    here, wanted = recorded_runs(sweeps, results)
    try:
        there, _ = recorded_runs(sweeps, _Known(store))
        if len(there) > len(here):
            return Reading(store, load_results(store), _remark((store, there), (first, here), wanted), first)
    except StudyError as error:
        return Reading(first, results, f"Read from {_name(first)}. The store beside it was left out: {error}", store)
    return Reading(first, results, _remark((first, here), (store, there), wanted), store, behind=bool(here - there))


def missing_from(store: Store, sweeps: Collection[Sweep], folder: Path) -> int:
    """How many runs of experiments the exports in a folder have and a store lacks.

    Raises:
        StudyError: If they cannot be read.
    """
    here, _ = recorded_runs(sweeps, load_results(folder))
    return len(here - recorded_runs(sweeps, _Known(store.path))[0])


def pace_of(sessions: Iterable[dict[str, Any]]) -> Pace | None:
    """The mean time of a run over sessions that noted their seconds and runs; None if none did.

    If a session trained more runs than the counted ones, their share of its time counts.

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


def _complete(batch: Batch, results: Results) -> Iterable[str]:
    for run in batch.runs:
        outcome = results.outcome(run.cell, run.split, run.seed)
        if outcome is not None and batch.is_complete(outcome.reports):
            yield run.key


def _mean_cost(results: Results) -> float:
    counts = Counter(text for text, *_ in results.runs())
    costs = dict[str, float]()
    for text in counts:
        with suppress(StudyError):  # a model that is registered in other programs
            costs[text] = cost_of(Cell.from_text(text))
    return sum(counts[text] * cost for text, cost in costs.items()) / max(sum(counts[text] for text in costs), 1)


class _Known:
    """The runs of a store, without their results."""

    def __init__(self, path: Path) -> None:
        self._found: dict[str, set[tuple[int, int]]] = {}
        with Store(path, "read") as store:
            for text, split, seed in store.run_ids():
                self._found.setdefault(text, set()).add((split, seed))

    def splits_and_seeds(self, cell: Cell) -> Set[tuple[int, int]]:
        return self._found.get(cell.text, set())


def _remark(read: tuple[Path, Set[RunId]], other: tuple[Path, Set[RunId]], wanted: int) -> str:
    """Empty if one of them has none of the runs, or both have the same."""
    if not read[1] or not other[1] or read[1] == other[1]:
        return ""
    return (
        f"Read from {_name(read[0])}, which has {len(read[1]):,} of these {wanted:,} runs; {_name(other[0])} has "
        f"{len(other[1]):,}: --results {shlex.quote(str(other[0]))} reads the other."
    )


def _name(path: Path) -> str:
    return f"{path}/" if path.is_dir() else str(path)


def _runs_of_session(note: dict[str, Any]) -> float:
    """How many runs its seconds are of."""
    named: Any = note.get("runs_of_session")
    return float(named if _is_number(named) else note["runs"])


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and value > 0
