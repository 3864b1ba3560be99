"""Finished runs as arrays, from exports or a store: what tables and figures are computed from. No torch."""

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from propreg.statistics import Runs
from propreg.study.errors import StudyError
from propreg.study.exported import canonical, check_rows, read_texts, rows_of
from propreg.study.files import STORES, is_store, record_files
from propreg.study.record import Outcome
from propreg.study.run import Cell, Run
from propreg.study.store import Store


@dataclass(frozen=True)
class Accuracies:
    """Validation and test accuracy in per cent, [splits, seeds]."""

    val: Runs
    test: Runs


Rows = Iterable[Sequence[Any]]


class Results:
    """Outcomes by cell, split and seed."""

    def __init__(self) -> None:
        self._cells: dict[str, dict[tuple[int, int], Sequence[Any]]] = {}
        self._waiting: dict[str, list[tuple[Callable[[], Rows], str]]] = {}

    def __len__(self) -> int:
        return sum(len(runs) for runs in self._all().values())

    def take(self, cell: str, rows: Rows, source: str = "") -> None:
        """Add rows (split, seed, the outcome's columns, batch) of a cell; the source is what an error calls them."""
        self.take_later(cell, lambda: rows, source)

    def take_later(self, cell: str, rows: Callable[[], Rows], source: str = "") -> None:
        """The same of rows that are read only when someone asks for their cell."""
        self._waiting.setdefault(cell, []).append((rows, source))

    def _of(self, cell: str) -> dict[tuple[int, int], Sequence[Any]]:
        """The rows of a cell by split and seed.

        Raises:
            StudyError: If they cannot be read, or a run has two results.
        """
        if cell in self._waiting:
            mine, sources = dict(self._cells.get(cell, {})), dict[tuple[int, int], str]()
            for rows, source in self._waiting[cell]:
                for row in rows():
                    place = (row[0], row[1])
                    if place not in mine:
                        mine[place], sources[place] = row, source
                    elif tuple(mine[place][2:10]) != tuple(row[2:10]):
                        raise _unequal(Run.key_of(cell, *place), sources.get(place, ""), source)
            self._cells[cell] = mine
            del self._waiting[cell]  # last: what is damaged stays so
        return self._cells.get(cell, {})

    def _all(self) -> dict[str, dict[tuple[int, int], Sequence[Any]]]:
        for cell in list(self._waiting):
            self._of(cell)
        return self._cells

    def runs(self, cell: str | None = None) -> Iterator[tuple[str, int, int, Outcome, str]]:
        """(cell text, split, seed, outcome, batch) of all runs, or of a cell's."""
        cells = self._all() if cell is None else {cell: self._of(cell)}
        for text, rows in cells.items():
            for (split, seed), row in rows.items():
                yield text, split, seed, Outcome(*row[2:10]), row[10]

    def places(self, cell: Cell) -> Set[tuple[int, int]]:
        """The splits and seeds that a cell has runs of."""
        return self._of(cell.text).keys()

    def outcome(self, cell: Cell, split: int, seed: int) -> Outcome | None:
        """The result of a run, None where it is missing."""
        row = self._of(cell.text).get((split, seed))
        return None if row is None else Outcome(*row[2:10])

    def count(self, cell: Cell, splits: Sequence[int], seeds: Sequence[int]) -> int:
        """How many of these runs there are."""
        mine = self._of(cell.text)
        return sum((split, seed) in mine for split in splits for seed in seeds)

    def failed(self, cell: Cell, splits: Sequence[int], seeds: Sequence[int]) -> int:
        """How many of these runs ended in NaN."""
        mine = self._of(cell.text)
        rows = (mine.get((split, seed)) for split in splits for seed in seeds)
        return sum(row is not None and row[8] is not None for row in rows)

    def accuracies(self, cell: Cell, splits: Sequence[int], seeds: Sequence[int]) -> Accuracies | None:
        """Those of a cell; None where a run is missing."""
        mine = self._of(cell.text)
        rows = [mine.get((split, seed)) for split in splits for seed in seeds]
        if not rows or any(row is None for row in rows):
            return None
        counts = np.array([row[2:6] for row in rows if row is not None], np.float64)
        shape = (len(splits), len(seeds))
        val, test = 100 * counts[:, 0] / counts[:, 1], 100 * counts[:, 2] / counts[:, 3]
        return Accuracies(val.reshape(shape), test.reshape(shape))


def _unequal(key: str, first: str, second: str) -> StudyError:
    files = f"{first} and {second} have" if first != second else f"{first or 'The record'} has"
    return StudyError(
        f"{files} two different results of run {key[:16]}: move the file that is wrong elsewhere "
        f"(propreg rerun {key[:16]} --results FILE trains the run again to tell which one is)."
    )


def load_results(path: Path) -> Results:
    """Read a store, an export, or a folder of exports.

    Raises:
        StudyError: If there is nothing to read, or it cannot be read.
    """
    if not path.exists():
        raise StudyError(f"There are no results at {path}: name a store or a folder of exports with --results.")
    files = record_files(path)
    if not files:
        raise StudyError(f"{path} holds no exported runs (*.jsonl or *.jsonl.gz): propreg store export makes some.")
    results = Results()
    for file in files:
        if is_store(file):
            with Store(file, "read") as store:
                for row in store.rows():
                    check_rows([row[1:]], file, f"propreg store check --store {file} says how to mend it")
                    results.take(row[0], [row[1:]], str(file))
        elif file.suffix in STORES:
            raise StudyError(f"{file} is damaged or no store: name another one, or exported runs, with --results.")
        else:
            for cell, runs in read_texts(file):
                results.take_later(canonical(cell, file), partial(rows_of, runs, file), str(file))
    return results
