"""Taking in runs from an export or another store; equal keys with unequal results are reported, never overwritten."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from propreg.study.errors import StudyError
from propreg.study.exported import read_export
from propreg.study.provenance import provenance
from propreg.study.record import Outcome, Record
from propreg.study.run import Cell, Run
from propreg.study.store import Store


@dataclass
class Taken:
    """What came of taking runs in; ``unequal`` are the keys whose results differ from those already there."""

    added: int = 0
    same: int = 0
    unequal: list[str] = field(default_factory=list)


def is_store(path: Path) -> bool:
    """Whether a file is SQLite's, by its first bytes."""
    try:
        with path.open("rb") as file:
            return file.read(16) == b"SQLite format 3\x00"
    except OSError as error:
        raise StudyError(f"{path} cannot be read: {error.strerror or error}.") from error


def records(path: Path) -> Iterator[Record]:
    """The runs of an export or a store, one after another."""
    if is_store(path):
        with Store(path, "read") as store:
            for text, split, seed, *out, batch in store.rows():
                yield Record(Run(Cell.from_text(text), split, seed), Outcome(*out), batch)
        return
    for value, rows in read_export(path):
        cell = Cell.from_json(value)
        for split, seed, *out, batch in rows:
            yield Record(Run(cell, split, seed), Outcome(*out), batch)


def sidecar(path: Path) -> Path:
    """The file beside an export that says where and with what its runs were made."""
    return path.with_name(path.name.split(".")[0] + ".provenance.json")


def made_by(path: Path) -> list[dict[str, Any]]:
    """Who made the runs of an export or a store, as far as that is known."""
    if is_store(path):
        with Store(path, "read") as store:
            return provenance(store)
    try:
        found = json.loads(sidecar(path).read_text())
    except (OSError, ValueError):
        return []  # runs are worth having without it
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def take_in(store: Store, path: Path) -> Taken:
    """Add the runs of an export or a store, all or none of a file."""
    if path.exists() and path.resolve() == store.path.resolve():
        raise StudyError(f"{path} is the store itself: name another one to take runs from.")
    taken = Taken()
    session = store.begin_session({"taken_from": path.name, "made_by": made_by(path)})
    with store.transaction():
        for record in records(path):
            if store.add_within(record, session):
                taken.added += 1
            elif store.find(record.run.key).outcome == record.outcome:
                taken.same += 1
            else:
                taken.unequal.append(record.run.key)
    return taken
