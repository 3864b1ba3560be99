"""Which of two records is read, the folder of exports or the store: one rule for all commands that read recorded runs.

What is named is read, and nothing else. Else it is the folder, where it holds exports; but the store, where that has
more of the runs that are asked for. Where both have some of them and not the same, a remark says which was read.
"""

import shlex
from collections.abc import Collection, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from propreg.study.counting import Place, recorded_runs
from propreg.study.errors import StudyError
from propreg.study.experiment import Experiment
from propreg.study.files import export_files
from propreg.study.results import Results, load_results
from propreg.study.run import Cell
from propreg.study.store import Store


@dataclass(frozen=True)
class Reading:
    """The record that is read.

    Args:
        path: Where it is.
        results: Its runs.
        remark: What there is to say of the other one; empty where nothing is.
        other: Where that one is, None where there is none.
        behind: Whether the other one lacks runs that this one has of those asked for.
    """

    path: Path
    results: Results
    remark: str = ""
    other: Path | None = None
    behind: bool = True

    @property
    def places(self) -> list[Path]:
        """Where files that belong to the record may lie: with what was read, else with the other."""
        return [self.path] if self.other is None else [self.path, self.other]


def places(named: Path | None, folder: Path, store: Path) -> list[Path]:
    """Where runs are looked for, in this order: what is named alone, or else those of the two that are there."""
    if named is not None:
        return [named]
    return [*([folder] if folder.is_dir() and export_files(folder) else []), *([store] if store.exists() else [])]


def need_places(named: Path | None, folder: Path, store: Path) -> list[Path]:
    """The same, at least one.

    Raises:
        StudyError: If nothing is named and neither is there.
    """
    found = places(named, folder, store)
    if not found:
        raise StudyError(
            f"There are no recorded runs here: neither a folder {folder}/ with exported runs, which a clone of the "
            f"repository has, nor a store {store}: go to one, or name a store or exports with --results."
        )
    return found


def read_recorded(experiments: Collection[Experiment], found: Sequence[Path]) -> Reading:
    """Read the place that the rule names.

    Args:
        experiments: Those whose runs are asked for.
        found: One or two places, see :func:`places`.

    Raises:
        StudyError: If it cannot be read. A store that cannot be read only becomes a remark where there is a folder.
    """
    first, *others = found
    results = load_results(first)
    if not others:
        return Reading(first, results)
    store = others[0]
    here, asked = recorded_runs(experiments, results)
    try:
        there, _ = recorded_runs(experiments, _known(store))
        if len(there) > len(here):
            return Reading(store, load_results(store), _remark((store, there), (first, here), asked), first)
    except StudyError as error:
        return Reading(first, results, f"Read from {_name(first)}. The store beside it was left out: {error}", store)
    return Reading(first, results, _remark((first, here), (store, there), asked), store, behind=bool(here - there))


def lacking(experiments: Collection[Experiment], folder: Path, store: Store) -> int:
    """How many runs of experiments the exports in a folder have and a store has not.

    Raises:
        StudyError: If they cannot be read.
    """
    here, _ = recorded_runs(experiments, load_results(folder))
    return len(here - recorded_runs(experiments, _known(store.path))[0])


def _known(path: Path) -> "_Known":
    """The runs of a store, without reading their results."""
    with Store(path, "read") as store, store.reading():
        return _Known(store.db.execute("SELECT text, split, seed FROM runs JOIN cells ON cells.id = cell").fetchall())


class _Known:
    """Runs of which only the places are known."""

    def __init__(self, rows: Sequence[tuple[str, int, int]]) -> None:
        self._places: dict[str, set[tuple[int, int]]] = {}
        for text, split, seed in rows:
            self._places.setdefault(text, set()).add((split, seed))

    def places(self, cell: Cell) -> Set[tuple[int, int]]:
        return self._places.get(cell.text, set())


def _remark(read: tuple[Path, Set[Place]], other: tuple[Path, Set[Place]], asked: int) -> str:
    """Nothing where one of them has none of the runs, or both have the same."""
    if not read[1] or not other[1] or read[1] == other[1]:
        return ""
    return (
        f"Read from {_name(read[0])}, which has {len(read[1]):,} of these {asked:,} runs; {_name(other[0])} has "
        f"{len(other[1]):,}: --results {shlex.quote(str(other[0]))} reads that one."
    )


def _name(place: Path) -> str:
    return f"{place}/" if place.is_dir() else str(place)
