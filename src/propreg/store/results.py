"""Finished runs as arrays, from exports or a store: what tables and figures are computed from; and single runs of them.

Nothing here imports torch.
"""

import itertools
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from propreg.engine.spec import Measures, Report
from propreg.metrics import METRICS
from propreg.statistics import Runs
from propreg.store.errors import NoRunError, StudyError, check_one
from propreg.store.export import check_rows, read_sidecar, read_texts, record_files, rows_of, without_spaces
from propreg.store.reports import ACCURACY
from propreg.store.rows import WIDTHS
from propreg.store.run import Cell, Outcome, Record, Run, RunId
from propreg.store.sqlite import STORES, is_store
from propreg.store.store import Store


@dataclass(frozen=True)
class Accuracies:
    """Validation and test accuracy in per cent, or the values of another metric, [splits, seeds]."""

    val: Runs
    test: Runs


Rows = Iterable[Sequence[Any]]


def engines_of(sessions: Iterable[dict[str, Any]], batch: str | None = None) -> frozenset[str]:
    """The digests of the engine's code that sessions name, also those of imported runs.

    Args:
        sessions: Their notes.
        batch: Of those who trained imported runs, only sessions that name this batch.
    """
    found = set[str]()
    for note in sessions:
        makers = note.get("made_by")
        if isinstance(makers, list):  # notes of others may hold anything
            mine = [each for each in makers if isinstance(each, dict) and (batch is None or _names(each, batch))]
            found |= engines_of(mine)
        elif isinstance(engine := note.get("engine"), str):
            found.add(engine)
    return frozenset(found)


def _names(session: dict[str, Any], batch: str) -> bool:
    named = session.get("batches")
    return isinstance(named, list) and batch in named


class Results:
    """Outcomes by cell, split and seed."""

    def __init__(self) -> None:
        self._cells: dict[str, dict[tuple[int, int], Sequence[Any]]] = {}
        self._waiting: dict[str, list[tuple[Callable[[], Rows], str]]] = {}
        self._by_run: dict[RunId, frozenset[str]] = {}
        self._by_batch: dict[str, frozenset[str]] = {}

    def take_engine(self, run: RunId, engines: frozenset[str]) -> None:
        """Note which versions of the engine may have trained a run."""
        self._by_run[run] = engines

    def take_engines(self, notes: Collection[dict[str, Any]]) -> None:
        """Note which versions of the engine trained the batches that sessions name."""
        for note in notes:
            named = note.get("batches")
            for batch in named if isinstance(named, list) else ():
                if isinstance(batch, str):
                    self._by_batch[batch] = self._by_batch.get(batch, frozenset()) | engines_of([note], batch)

    def count_other_engines(self, pairs: Iterable[tuple[Cell, Cell, Sequence[int], Sequence[int]]]) -> tuple[int, int]:
        """How many runs another version of the engine trained than the runs that they are compared with.

        Args:
            pairs: Cells, those that they are compared with, and the splits and seeds of both.

        Returns:
            The number, and that of all pairs of runs whose engines are both known.
        """
        others = known = 0
        if len({engine for found in (*self._by_run.values(), *self._by_batch.values()) for engine in found}) < 2:
            return 0, 0
        for cell, base, splits, seeds in pairs:
            for at in itertools.product(splits, seeds):
                mine, theirs = self._engines(cell.text, *at), self._engines(base.text, *at)
                if mine and theirs:
                    known += 1
                    others += mine.isdisjoint(theirs)
        return others, known

    def _engines(self, cell: str, split: int, seed: int) -> frozenset[str]:
        """The versions of the engine that may have trained a run; none if that is not recorded."""
        row = self._of(cell).get((split, seed))
        if row is None:
            return frozenset()
        return self._by_run.get((cell, split, seed)) or self._by_batch.get(row[-1]) or frozenset()

    def __len__(self) -> int:
        return sum(len(runs) for runs in self._all().values())

    def take(self, cell: str, rows: Rows, source: str = "") -> None:
        """Add rows of a cell, see :mod:`propreg.store.rows`; errors name them by their source."""
        self.take_later(cell, lambda: rows, source)

    def take_later(self, cell: str, rows: Callable[[], Rows], source: str = "") -> None:
        """Add rows that are read only if their cell is needed."""
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
                    at = (row[0], row[1])
                    if at not in mine:
                        mine[at], sources[at] = row, source
                    elif tuple(mine[at][2:10]) != tuple(row[2:10]):
                        raise _unequal(Run.key_of(cell, *at), sources.get(at, ""), source)
                    elif len(row) > len(mine[at]):  # the same training, with more reports
                        mine[at], sources[at] = row, source
            self._cells[cell] = mine
            del self._waiting[cell]  # last: damaged rows raise each time
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
                yield text, split, seed, Outcome(*row[2:-1]), row[-1]

    def splits_and_seeds(self, cell: Cell) -> Set[tuple[int, int]]:
        """The splits and seeds of a cell's runs."""
        return self._of(cell.text).keys()

    def outcome(self, cell: Cell, split: int, seed: int) -> Outcome | None:
        """The result of a run, None if it is missing."""
        row = self._of(cell.text).get((split, seed))
        return None if row is None else Outcome(*row[2:-1])

    def count(self, cell: Cell, splits: Sequence[int], seeds: Sequence[int]) -> int:
        """How many of these runs are recorded."""
        mine = self._of(cell.text)
        return sum((split, seed) in mine for split in splits for seed in seeds)

    def failed(self, cell: Cell, splits: Sequence[int], seeds: Sequence[int]) -> int:
        """How many of these runs ended in NaN."""
        mine = self._of(cell.text)
        rows = (mine.get((split, seed)) for split in splits for seed in seeds)
        return sum(row is not None and row[8] is not None for row in rows)

    def accuracies(self, cell: Cell, splits: Sequence[int], seeds: Sequence[int]) -> Accuracies | None:
        """The accuracies of a cell; None if a run is missing, or records another metric."""
        mine = self._of(cell.text)
        rows = [mine.get((split, seed)) for split in splits for seed in seeds]
        if not rows or any(row is None or (len(row) > WIDTHS[0] and row[-3] != ACCURACY) for row in rows):
            return None
        counts = np.array([row[2:6] for row in rows if row is not None], np.float64)
        shape = (len(splits), len(seeds))
        val, test = 100 * counts[:, 0] / counts[:, 1], 100 * counts[:, 2] / counts[:, 3]
        return Accuracies(val.reshape(shape), test.reshape(shape))

    def scores(
        self, cell: Cell, splits: Sequence[int], seeds: Sequence[int], metric: str = ACCURACY, rule: str = ""
    ) -> Accuracies | None:
        """The values of a metric at the epoch that a rule reports, fractions as fractions.

        Args:
            cell: The cell.
            splits, seeds: Its runs.
            metric: The metric of the recorded scores, or one of :data:`propreg.metrics.METRICS`, of the measures.
            rule: A selection rule; the runs' own if left out.

        Returns:
            None if a run is missing, or recorded without this report or its measures. NaN where a part has no such
            value, such as the ROC-AUC of more than two classes.
        """
        found = []
        for split, seed in itertools.product(splits, seeds):
            outcome, report = self.outcome(cell, split, seed), self.report(cell, split, seed, rule)
            if outcome is None or report is None:
                return None
            if metric == outcome.metric:
                found.append((report.val, report.test))
            elif report.measures is None:
                return None
            else:
                compute = METRICS[metric].compute
                found.append((compute(report.measures.val), compute(report.measures.test)))
        if not found:
            return None
        val, test = np.array(found, np.float64).T.reshape(2, len(splits), len(seeds))
        return Accuracies(val, test)

    def measures(
        self, cell: Cell, splits: Sequence[int], seeds: Sequence[int], rule: str = ""
    ) -> list[list[Measures]] | None:
        """The measures of each split and seed at the epoch that a rule reports; None if some are not recorded."""
        reports = [[self.report(cell, split, seed, rule) for seed in seeds] for split in splits]
        found = [[each.measures for each in row if each is not None and each.measures is not None] for row in reports]
        return found if all(len(row) == len(seeds) for row in found) else None

    def report(self, cell: Cell, split: int, seed: int, rule: str = "") -> Report | None:
        """What a rule reports of a run, the run's own if left out; None if that is not recorded."""
        outcome, wanted = self.outcome(cell, split, seed), rule or cell.protocol.rule
        reports = () if outcome is None else outcome.all_reports(cell.protocol.rule)
        return next((each for each in reports if each.rule == wanted), None)


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
            add_store(results, file)
        elif file.suffix in STORES:
            raise StudyError(f"{file} is damaged or no store: name another one, or exported runs, with --results.")
        else:
            for text in read_texts(file):
                results.take_later(without_spaces(text.cell, file), partial(rows_of, text, file), str(file))
            results.take_engines(read_sidecar(file))
    return results


def add_store(results: Results, path: Path) -> None:
    """Add the runs of a store.

    Raises:
        StudyError: If it cannot be read.
    """
    with Store(path, "read") as store, store.snapshot():
        _take_store(results, store)


def _take_store(results: Results, store: Store) -> None:
    """Add the runs of a store: that none is missing is checked at once, the digest of a row when it is read.

    Raises:
        StudyError: If a run is not stored under its key, or has gone.
    """
    look = f"propreg store check --store {shlex.quote(str(store.path))} lists the fix"
    digests, total, seen = store.digests(), store.total(), set[str]()
    sessions = store.numbered_sessions()
    several, engines = len(engines_of(sessions.values())) > 1, dict[tuple[int, str], frozenset[str]]()
    for cell, group in itertools.groupby(store.stored(), key=lambda each: each[2][0]):
        members = list(group)
        rows = [row[1:] for _, _, row in members]
        keys = [key for key, *_ in members]
        if keys != list(Run.keys_of(cell, [row[:2] for row in rows])):
            raise StudyError(f"{store.path} is damaged, a run is not stored under its key: {look}.")
        seen.update(keys)
        results.take_later(cell, partial(_checked, cell, rows, list(map(digests.get, keys)), store.path, look),
                           str(store.path))  # fmt: skip
        if several:
            for _, session, row in members:
                by = (session, row[-1])
                if by not in engines:
                    engines[by] = engines_of([sessions[session]], row[-1])
                results.take_engine(row[:3], engines[by])
    gone = len(digests.keys() - seen)
    if gone or total != len(seen):
        lost = gone or abs(total - len(seen))
        raise StudyError(f"{store.path} is damaged, {lost} of its runs cannot be found: {look}.")


def _checked(
    cell: str, rows: Sequence[Sequence[Any]], digests: list[bytes | None], path: Path, mend: str
) -> Sequence[Sequence[Any]]:
    check_rows(cell, rows, digests, path, mend)
    return rows


class Exported:
    """The runs of an export or a folder of exports, to train some of them again.

    Raises:
        StudyError: If there is nothing to read, or it cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self.path, self._results = path, load_results(path)

    def find(self, key: str, *, verify: bool = True) -> Record:  # noqa: ARG002  (the rows are always verified)
        """The run of a key, or of the beginning of one."""
        found: list[Record] = []
        for text, split, seed, outcome, batch in self._results.runs():
            # The text is canonical: the key needs no parsing of it, a hundred thousand times.
            if Run.key_of(text, split, seed).startswith(key):
                found.append(Record(Run(Cell.from_text(text), split, seed), outcome, batch))
        check_one(len(found), self.path, key)
        return found[0]

    def close(self) -> None:
        """Do nothing: no file is open."""

    def __enter__(self) -> "Exported":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def members(self, batch: str) -> list[str]:  # noqa: ARG002  (the signature of a store's)
        """None: exports name batches but not their members, which the experiments know."""
        return []

    def tests(self, cell: str, split: int, but: int) -> list[float]:
        """The test scores of a cell on a split, accuracies as fractions, of every seed but one."""
        runs = self._results.runs(cell)
        return [outcome.test_score for _, at, seed, outcome, _ in runs if at == split and seed != but]

    def seeds(self, cell: str, batch: str) -> set[int]:
        """The seeds of a cell whose runs are recorded as of a batch."""
        return {seed for _, _, seed, _, of in self._results.runs(cell) if of == batch}

    def count_in(self, batches: Collection[str]) -> int:
        """The number of runs of these batches."""
        return sum(batch in batches for *_, batch in self._results.runs())


Recorded = Store | Exported


def open_recorded(key: str, paths: Sequence[Path]) -> Recorded:
    """The first of some stores and exports that has the run of a key, or of the beginning of one.

    Raises:
        StudyError: If none has it, or one has more than one such run, or cannot be read.
    """
    for path in paths:
        opened = _open(path)
        try:
            opened.find(key, verify=True)
        except NoRunError:
            opened.close()
            if len(paths) == 1:
                raise
        except BaseException:
            opened.close()
            raise
        else:
            return opened
    raise NoRunError(
        f"Neither {' nor '.join(map(str, paths))} has a run whose key begins with {key!r}: "
        "propreg table --runs lists keys."
    )


def _open(path: Path) -> Recorded:
    if not path.exists():
        raise StudyError(f"There is no {path}: name a store with --store, or exported runs with --results.")
    return Store(path, "read") if path.is_file() and is_store(path) else Exported(path)


def _unequal(key: str, first: str, second: str) -> StudyError:
    files = f"{first} and {second} have" if first != second else f"{first or 'The record'} has"
    return StudyError(
        f"{files} two different results of run {key[:16]}: move the wrong file elsewhere "
        f"(propreg rerun {key[:16]} --results FILE trains the run again to show which)."
    )
