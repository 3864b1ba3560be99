"""How much of a sweep is recorded, and how fast recorded runs were trained."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from propreg.study.batches import cost_of
from propreg.study.files import is_store, record_files
from propreg.study.merging import made_by
from propreg.study.places import Reading
from propreg.study.provenance import provenance
from propreg.study.results import Results
from propreg.study.run import Cell, Run
from propreg.study.store import Store


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
        mean_cost: What such a run costs, see :attr:`propreg.study.batches.Batch.cost`; 0 where there is none.
    """

    read: Path | None = None
    files: tuple[Path, ...] = ()
    keys: frozenset[str] = frozenset()
    seconds_per_cost: float | None = None
    pace: Pace | None = None
    mean_cost: float = 0.0


def what_is_done(runs: Iterable[Run], reading: Reading) -> Done:
    """How far a sweep is, by the record that was read.

    Raises:
        StudyError: If what is there cannot be read.
    """
    path, results = reading.path, reading.results
    keys = frozenset(run.key for run in runs if results.outcome(run.cell, run.split, run.seed) is not None)
    if path.is_file() and is_store(path):
        with Store(path, "read") as opened:
            pace = opened.seconds_per_cost(), pace_of(provenance(opened))
            return Done(path, (), keys, *pace, _mean_cost(results))
    files = tuple(record_files(path))
    pace_of_all = pace_of(note for file in files for note in made_by(file))
    return Done(path, files, keys, None, pace_of_all, _mean_cost(results))


def _mean_cost(results: Results) -> float:
    counts = Counter(text for text, *_ in results.runs())
    total = sum(runs * cost_of(Cell.from_text(text)) for text, runs in counts.items())
    return total / max(counts.total(), 1)


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
