"""Runs to train again, from a store or from exports."""

from pathlib import Path
from typing import Protocol

from propreg.study.errors import StudyError
from propreg.study.record import Record
from propreg.study.results import load_results
from propreg.study.run import Cell, Run
from propreg.study.store import Store


class Recorded(Protocol):
    """What training a run again needs to know; :class:`propreg.study.store.Store` is one."""

    def find(self, key: str) -> Record: ...

    def members(self, batch: str) -> list[str]: ...

    def tests(self, cell: str, split: int) -> list[float]: ...


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

    def tests(self, cell: str, split: int) -> list[float]:
        """Test accuracies of a cell on a split, as fractions, one per seed."""
        return [out.test / out.test_of for text, at, _, out, _ in self._results.runs(cell) if at == split]


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
