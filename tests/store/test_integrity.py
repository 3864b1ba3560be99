"""Digests of runs: a flipped bit is seen, two that agree put the third right, and none may be missing."""

import random
import sqlite3
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from counting import Inputs
from propreg.store.errors import StudyError
from propreg.store.export import write_export
from propreg.store.integrity import check_store
from propreg.store.merge import take_into
from propreg.store.rows import Row, row_digest, trimmed
from propreg.store.run import Record
from propreg.store.store import COLUMNS, Store
from study.sweeping import batches, exported, made_up

RECORDS = [Record(run, made_up(run), batch.id) for batch in batches()[:3] for run in batch.runs[:8]]
FLIPS = 400


def _store(path: Path, records: list[Record]) -> Path:
    with Store(path) as store:
        session = store.begin_session({"host": "here"})
        with store.transaction():
            for record in records:
                store.add_within(record, session)
    return path


def _change(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        assert db.execute(statement).rowcount > 0


def _rows(path: Path) -> list[Row] | str:
    try:
        with Store(path, "read") as store:
            return list(store.rows())
    except StudyError as error:
        return str(error)


def test_a_flip_that_changes_what_is_read_is_reported(tmp_path: Path, inputs: Inputs) -> None:
    path = _store(tmp_path / "store.sqlite", RECORDS)
    whole, good, draw = path.read_bytes(), _rows(path), random.Random(5)
    assert check_store(path) == (len(RECORDS), [])
    # Half of the flips hit the rows of runs and their cells: most of so small a file is empty.
    rows = [at for record in RECORDS for at in _around(whole, record.run.key) + _around(whole, record.run.cell.text)]
    changed = 0
    for number in range(FLIPS):
        at = draw.randrange(len(whole)) if number % 2 else draw.choice(rows)
        raw = bytearray(whole)
        raw[at] ^= 1 << draw.randrange(8)
        path.write_bytes(raw)
        differs = _rows(path) != good
        found = check_store(path)
        assert found.wrong or not differs, f"a flip in byte {at} is not seen"
        assert all(len(line.splitlines()) == 1 for line in found.wrong)
        assert path.read_bytes() == bytes(raw)
        assert [file.name for file in tmp_path.iterdir()] == ["store.sqlite"]
        changed += differs
    assert changed > FLIPS // 8, "too few flips meant anything"
    inputs(FLIPS)


def _around(whole: bytes, text: str) -> list[int]:
    """Places of a stored text and of the columns before and after it."""
    at = whole.index(text.encode())
    return list(range(at - 20, at + len(text) + 40))


@pytest.mark.parametrize("column", ["val", "val_of", "test", "test_of", "epoch", "epochs", "failed_at", "batch"])
def test_each_column_is_in_the_digest(tmp_path: Path, column: str) -> None:
    path = _store(tmp_path / "store.sqlite", RECORDS)
    key = min(record.run.key for record in RECORDS)
    value = "'0123456789abcdef'" if column == "batch" else f"coalesce({column}, 0) + 1"
    _change(path, f"UPDATE runs SET {column} = {value} WHERE key = '{key}'")
    runs, wrong = check_store(path)
    assert (runs, len(wrong)) == (len(RECORDS), 1)
    assert wrong[0].startswith(f"run {key[:16]} (digits, split ")
    assert "was changed after it was stored" in wrong[0]
    assert "propreg store import repairs it from a copy or an export" in wrong[0]


def test_a_copy_puts_a_changed_run_right(tmp_path: Path) -> None:
    path = _store(tmp_path / "store.sqlite", RECORDS)
    before, copy = exported(path), tmp_path / "copy.jsonl"
    with Store(path, "read") as store:
        write_export(copy, store.rows())
    _change(path, "UPDATE runs SET test = test + 1 WHERE key = (SELECT min(key) FROM runs)")
    _change(path, "UPDATE digests SET digest = x'00' WHERE key = (SELECT max(key) FROM runs)")
    assert len(check_store(path).wrong) == 2
    with Store(path) as store:
        taken = take_into(store.path, copy)
    assert (taken.added, taken.same, taken.unequal) == (0, len(RECORDS), [])
    assert check_store(path) == (len(RECORDS), [])
    assert exported(path) == before


def test_another_result_overwrites_neither_a_whole_run_nor_a_changed_one(tmp_path: Path) -> None:
    path = _store(tmp_path / "store.sqlite", RECORDS[:2])
    _change(path, f"UPDATE runs SET test = test + 1 WHERE key = '{RECORDS[1].run.key}'")
    before = exported(path)
    with Store(path) as store:
        for record in RECORDS[:2]:
            assert not store.add(replace(record, outcome=replace(record.outcome, epochs=99)), 1)
    assert exported(path) == before
    assert len(check_store(path).wrong) == 1


def test_a_run_that_is_gone_is_missed(tmp_path: Path) -> None:
    path = _store(tmp_path / "store.sqlite", RECORDS[:3])
    _change(path, f"DELETE FROM runs WHERE key = '{RECORDS[0].run.key}'")
    runs, wrong = check_store(path)
    assert (runs, len(wrong)) == (2, 1)
    assert wrong[0].startswith(f"run {RECORDS[0].run.key[:16]} has a digest, but is gone")


def test_a_run_without_its_digest_is_damaged_and_a_copy_repairs_it(tmp_path: Path) -> None:
    path, copy = _store(tmp_path / "store.sqlite", RECORDS), tmp_path / "copy.jsonl"
    with Store(path, "read") as store:
        write_export(copy, store.rows())
    _change(path, f"DELETE FROM digests WHERE key = '{RECORDS[0].run.key}'")
    (line,) = check_store(path).wrong
    assert line.startswith(f"run {RECORDS[0].run.key[:16]} (digits, ")
    assert "was changed after it was stored" in line
    assert take_into(path, copy).same == len(RECORDS)
    assert check_store(path) == (len(RECORDS), [])


def test_numbers_that_cannot_be_are_seen_whatever_their_digest(tmp_path: Path) -> None:
    path = _store(tmp_path / "store.sqlite", RECORDS)
    keys = [record.run.key for record in RECORDS[1:4]]
    _change(path, f"UPDATE runs SET epoch = epochs + 1 WHERE key = '{keys[0]}'")
    _change(path, f"UPDATE runs SET test = -1 WHERE key = '{keys[1]}'")
    _change(path, f"UPDATE runs SET val_of = 108 WHERE key = '{keys[2]}'")
    with closing(sqlite3.connect(path)) as db, db:  # a bug of ours would give them fitting digests
        columns = f"key, text, split, seed, {COLUMNS}, batch"
        for key, *row in db.execute(f"SELECT {columns} FROM runs JOIN cells ON cells.id = cell").fetchall():
            db.execute("UPDATE digests SET digest = ? WHERE key = ?", (row_digest(trimmed(tuple(row))), key))
    wrong = {line.split()[1]: line for line in check_store(path).wrong}
    assert wrong.keys() == {key[:16] for key in keys}
    assert "reports epoch 61 of 60" in wrong[keys[0][:16]]
    assert "has a number below 0" in wrong[keys[1][:16]]
    assert "108 validation and 1000 test nodes, but others of digits" in wrong[keys[2][:16]]


def test_a_transaction_that_fails_leaves_a_store_that_takes_runs(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    with Store(path) as store:
        session = store.begin_session({})
        with suppress(KeyError), store.transaction():
            assert store.add_within(RECORDS[0], session)
            raise KeyError
        assert store.digests() == {}
        assert store.add(RECORDS[0], session)
        (row,) = store.rows()
        assert store.digests() == {RECORDS[0].run.key: row_digest(row)}
