"""Recorded runs, from a store or from exports: those to train again, and how many of a sweep there are."""

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from propreg.study.errors import NoRunError, StudyError, check_one
from propreg.study.merging import is_store, made_by
from propreg.study.places import Reading
from propreg.study.provenance import provenance
from propreg.study.record import Record
from propreg.study.results import export_files, load_results
from propreg.study.run import Cell, Run
from propreg.study.store import Store


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
        check_one(len(found), self.path, key)
        return found[0]

    def close(self) -> None:
        """Nothing: no file is open."""

    def __enter__(self) -> "Exported":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def members(self, batch: str) -> list[str]:  # noqa: ARG002  (as a store is asked)
        """None: exports name batches but not their members, which the experiments know."""
        return []

    def tests(self, cell: str, split: int, but: int) -> list[float]:
        """Test accuracies of a cell on a split, as fractions, of every seed but one."""
        runs = self._results.runs(cell)
        return [out.test / out.test_of for _, at, seed, out, _ in runs if at == split and seed != but]

    def sessions(self) -> list[dict[str, Any]]:
        """Who made them, as far as that is known."""
        return [note for file in _files(self.path) for note in made_by(file)]


Recorded = Store | Exported


def open_recorded(key: str, places: Sequence[Path]) -> Recorded:
    """The first of the places that has the run of a key, or of the beginning of one.

    Raises:
        StudyError: If none has it, or one has more than one such run, or cannot be read.
    """
    for place in places:
        opened = _open(place)
        try:
            opened.find(key)
        except NoRunError:
            opened.close()
            if len(places) == 1:
                raise
        except BaseException:
            opened.close()
            raise
        else:
            return opened
    raise NoRunError(
        f"Neither {' nor '.join(map(str, places))} has a run whose key begins with {key!r}: "
        "propreg table --runs lists keys."
    )


def _open(place: Path) -> Recorded:
    if not place.exists():
        raise StudyError(f"There is no {place}: name a store with --store, or exported runs with --results.")
    return Store(place, "read") if place.is_file() and is_store(place) else Exported(place)


def makers(recorded: Recorded, record: Record) -> list[dict[str, Any]]:
    """The sessions that may have trained a run: the one that wrote it, or else those that name its batch."""
    if isinstance(recorded, Exported):
        notes: Any = recorded.sessions()
    else:
        wrote = _session(recorded, record.run.key)
        if "made_by" not in wrote:
            return [wrote]
        notes = wrote["made_by"]
    named = [note for note in notes if isinstance(note, dict) and isinstance(note.get("batches"), list)]
    return [note for note in named if record.batch in note["batches"]]


def _session(store: Store, key: str) -> dict[str, Any]:
    """What the session that wrote a run into a store noted; nothing where that cannot be read."""
    with store.reading():
        row = store.db.execute("SELECT info FROM sessions JOIN runs ON session = id WHERE key = ?", (key,)).fetchone()
    with suppress(ValueError, TypeError):
        found = json.loads(row[0])
        return found if isinstance(found, dict) else {}
    return {}


def _files(path: Path) -> list[Path]:
    return list(export_files(path)) if path.is_dir() else [path]


@dataclass(frozen=True)
class Pace:
    """How fast recorded runs were trained: the mean seconds of a run, and where, if that was one kind of device."""

    seconds_per_run: float
    device: str


@dataclass(frozen=True)
class Done:
    """What there is of a sweep.

    Args:
        read: The store, export or folder of exports that was read; None where there is none.
        files: The exports that a store can take in to go on; none where a store was read.
        keys: Of the runs that are there, of those asked for.
        seconds_per_cost: The pace of the store's batches, None where none was timed.
        pace: That of all recorded runs, None where nobody noted it.
    """

    read: Path | None = None
    files: tuple[Path, ...] = ()
    keys: frozenset[str] = frozenset()
    seconds_per_cost: float | None = None
    pace: Pace | None = None


def what_is_done(runs: Iterable[Run], reading: Reading) -> Done:
    """How far a sweep is, by the record that was read.

    Raises:
        StudyError: If what is there cannot be read.
    """
    path, results = reading.path, reading.results
    keys = frozenset(run.key for run in runs if results.outcome(run.cell, run.split, run.seed) is not None)
    if path.is_file() and is_store(path):
        with Store(path, "read") as opened:
            return Done(path, (), keys, opened.seconds_per_cost(), pace_of(provenance(opened)))
    files = tuple(_files(path))
    return Done(path, files, keys, None, pace_of(note for file in files for note in made_by(file)))


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
