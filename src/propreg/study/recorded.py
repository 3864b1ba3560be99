"""Recorded runs to train again, from a store or from exports."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from propreg.study.errors import NoRunError, StudyError, check_one
from propreg.study.files import is_store, record_files
from propreg.study.merging import made_by
from propreg.study.record import Record
from propreg.study.results import load_results
from propreg.study.run import Cell, Run
from propreg.study.store import Store


class Exported:
    """Runs of an export or a folder of exports, in memory.

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

    def count_in(self, batches: Collection[str]) -> int:
        """How many runs there are of these batches."""
        return sum(batch in batches for *_, batch in self._results.runs())

    def sessions(self) -> list[dict[str, Any]]:
        """Who made them, as far as that is known."""
        return [note for file in record_files(self.path) for note in made_by(file)]


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
