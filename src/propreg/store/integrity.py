"""Whether a store is whole: its tables, SQLite's own check, and that every row matches its key and its digest."""

import math
import shlex
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from propreg.data.benchmarks.catalog import MOLECULE_SETS, NODE_SETS
from propreg.store.batch import batch_id
from propreg.store.errors import StudyError, unknown
from propreg.store.locks import Worker
from propreg.store.rows import Row, implausible, row_digest
from propreg.store.run import OWN_SPLITS, Cell, Run
from propreg.store.sqlite import has_log, has_wal, log_of, missing
from propreg.store.sqlite_errors import clipped
from propreg.store.store import Store


class Checked(NamedTuple):
    """How many runs a store has, and what is wrong with it."""

    runs: int
    wrong: list[str]


class Fixes:
    """What to do about damage: the commands, for one store."""

    def __init__(self, path: Path) -> None:
        self.store = shlex.quote(str(path))
        self.anew = (
            "take the runs from a copy or an export into a new store, with propreg store import FILE --store NEW, or "
            f"those that are whole, with propreg store salvage {self.store} --store NEW"
        )

    def mend(self, key: str) -> str:
        """For a run that was changed after it was stored."""
        return (
            "propreg store import repairs it from a copy or an export that has it; "
            f"propreg store remove {key} --store {self.store} drops it, so that propreg reproduce trains it again"
        )

    def remove(self, key: str) -> str:
        """For a run that should not be there."""
        return f"propreg store remove {key} --store {self.store} drops it"

    @property
    def clear(self) -> str:
        """For leases."""
        return f"propreg store leases --clear --store {self.store}"


def check_store(path: Path) -> Checked:
    """Check a store for damage. It is only read."""
    try:
        with Store(path, "read") as store:
            return check_opened(store)
    except StudyError as error:
        return Checked(0, [str(error)])


def need_whole(store: Store) -> None:
    """Refuse to copy runs out of a damaged store: in the copy they would look whole.

    Raises:
        StudyError: If something is wrong with it.
    """
    wrong = check_opened(store).wrong
    if wrong:
        many = "1 thing is" if len(wrong) == 1 else f"{len(wrong)} things are"
        raise StudyError(
            f"{store.path} is damaged, {many} wrong with it: propreg store check --store "
            f"{shlex.quote(str(store.path))} lists what, and the fix."
        )


def check_opened(store: Store) -> Checked:
    """Check an open store for damage, as it is at one moment."""
    with store.snapshot():
        lacking = missing(store.db)
        if lacking:  # all else that a check could find follows from it
            return Checked(0, [f"{store.path} has no {', no '.join(lacking)}: {Fixes(store.path).anew}"])
        return _check(store)


def impossible(cell: Cell, row: Row) -> list[str]:
    """What cannot be of a run of this cell, in words, beyond what cannot be of any.

    Args:
        cell: The cell.
        row: The row, without its cell.
    """
    found = implausible(row)
    if found:
        return found
    if cell.split_kind in OWN_SPLITS and cell.dataset not in NODE_SETS:  # of a graph whose size only its owner knows
        return found
    known = NODE_SETS.get(cell.dataset)
    size = known.nodes if known else MOLECULE_SETS[cell.dataset].graphs if cell.dataset in MOLECULE_SETS else 0
    if not size:
        return [str(unknown("dataset", cell.dataset, [*NODE_SETS, *MOLECULE_SETS])).rstrip(".")]
    if row[3] + row[5] > size:
        found.append(f"has {row[3] + row[5]:,} validation and test nodes, and {cell.dataset} has {size:,} in all")
    return found


def _check(store: Store) -> Checked:
    with store.reading():
        whole, referring = (
            store.db.execute(f"PRAGMA {name}_check").fetchall() for name in ("integrity", "foreign_key")
        )
    fix = Fixes(store.path)
    wrong = [f"SQLite: {clipped(' '.join(text.split()))}: {fix.anew}" for (text,) in whole if text != "ok"]
    wrong += [f"row {row[1]} of {row[0]} refers to nothing: {fix.anew}" for row in referring]
    keys, digests, seen = store.keys(), store.digests(), set[str]()
    cells, sizes = dict[str, Cell | None](), Sizes()
    for row in store.rows():
        text, split, seed = row[:3]
        if text not in cells:
            cells[text] = cell_of(text)
        cell, key = cells[text], Run.key_of(text, split, seed)
        if cell is None or key not in keys or key in seen:
            what = repr(str(text)[:40]) if cell is None else cell.dataset
            wrong.append(f"a run of {what}, split {split}, seed {seed}, is not stored under its key: {fix.anew}")
            continue
        seen.add(key)
        name = f"{key[:16]} ({cell.dataset}, split {split}, seed {seed})"
        never = impossible(cell, row[1:])
        if digests.get(key) != row_digest(row):
            wrong.append(
                f"run {name} {' and '.join(['was changed after it was stored', *never])}: {fix.mend(key[:16])}"
            )
        elif never:
            wrong.append(f"run {name} {' and '.join(never)}: {fix.remove(key[:16])}")
        else:
            sizes.add(cell, key, row[1:])
    wrong += [f"{line}: {fix.remove(key[:16])}" for key, line in sizes.unequal()]
    wrong += [f"key {key} has no run that is whole: {fix.anew}" for key in _beginnings(keys - seen)]
    gone = digests.keys() - keys
    wrong += [f"run {key} has a digest, but is gone: {fix.mend(key)}" for key in _beginnings(gone)]
    total = store.total()
    if total not in (len(keys), len(keys | gone)):
        wrong.append(f"{store.path} should have {total} runs, and has {len(keys)}: {fix.anew}")
    wrong += _batches_and_leases(store, keys, fix)
    try:
        store.sessions()
    except StudyError as error:
        wrong.append(str(error))
    return Checked(len(keys), wrong)


def _batches_and_leases(store: Store, keys: set[str], fix: Fixes) -> Iterator[str]:
    """What is wrong with the notes on batches; and runs that are still in a log which does not lie beside the file."""
    with store.reading():
        batches = store.db.execute("SELECT id, keys, cost, seconds FROM batches").fetchall()
        held = store.db.execute("SELECT batch, host, pid, born, expires FROM leases").fetchall()
    members = dict[str, list[str]]()
    for batch, text, cost, seconds in batches:
        if not isinstance(text, str) or batch_id(text) != batch or not _is_time(cost) or not _is_time(seconds or 0.0):
            yield f"batch {_short(batch)} was changed after it was stored: {fix.anew}"
        else:
            members[batch] = [text[at : at + 64] for at in range(0, len(text), 64)]
    away, without_log = 0, has_wal(store.path) and not has_log(store.path)
    for batch, host, pid, born, expires in held:
        kinds = isinstance(batch, str) and isinstance(host, str) and isinstance(born, str) and type(pid) is int
        if not kinds or not _is_time(expires):
            yield f"the lease of batch {_short(batch)} is damaged: {fix.clear} removes it"
        elif without_log and not Worker(host, pid, born).is_here():
            away += len(set(members.get(batch, ())) - keys)
    if away:
        log = log_of(store.path).name
        yield (
            f"up to {away} runs may be missing: they were in training when {store.path} was last written, and later "
            f"results are in {log}, which is not beside it: copy both files; if {log} does not exist, "
            f"{fix.clear} continues without it"
        )


def cell_of(text: str) -> Cell | None:
    """The cell of a text; None if it is not the canonical text of one."""
    try:
        cell = Cell.from_text(text)
        return cell if cell.text == text else None
    except (ValueError, TypeError, RecursionError):  # damage can leave any JSON, or none
        return None


def _beginnings(keys: set[str]) -> list[str]:
    """The first digits of keys, for people; a damaged key may hold anything."""
    return sorted(map(_short, keys))


def _short(text: object) -> str:
    return ascii(str(text)[:16]).strip("'")


def _is_time(value: object) -> bool:
    return type(value) in (int, float) and math.isfinite(value) and value >= 0  # type: ignore[arg-type,operator]


class Sizes:
    """How many nodes runs were validated and tested on: the same for all runs on one split of a dataset."""

    def __init__(self) -> None:
        self.found: dict[tuple[Any, ...], list[tuple[tuple[int, int], str]]] = defaultdict(list)

    def add(self, cell: Cell, key: str, row: Row) -> None:
        """Add a row without its cell."""
        nodes = (cell.dataset, cell.split_name(row[0]), row[0])
        self.found[nodes].append(((row[3], row[5]), key))

    def unequal(self) -> list[tuple[str, str]]:
        """The key of each run whose sizes are not those of most others on its split, and a sentence on it."""
        found = []
        for (dataset, *_, split), runs in self.found.items():
            ((usual, _),) = Counter(size for size, _ in runs).most_common(1)
            found += [
                (
                    key,
                    f"run {key[:16]} has {size[0]} validation and {size[1]} test nodes, but others of {dataset}, split "
                    f"{split}, have {usual[0]} and {usual[1]}",
                )
                for size, key in runs
                if size != usual
            ]
        return found
