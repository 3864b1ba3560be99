"""The store: each key once, refusals that leave the file alone, and what a check finds."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from propreg.store.errors import StudyError
from propreg.store.integrity import check_store
from propreg.store.run import Outcome, Record, Run
from propreg.store.store import Store
from study.sweeping import batches, made_up

RUNS = batches()[0].runs


def _fill(path: Path, count: int = 5) -> list[Record]:
    records = [Record(run, made_up(run), "b" * 16) for run in RUNS[:count]]
    with Store(path) as store:
        session = store.begin_session({"host": "here"})
        for record in records:
            assert store.add(record, session)
    return records


def test_a_key_is_stored_once_and_never_changed(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    first = _fill(path)[0]
    with Store(path) as store:
        other = Record(first.run, Outcome(1, 2, 3, 4, 5, 6), "c" * 16)
        assert not store.add(other, 1)
        assert store.find(first.run.key) == first
        assert store.find(first.run.key[:10]) == first
        assert store.keys() == {run.key for run in RUNS[:5]}


def test_unknown_and_ambiguous_keys(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    _fill(path)
    with Store(path, "read") as store:
        with pytest.raises(StudyError, match="no run whose key begins with 'zz'"):
            store.find("zz")
        with pytest.raises(StudyError, match="more than one run"):
            store.find("")


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    _fill(path)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("PRAGMA user_version = 7")
    before = path.read_bytes()
    for mode in ("write", "read"):
        with pytest.raises(StudyError, match="has schema 7, this propreg knows schemas up to 3: install the newer"):
            Store(path, mode)
        assert [file.name for file in tmp_path.iterdir()] == ["store.sqlite"]
    assert path.read_bytes() == before


@pytest.mark.parametrize("version", [0, 2])
def test_a_schema_that_no_release_has_written_is_damage(tmp_path: Path, version: int) -> None:
    path = tmp_path / "store.sqlite"
    _fill(path)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(f"PRAGMA user_version = {version}")
    with pytest.raises(StudyError, match=rf"damaged or no SQLite file \(malformed version {version}"):
        Store(path, "read")


def test_a_table_that_is_missing_is_named(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    _fill(path)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("DROP TABLE leases")
    assert "has no table leases: take" in check_store(path).wrong[0]


def test_another_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE mine (a)")
    with pytest.raises(StudyError, match="is not a propreg store"):
        Store(path)


def test_a_damaged_file_is_reported_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    path.write_bytes(b"not a database, whatever its name says" * 100)
    before = path.read_bytes()
    with pytest.raises(StudyError, match=r"damaged or no SQLite file .* left as it is"):
        Store(path)
    runs, wrong = check_store(path)
    assert runs == 0
    assert "damaged" in wrong[0]
    assert path.read_bytes() == before


def test_a_check_finds_a_torn_page(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    with Store(path) as store:
        session = store.begin_session({})
        for batch in batches():
            for run in batch.runs:
                store.add(Record(run, made_up(run), batch.id), session)
        store.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    raw = bytearray(path.read_bytes())
    middle = len(raw) // 2 // 4096 * 4096
    raw[middle : middle + 4096] = b"\xff" * 4096
    path.write_bytes(raw)
    assert check_store(path)[1]
    assert path.read_bytes() == bytes(raw)


def test_a_check_finds_a_row_under_the_wrong_key(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    _fill(path)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE runs SET seed = seed + 50 WHERE key = (SELECT max(key) FROM runs)")
        db.execute("UPDATE runs SET val = val_of + 1 WHERE key = (SELECT min(key) FROM runs)")
    _, wrong = check_store(path)
    assert any("not stored under its key" in line for line in wrong)
    assert any("more correct predictions than nodes" in line for line in wrong)


def test_a_missing_store_is_said(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"There is no store .*: name one with --store"):
        Store(tmp_path / "none.sqlite", "read")
    assert not (tmp_path / "none.sqlite").exists()
    with pytest.raises(StudyError, match="cannot be written or opened"):
        Store(tmp_path / "no folder" / "store.sqlite")


def test_reading_does_not_write(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    _fill(path)
    with Store(path, "read") as store, pytest.raises(StudyError, match="cannot be written"):
        store.begin_session({})


def test_reading_leaves_no_files_but_those_of_a_writer(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    _fill(path)
    before = path.read_bytes()
    with Store(path, "read") as store:
        assert len(store.keys()) == 5
    assert [file.name for file in tmp_path.iterdir()] == ["store.sqlite"]
    assert path.read_bytes() == before
    with Store(path) as writer:
        writer.begin_session({})
        with Store(path, "read") as store:
            assert len(store.keys()) == 5
        assert (tmp_path / "store.sqlite-wal").stat().st_size, "a writer's log is its own"
        writer.begin_session({})
    with Store(path, "read") as store:
        assert len(store.sessions()) == 3


def test_a_reader_does_not_take_the_log_from_a_writer_that_comes_later(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    record = _fill(path)[0]
    reader = Store(path, "read")
    assert len(reader.keys()) == 5
    with Store(path) as writer:
        reader.close()
        assert writer.add(Record(Run(record.run.cell, 99, 99), record.outcome, ""), writer.begin_session({}))
        with Store(path, "read") as another:
            assert len(another.keys()) == 6
    assert check_store(path) == (6, [])


def test_a_schema_that_is_no_text_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    _fill(path)
    raw = bytearray(path.read_bytes())
    raw[raw.index(b"CREATE TABLE runs") + len("CREATE TABLE ")] ^= 0x80
    path.write_bytes(raw)
    with pytest.raises(StudyError, match=r"store.sqlite is damaged or no SQLite file .* put a copy in its place"):
        Store(path, "read")
    assert "is damaged or no SQLite file" in check_store(path).wrong[0]
    assert [file.name for file in tmp_path.iterdir()] == ["store.sqlite"]
    assert path.read_bytes() == bytes(raw)
