"""Exports: the same runs are the same bytes; imports and merges keep what is there and report what differs."""

import gzip
import random
from dataclasses import replace
from pathlib import Path

import pytest

from propreg.study.errors import StudyError
from propreg.study.exported import read_export, write_export
from propreg.study.merging import take_into
from propreg.study.record import Record
from propreg.study.store import Store
from study.sweeping import batches, exported, made_up

RECORDS = [Record(run, made_up(run), batch.id) for batch in batches()[:4] for run in batch.runs]


def _store(path: Path, records: list[Record]) -> Path:
    with Store(path) as store:
        session = store.begin_session({"host": path.name})
        for record in records:
            store.add(record, session)
    return path


def _export(store: Path, to: Path) -> Path:
    with Store(store, "read") as opened:
        write_export(to, opened.rows())
    return to


@pytest.mark.parametrize("name", ["runs.jsonl", "runs.jsonl.gz"])
def test_order_and_host_leave_no_trace(tmp_path: Path, name: str) -> None:
    shuffled = random.Random(0).sample(RECORDS, len(RECORDS))
    one = _export(_store(tmp_path / "one.sqlite", RECORDS), tmp_path / f"one-{name}")
    two = _export(_store(tmp_path / "two.sqlite", shuffled), tmp_path / f"two-{name}")
    assert one.read_bytes() == two.read_bytes()


def test_a_round_trip_is_exact(tmp_path: Path) -> None:
    measured = replace(RECORDS[0].outcome, measures='{"omega":0.25}', failed_at=3)
    records = [replace(RECORDS[0], outcome=measured), *RECORDS[1:]]
    first = _store(tmp_path / "one.sqlite", records)
    file = _export(first, tmp_path / "runs.jsonl.gz")
    with Store(tmp_path / "two.sqlite") as second:
        taken = take_into(second.path, file)
        assert (taken.added, taken.same, taken.unequal) == (len(records), 0, [])
        assert second.find(RECORDS[0].run.key).outcome.measured == {"omega": 0.25}
    assert exported(first) == exported(tmp_path / "two.sqlite")


def test_a_merge_reports_equal_keys_with_unequal_results(tmp_path: Path) -> None:
    other = replace(RECORDS[0], outcome=replace(RECORDS[0].outcome, epochs=999))
    mine = _store(tmp_path / "mine.sqlite", RECORDS[:10])
    theirs = _store(tmp_path / "theirs.sqlite", [other, *RECORDS[5:15]])
    with Store(mine) as store:
        taken = take_into(store.path, theirs)
        assert (taken.added, taken.same, taken.unequal) == (5, 5, [RECORDS[0].run.key])
        assert store.find(RECORDS[0].run.key) == RECORDS[0], "what was there stays"


def test_a_store_does_not_merge_with_itself(tmp_path: Path) -> None:
    path = _store(tmp_path / "mine.sqlite", RECORDS[:2])
    with Store(path) as store, pytest.raises(StudyError, match="is the store itself"):
        take_into(store.path, path)


def test_a_damaged_export_is_refused_whole(tmp_path: Path) -> None:
    file = _export(_store(tmp_path / "one.sqlite", RECORDS), tmp_path / "runs.jsonl")
    text = file.read_text().splitlines(keepends=True)
    file.write_text("".join([*text[:-1], text[-1][:40]]))
    with Store(tmp_path / "two.sqlite") as store:
        with pytest.raises(StudyError, match="is damaged"):
            take_into(store.path, file)
        assert store.keys() == set()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "does not hold exported runs"),
        (b"{}\n", "does not hold exported runs"),
        (b'{"format":"propreg runs","version":9}\n', "has format version 9"),
        (b"\x1f\x8bnot really", "cannot be read as exported runs"),
        (b"\xff\xfe", "cannot be read as exported runs"),
        (gzip.compress(b"hello", mtime=0), "is damaged"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, content: bytes, says: str) -> None:
    file = tmp_path / "runs.jsonl"
    file.write_bytes(content)
    with pytest.raises(StudyError, match=says):
        list(read_export(file))
