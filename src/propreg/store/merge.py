"""Importing runs from an export or another store; equal keys with unequal results are reported, never overwritten."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from propreg.store.errors import StudyError
from propreg.store.export import damaged, parsed, read_sidecar, read_texts, rows_of
from propreg.store.integrity import Fixes, Sizes, impossible, need_whole
from propreg.store.provenance import provenance
from propreg.store.run import Cell, Outcome, Record, Run
from propreg.store.sqlite import is_store
from propreg.store.store import Store


@dataclass
class Taken:
    """The counts of an import: runs added or completed, runs known, and the keys whose results contradict the store."""

    added: int = 0
    same: int = 0
    unequal: list[str] = field(default_factory=list)


class _Source(NamedTuple):
    """The sessions that trained the runs of a file, and the runs."""

    made_by: list[dict[str, Any]]
    records: list[Record]


def take_into(store: Path, path: Path) -> Taken:
    """Add the runs of an export or a store to a store, all or none of a file.

    The store is made if it does not exist, but only for runs that can be added. It is never removed again: as soon as
    it has a name, others may work on it.
    """
    if path.exists() and store.exists() and path.samefile(store):
        raise StudyError(f"{path} is the store itself: name another one to take runs from.")
    source = _read(path)
    with Store(store) as opened:
        taken = _add(opened, path, source)
        opened.checkpoint()
        return taken


def _read(path: Path) -> _Source:
    """The runs of an export or a store, as they are at one moment.

    Raises:
        StudyError: If it is neither, or damaged.
    """
    if not is_store(path):
        return _exported(path)
    with Store(path, "read") as store, store.snapshot():
        need_whole(store)
        records = [_record(Cell.from_text(row[0]), row[1:]) for row in store.rows()]
        return _Source(provenance(store), records)


def _exported(path: Path) -> _Source:
    records = list[Record]()
    for text in read_texts(path):
        value = parsed(text.cell, path)
        try:
            cell = Cell.from_json(value)
        except StudyError as error:
            raise StudyError(f"{path} is damaged, or from a newer propreg: {error}") from error
        except RecursionError as error:
            raise damaged(path) from error
        records += [_record(cell, row) for row in rows_of(text, path)]
    for record in records:
        _refuse_impossible(record, path)
    return _Source(read_sidecar(path), records)


def _refuse_impossible(record: Record, path: Path) -> None:
    """Refuse a run that no training could have: a store that took it would fail its check for ever."""
    run, out = record.run, record.outcome
    if wrong := impossible(run.cell, (run.split, run.seed, *out.row, record.batch)):
        who = f"run {run.key[:16]} of split {run.split}, seed {run.seed}"
        raise StudyError(
            f"{path} is damaged, or from a newer propreg: {who} {' and '.join(wrong)}. Nothing was imported."
        )


def _refuse_other_sizes(store: Store, records: list[Record], path: Path) -> None:
    """Refuse runs with other numbers of nodes than those of the store, or of the same file, on the same split."""
    known = Sizes()
    cells = dict[str, Cell]()
    rows = store.db.execute(
        "SELECT text, split, val_of, test_of, min(key) FROM runs JOIN cells ON cells.id = cell GROUP BY 1, 2, 3, 4"
    ).fetchall()
    for text, split, val_of, test_of, key in rows:
        if store.is_whole(key):  # a damaged row is about to be repaired
            if text not in cells:
                cells[text] = Cell.from_text(text)
            known.add(cells[text], key, (split, 0, 0, val_of, 0, test_of))
    for record in records:
        run, out = record.run, record.outcome
        place = (run.cell.dataset, run.cell.split_name(run.split), run.split)
        mine, others = (out.val_of, out.test_of), known.found.get(place, [])
        if others and all(size != mine for size, _ in others):
            size, key = others[0]
            they = f"run {key[:16]} has {size[0]} and {size[1]} on the same split of {run.cell.dataset}"
            ours = any(key == each.run.key for each in records)
            where, fix = (
                ("in it", "export it again, or take a copy")
                if ours
                else (f"in {store.path}", f"if the store is wrong, {Fixes(store.path).remove(key[:16])}")
            )
            raise StudyError(
                f"{path} has run {run.key[:16]} with {mine[0]} validation and {mine[1]} test nodes, but {where} "
                f"{they}; nothing was imported: {fix}."
            )
        if not others:
            known.found[place].append((mine, run.key))


def _record(cell: Cell, row: Sequence[Any]) -> Record:
    split, seed, *outcome, batch = row
    return Record(Run(cell, split, seed), Outcome(*outcome), batch)


def _add(store: Store, path: Path, source: _Source) -> Taken:
    taken = Taken()
    with store.transaction():
        _refuse_other_sizes(store, source.records, path)
        number = store.begin_session_within({"taken_from": path.name, "made_by": source.made_by})
        for record in source.records:
            if store.add_within(record, number):
                taken.added += 1
            elif store.find(record.run.key).outcome.agrees(record.outcome):
                taken.same += 1
            else:
                taken.unequal.append(record.run.key)
    return taken
