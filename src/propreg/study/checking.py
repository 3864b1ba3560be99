"""Whether a store is whole: its tables, SQLite's own check, and that every row is what its key and digest say."""

from collections import Counter, defaultdict
from pathlib import Path
from typing import NamedTuple

from propreg.study.errors import StudyError
from propreg.study.plausible import implausible
from propreg.study.row_digest import row_digest
from propreg.study.run import Cell, Run
from propreg.study.schema import missing
from propreg.study.store import Row, Store

MEND = (
    "propreg store import puts it right from a copy or an export that has it; to train it again, run propreg reproduce "
    "with a new --store"
)
ANEW = "take the runs from a copy or an export into a new store, with propreg store import FILE --store NEW"


class Checked(NamedTuple):
    """How many runs a store has, what is wrong with it, and how many have no digest: those of an earlier propreg."""

    runs: int
    wrong: list[str]
    without_digest: int = 0


def check_store(path: Path) -> Checked:
    """Look for damage. The store is only read."""
    try:
        with Store(path, "read") as store:
            return check_opened(store)
    except StudyError as error:
        return Checked(0, [str(error)])


def need_whole(store: Store) -> None:
    """Refuse to hand on runs of a store that is damaged: wherever they come to, they would look whole.

    Raises:
        StudyError: If something is wrong with it.
    """
    wrong = check_opened(store).wrong
    if wrong:
        many = "1 thing is" if len(wrong) == 1 else f"{len(wrong)} things are"
        raise StudyError(
            f"{store.path} is damaged, {many} wrong with it: propreg store check --store {store.path} names what, and "
            "what mends it."
        )


def check_opened(store: Store) -> Checked:
    """Look for damage in a store that is open, as it is at one moment."""
    with store.snapshot():
        lacking = missing(store.db)
        if lacking:  # whatever else would be said follows from that
            return Checked(0, [f"{store.path} has no {', no '.join(lacking)}: {ANEW}"])
        return _check(store)


def _check(store: Store) -> Checked:
    with store.reading():
        whole, referring = (
            store.db.execute(f"PRAGMA {name}_check").fetchall() for name in ("integrity", "foreign_key")
        )
    wrong = [f"SQLite: {' '.join(text.split())}" for (text,) in whole if text != "ok"]
    wrong += [f"row {row[1]} of {row[0]} refers to nothing: {ANEW}" for row in referring]
    keys, digests, seen = store.keys(), store.digests(), set[str]()
    cells, sizes = dict[str, Cell | None](), _Sizes()
    for row in store.rows():
        text, split, seed = row[:3]
        if text not in cells:
            cells[text] = _cell(text)
        cell, key = cells[text], Run.key_of(text, split, seed)
        if cell is None or key not in keys or key in seen:
            what = repr(str(text)[:40]) if cell is None else cell.dataset
            wrong.append(f"a run of {what}, split {split}, seed {seed}, is not stored under its key: {ANEW}")
            continue
        seen.add(key)
        said = ["is not what was stored"] if key in digests and row_digest(row) != digests[key] else []
        if said := said + implausible(row[1:]):
            place = f"{cell.dataset}, split {split}, seed {seed}"
            wrong.append(f"run {key[:16]} ({place}) {' and '.join(said)}: {MEND}")
        else:
            sizes.add(cell, key, row)
    wrong += sizes.unequal()
    wrong += [f"key {key} has no run that is whole: {ANEW}" for key in _beginnings(keys - seen)]
    wrong += [f"run {key} has a digest, but is gone: {MEND}" for key in _beginnings(digests.keys() - keys)]
    try:
        store.sessions()
    except StudyError as error:
        wrong.append(str(error))
    return Checked(len(keys), wrong, len(seen - digests.keys()))


def _cell(text: str) -> Cell | None:
    """The cell of a text; None where it is not exactly that cell's."""
    try:
        cell = Cell.from_text(text)
        return cell if cell.text == text else None
    except (ValueError, TypeError, RecursionError):  # what damage leaves is any JSON, or none
        return None


def _beginnings(keys: set[str]) -> list[str]:
    """What people see of keys, also of damaged ones."""
    return sorted(ascii(str(key)[:16]).strip("'") for key in keys)


class _Sizes:
    """How many nodes runs were validated and tested on: equal for all on one split of a dataset."""

    def __init__(self) -> None:
        self._found: dict[tuple[object, ...], list[tuple[tuple[int, int], str]]] = defaultdict(list)

    def add(self, cell: Cell, key: str, row: Row) -> None:
        place = (cell.dataset, cell.split_kind, cell.train_nodes, row[1])
        self._found[place].append(((row[4], row[6]), key))

    def unequal(self) -> list[str]:
        """A sentence for each run whose numbers few others on its split have."""
        found = []
        for (dataset, *_, split), runs in self._found.items():
            ((usual, _),) = Counter(size for size, _ in runs).most_common(1)
            found += [
                f"run {key[:16]} has {size[0]} validation and {size[1]} test nodes, but others of {dataset}, split "
                f"{split}, have {usual[0]} and {usual[1]}: {MEND}"
                for size, key in runs
                if size != usual
            ]
        return found
