"""Stores of schema 1: read as they are, brought to today's when they are opened for writing, in one transaction."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from propreg.store import sqlite
from propreg.store.errors import StudyError
from propreg.store.integrity import check_store
from propreg.store.run import Cell, Outcome, Record, Run
from propreg.store.sqlite import VERSION, create, version_of
from propreg.store.store import Store

SAMPLE = Path(__file__).with_name("schema-1.sqlite")


@pytest.fixture
def old(tmp_path: Path) -> Path:
    path = tmp_path / "store.sqlite"
    shutil.copy(SAMPLE, path)
    return path


def _version(path: Path) -> int:
    with closing(sqlite3.connect(path)) as db:
        return version_of(db)


def _tables(path: Path) -> dict[str, str]:
    """What each table's columns are, whatever text made it."""
    with closing(sqlite3.connect(path)) as db:
        names = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: str(db.execute(f"PRAGMA table_xinfo({name})").fetchall()) for name in names}


def test_reading_leaves_it_as_it_is(old: Path) -> None:
    before = old.read_bytes()
    with Store(old, "read") as store:
        rows = list(store.rows())
        assert len(rows) == len(store.keys()) == len(store.run_ids()) == 12
        assert {len(row) for row in rows} == {12}
        assert store.digests() == {}
        cell, split, seed = rows[0][:3]
        assert store.find(Run.key_of(cell, split, seed)).outcome.metric == "accuracy"
        assert all(0 < score < 1 for score in store.tests(cell, split, but=99))
    assert check_store(old) == (12, [], 12)
    assert old.read_bytes() == before


@pytest.mark.parametrize("mode", ["write", "update"])
def test_writing_brings_it_to_this_schema(tmp_path: Path, old: Path, mode: str) -> None:
    with Store(old, "read") as store:
        before = list(store.rows())
    with Store(old, mode) as store:
        assert list(store.rows()) == before
    Store(tmp_path / "new.sqlite").close()
    assert _version(old) == VERSION
    assert _tables(old) == _tables(tmp_path / "new.sqlite"), "an upgraded store is like a new one"
    assert check_store(old) == (12, [], 12)


def test_a_reader_sees_what_is_written_after_another_process_has_upgraded_it(old: Path) -> None:
    with Store(old, "read") as reader:
        text, split, _, *_ = next(reader.rows())
        run = Run(Cell.from_text(text), split, 77)
        outcome = Outcome(9, 10, 8, 10, 7, 40, reports='[["official",7,9,8],["strict",5,9,7]]')
        with Store(old) as writer:
            writer.add(Record(run, outcome, "b"), writer.begin_session({}))
        assert reader.find(run.key).outcome == outcome


def test_an_upgrade_that_fails_leaves_the_old_store(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    added = {2: sqlite._ADDED[2] + "; no such statement"}
    monkeypatch.setattr(sqlite, "_ADDED", added)
    with pytest.raises(StudyError, match="syntax error"):
        Store(old)
    monkeypatch.undo()
    assert _version(old) == 1
    assert check_store(old) == (12, [], 12)
    Store(old).close()
    assert _version(old) == VERSION


def test_what_is_missing_is_told_by_the_version(old: Path) -> None:
    with closing(sqlite3.connect(old)) as db, db:
        db.execute("DROP TABLE leases")
    assert "has no table leases: take" in check_store(old).wrong[0]
    with closing(sqlite3.connect(":memory:")) as db:
        create(db, version=1)
        assert sqlite.missing(db) == []
        db.execute("PRAGMA user_version = 2")
        assert sqlite.missing(db) == [
            "column metric of table runs", "column reports of table runs", "table digests"
        ]  # fmt: skip


def test_a_version_that_no_propreg_has_written_is_damage(old: Path) -> None:
    with closing(sqlite3.connect(old)) as db, db:
        db.execute("PRAGMA user_version = 0")
    with pytest.raises(StudyError, match=r"damaged or no SQLite file \(malformed version 0"):
        Store(old, "read")
