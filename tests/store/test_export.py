"""Exports: the same runs are the same bytes; imports and merges keep what is there and report what differs."""

import gzip
import os
import random
from dataclasses import replace
from pathlib import Path

import pytest

from propreg.store import export
from propreg.store.errors import StudyError
from propreg.store.export import read_export, sidecar, write_export
from propreg.store.merge import take_into
from propreg.store.results import load_results
from propreg.store.run import Record
from propreg.store.store import Store
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


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    """Nor one beside an export, where its provenance should be."""
    pipe = tmp_path / "runs.jsonl"
    os.mkfifo(pipe)
    for path in (pipe, Path("/dev/zero")):
        with pytest.raises(StudyError, match="it is a pipe or a device, not a file"):
            take_into(tmp_path / "new.sqlite", path)
        with pytest.raises(StudyError, match="it is a pipe or a device, not a file"):
            load_results(path)
        with pytest.raises(StudyError, match="it is a pipe or a device, not a file"):
            Store(path, "read")
    file = _export(_store(tmp_path / "one.sqlite", RECORDS), tmp_path / "more.jsonl")
    os.mkfifo(sidecar(file))
    assert take_into(tmp_path / "new.sqlite", file).added == len(RECORDS)


def test_a_small_file_that_becomes_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "MOST_BYTES", 1 << 20)
    file = tmp_path / "runs.jsonl.gz"
    file.write_bytes(gzip.compress(bytes(1 << 24), mtime=0))
    with pytest.raises(StudyError, match="has more than 1 MiB of text: no export is so large"):
        load_results(file)
    peak = largest_part(file)
    assert peak <= 1 << 20


def largest_part(file: Path) -> int:
    return sum(len(part) for part in export._inflated(file.read_bytes()))
