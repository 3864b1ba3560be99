"""Readers verify what they read: changed rows, rows that are gone, engines that differ, and runs left in a log."""

import shutil
import socket
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from counting import Inputs
from propreg.cli.app import app
from propreg.store.errors import StudyError
from propreg.store.integrity import check_store
from propreg.store.leases import claim
from propreg.store.locks import Worker
from propreg.store.merge import take_into
from propreg.store.results import load_results
from propreg.store.run import Record
from propreg.store.sqlite import log_of
from propreg.store.store import Store
from propreg.study.execute.runner import Progress, reproduce
from study.sweeping import MadeUp, batches, made_up

RECORD = Path(__file__).parents[2] / "results" / "runs.jsonl.gz"
BATCHES = batches()
ONE = BATCHES[0].runs[0]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "store.sqlite"
    with Store(path) as opened:
        reproduce(BATCHES, opened, MadeUp)
    return path


def propreg(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(each) for each in arguments])


def change(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        for statement in statements:
            assert db.execute(statement).rowcount > 0


def test_a_changed_number_is_not_used(store: Path) -> None:
    change(store, f"UPDATE runs SET test = test_of - test WHERE key = '{ONE.key}'")
    results = load_results(store)
    with pytest.raises(
        StudyError, match=r"the run of split 0, seed 0, was changed after it was stored: propreg store check"
    ):
        results.outcome(ONE.cell, 0, 0)
    other = next(batch.runs[0] for batch in BATCHES if batch.runs[0].cell != ONE.cell)
    assert results.outcome(other.cell, other.split, other.seed) == made_up(other), "a table reads its own rows"
    for command in (
        ["table", "digits-smoke", "--results"],
        ["status", "digits-smoke", "--store"],
        ["rerun", ONE.key, "--store"],
    ):
        done = propreg(*command, store)
        assert (done.exit_code, done.stdout, len(done.stderr.splitlines())) == (1, "", 1), done.output
        assert "was changed after it was stored: propreg store check --store" in done.stderr


@pytest.mark.parametrize(
    ("statements", "says"),
    [
        ([f"DELETE FROM runs WHERE key = '{ONE.key}'"], "1 of its runs cannot be found"),
        (
            ["DELETE FROM runs WHERE split = 0", "DELETE FROM digests WHERE key NOT IN (SELECT key FROM runs)"],
            "cannot be",
        ),
        ([f"UPDATE runs SET seed = 77 WHERE key = '{ONE.key}'"], "a run is not stored under its key"),
        (["UPDATE cells SET text = replace(text, 'digits', 'digitz')"], "a run is not stored under its key"),
        (["DELETE FROM cells WHERE id = 1"], "of its runs cannot be found"),
        (["UPDATE totals SET number = 7"], "of its runs cannot be found"),
    ],
)
def test_fewer_runs_are_missed(store: Path, statements: list[str], says: str) -> None:
    change(store, *statements)
    with pytest.raises(StudyError, match=f"is damaged, .*{says}.*: propreg store check --store .* lists the fix"):
        load_results(store)
    assert check_store(store).wrong, "what a reader refuses, the check explains"


def test_flips_are_never_read(tmp_path: Path, store: Path, inputs: Inputs) -> None:
    """Flips in the rows of runs: what a reader returns is what was stored, or an error."""
    with Store(store, "read") as opened:
        good = {row[:3]: row for row in opened.rows()}
    whole = store.read_bytes()
    refused = 0
    for number, run in enumerate(run for batch in BATCHES for run in batch.runs):
        at = whole.index(run.key.encode()) + 64 + number % 30
        raw = bytearray(whole)
        raw[at] ^= 1 << number % 8
        (tmp_path / "flipped.sqlite").write_bytes(raw)
        try:
            results = load_results(tmp_path / "flipped.sqlite")
            found = {(text, split, seed): (text, split, seed, *out.row, batch)
                     for text, split, seed, out, batch in results.runs()}  # fmt: skip
        except StudyError:
            refused += 1
        else:
            assert found == good
    assert refused > 100, "too few flips meant anything"
    inputs(number + 1)


def test_the_whole_record_is_verified_in_seconds() -> None:
    """About two seconds on a machine that does nothing else."""
    began = time.process_time()
    assert len(load_results(RECORD)) == 141_891
    assert time.process_time() - began < 12


def test_a_table_names_engines_that_differ(tmp_path: Path) -> None:
    class Engine(MadeUp):
        def about(self) -> dict[str, str]:
            return {"engine": self.__class__.__name__}

    class Other(Engine):
        pass

    paths = {kind: tmp_path / f"{kind}.sqlite" for kind in ("same", "mixed")}
    plain = [batch for batch in BATCHES if batch.runs[0].cell.strength == 0]
    for kind, path in paths.items():
        with Store(path) as opened:
            reproduce(plain, opened, Engine)
            reproduce(BATCHES, opened, Other if kind == "mixed" else Engine)
    says = "Engines: 160 of the 160 runs whose engine is recorded were trained by another engine version than the plain"
    assert "Engines:" not in propreg("table", "digits-smoke", "--results", paths["same"]).output
    done = propreg("table", "digits-smoke", "--results", paths["mixed"])
    assert sum(line.startswith(says) for line in done.stdout.splitlines()) == 1
    assert says in propreg("table", "digits-smoke", "--format", "csv", "--results", paths["mixed"]).stderr
    file = tmp_path / "runs.jsonl.gz"
    assert propreg("store", "export", file, "--store", paths["mixed"]).exit_code == 0
    assert says in propreg("table", "digits-smoke", "--results", file).stdout
    assert take_into(tmp_path / "again.sqlite", file).added == 200
    assert says in propreg("table", "digits-smoke", "--results", tmp_path / "again.sqlite").stdout


def test_a_copy_without_its_log_is_not_called_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, alone, both = (tmp_path / f"{name}.sqlite" for name in ("store", "alone", "both"))
    batch = max(BATCHES, key=lambda each: len(each.runs))

    def copy(progress: Progress) -> None:
        if progress.done == len(batch.runs) - 1 and not alone.exists():
            shutil.copy(path, alone)
            shutil.copy(path, both)
            shutil.copy(log_of(path), log_of(both))

    with Store(path) as opened:
        reproduce([batch], opened, MadeUp, tell=copy)
    monkeypatch.setattr(socket, "gethostname", lambda: "another-host")  # where the copies are looked at
    assert check_store(both) == (len(batch.runs) - 1, [])
    done = propreg("store", "check", "--store", alone)
    assert done.exit_code == 1
    assert "whole" not in done.stdout
    assert f"up to {len(batch.runs)} runs may be missing" in done.stderr
    assert "alone.sqlite-wal, which is not beside it" in done.stderr
    assert propreg("store", "leases", "--clear", "--store", alone).exit_code == 0
    assert check_store(alone) == (0, [])
    assert check_store(path) == (len(batch.runs), [])


def test_after_each_batch_the_file_alone_has_its_runs(tmp_path: Path) -> None:
    path, seen = tmp_path / "store.sqlite", list[tuple[int, int]]()

    def copy(progress: Progress) -> None:
        if progress.event == "batch done":
            shutil.copy(path, tmp_path / "copy.sqlite")
            seen.append((check_store(tmp_path / "copy.sqlite").runs, progress.done))

    with Store(path) as opened:
        reproduce(BATCHES, opened, MadeUp, tell=copy)
    assert len(seen) == len(BATCHES)
    assert all(there == done for there, done in seen)


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("UPDATE batches SET keys = substr(keys, 65)", "was changed after it was stored"),
        ("UPDATE batches SET id = 'a' || substr(id, 2) WHERE id >= 'b'", "was changed after it was stored"),
        ("UPDATE batches SET seconds = -1", "was changed after it was stored"),
        ("UPDATE batches SET cost = 'much'", "was changed after it was stored"),
        (
            "INSERT INTO leases VALUES ('a', 'here', 'x', '', 5)",
            "the lease of batch a is damaged: propreg store leases",
        ),
        ("INSERT INTO leases VALUES ('a', 'here', 5, '', 'soon')", "the lease of batch a is damaged: propreg store"),
        ("UPDATE sessions SET info = '[]'", "is damaged"),
    ],
)
def test_a_check_covers_what_is_beside_the_runs(store: Path, statement: str, says: str) -> None:
    change(store, statement)
    wrong = check_store(store).wrong
    assert wrong
    assert all(says in line for line in wrong)


def test_the_members_of_a_damaged_batch_are_not_believed(store: Path) -> None:
    batch = BATCHES[0]
    with Store(store, "read") as opened:
        assert opened.members(batch.id) == [run.key for run in batch.runs]
    change(store, f"UPDATE batches SET keys = substr(keys, 65) WHERE id = '{batch.id}'")
    with Store(store, "read") as opened:
        assert opened.members(batch.id) == []


def test_a_schema_of_others_is_not_trusted(store: Path) -> None:
    for mode in ("read", "update"):
        with Store(store, mode) as opened:
            assert opened.db.execute("PRAGMA trusted_schema").fetchone() == (0,)


def test_the_count_follows_what_is_written(tmp_path: Path) -> None:
    with Store(tmp_path / "store.sqlite") as opened:
        session = opened.begin_session({})
        for run in (ONE, ONE, *BATCHES[1].runs[:3]):
            opened.add(Record(run, made_up(run), "b"), session)
        assert opened.total() == 4
        assert claim(opened, "b", Worker.me())
    assert check_store(tmp_path / "store.sqlite") == (4, [])
