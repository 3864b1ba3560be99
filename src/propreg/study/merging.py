"""Taking in runs from an export or another store; equal keys with unequal results are reported, never overwritten."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from propreg.study.checking import need_whole
from propreg.study.errors import StudyError
from propreg.study.exported import damaged, read_export
from propreg.study.files import is_store, sidecar
from propreg.study.provenance import provenance
from propreg.study.record import Outcome, Record
from propreg.study.run import Cell, Run
from propreg.study.store import Row, Store


@dataclass
class Taken:
    """What came of taking runs in; ``unequal`` are the keys whose results differ from those already there."""

    added: int = 0
    same: int = 0
    unequal: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Source:
    """The runs of an export or a store, all looked at, and who made them."""

    path: Path
    made_by: list[dict[str, Any]]
    records: list[Record]


def read_source(path: Path) -> Source:
    """Read the runs of an export or a store, as they are at one moment.

    Raises:
        StudyError: If it is neither, or damaged.
    """
    if not is_store(path):
        return Source(path, made_by(path), list(_exported(path)))
    with Store(path, "read") as store, store.snapshot():
        need_whole(store)
        return Source(path, provenance(store), [_record(Cell.from_text(row[0]), row[1:]) for row in store.rows()])


def _exported(path: Path) -> Iterator[Record]:
    for value, rows in read_export(path):
        try:
            cell = Cell.from_json(value)
        except StudyError as error:
            raise StudyError(f"{path} is damaged, or from a newer propreg: {error}") from error
        except RecursionError as error:
            raise damaged(path) from error
        for row in rows:
            yield _record(cell, row)


def _record(cell: Cell, row: Row | list[Any]) -> Record:
    split, seed, *out, batch = row
    return Record(Run(cell, split, seed), Outcome(*out), batch)


def made_by(path: Path) -> list[dict[str, Any]]:
    """Who made the runs of an export or a store, as far as that is known."""
    if is_store(path):
        with Store(path, "read") as store:
            return provenance(store)
    try:
        found = json.loads(sidecar(path).read_text())
    except (OSError, ValueError, RecursionError):
        return []  # runs are worth having without it
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def take_into(store: Path, path: Path) -> Taken:
    """Add the runs of an export or a store to a store, all or none of a file.

    The store is made where there is none, but only for runs that can be taken in. It is never taken away again: as soon
    as it has a name, others may work on it.
    """
    _need_other(store, path)
    source = read_source(path)
    with Store(store) as opened:
        return _add(opened, source)


def _need_other(store: Path, path: Path) -> None:
    if path.exists() and store.exists() and path.samefile(store):
        raise StudyError(f"{path} is the store itself: name another one to take runs from.")


def _add(store: Store, source: Source) -> Taken:
    taken = Taken()
    with store.transaction():
        session = store.begin_session_within({"taken_from": source.path.name, "made_by": source.made_by})
        for record in source.records:
            if store.add_within(record, session):
                taken.added += 1
            elif store.find(record.run.key).outcome == record.outcome:
                taken.same += 1
            else:
                taken.unequal.append(record.run.key)
    return taken
