"""Whether a store is whole: SQLite's own check, and that every row is what its key says."""

from pathlib import Path

from propreg.study.errors import StudyError
from propreg.study.record import Outcome
from propreg.study.run import Cell, Run
from propreg.study.store import Store


def check_store(path: Path) -> tuple[int, list[str]]:
    """How many runs a store has, and what is wrong with it. It is only read."""
    try:
        with Store(path, "read") as store:
            return _check(store)
    except StudyError as error:
        return 0, [str(error)]


def _check(store: Store) -> tuple[int, list[str]]:
    with store.reading():
        wrong = [f"SQLite: {text}" for (text,) in store.db.execute("PRAGMA integrity_check") if text != "ok"]
        wrong += [f"row {row[1]} of {row[0]} refers to nothing" for row in store.db.execute("PRAGMA foreign_key_check")]
    keys, cells = store.keys(), dict[str, Cell]()
    for text, split, seed, *out, _ in store.rows():
        if text not in cells:
            cells[text] = Cell.from_text(text)
        cell = cells[text]
        run, outcome = Run(cell, split, seed), Outcome(*out)
        if cell.text != text or run.key not in keys:
            wrong.append(f"a run of {cell.dataset}, split {split}, seed {seed}, is not stored under its key")
        if not (0 <= outcome.val <= outcome.val_of and 0 <= outcome.test <= outcome.test_of):
            wrong.append(f"run {run.key[:16]} has more nodes right than there are")
    return len(keys), wrong
