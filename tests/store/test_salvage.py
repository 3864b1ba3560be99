"""What is bad is refused, and what is bad already goes: the commands that a check prints work as they are printed."""

import json
import random
import re
import shlex
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from propreg.cli.app import app
from propreg.store.errors import StudyError
from propreg.store.export import write_export
from propreg.store.integrity import check_store
from propreg.store.leases import claim
from propreg.store.locks import Worker
from propreg.store.merge import take_into
from propreg.store.run import Cell, Outcome, Record, Run
from propreg.store.salvage import salvage
from propreg.store.store import Store
from propreg.study.execute.runner import reproduce
from study.sweeping import MadeUp, batches, exported

ONE = batches()[0].runs[0]
ROW = (0, 0, 90, 100, 800, 1000, 12, 40, None, None, "b")
DIGITS = Cell("digits", ONE.cell.digest)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "my store.sqlite"
    with Store(path) as opened:
        reproduce(batches(), opened, MadeUp)
    return path


def propreg(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(each) for each in arguments])


def one_sentence(done: Result) -> str:
    assert (done.exit_code, done.stdout, len(done.stderr.splitlines())) == (1, "", 1), done.output
    return done.stderr


def change(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        for statement in statements:
            assert db.execute(statement).rowcount > 0


def put(path: Path, cell: Cell, row: tuple[object, ...]) -> Run:
    """A run in a store that no import would take."""
    run = Run(cell, int(str(row[0])), int(str(row[1])))
    with Store(path) as opened:
        opened.add(Record(run, Outcome(*row[2:-1]), str(row[-1])), opened.begin_session({}))  # type: ignore[arg-type]
    return run


@pytest.mark.parametrize(
    ("cell", "change", "says"),
    [
        (Cell("cora2", "0" * 64), {}, "There is no dataset 'cora2'. Did you mean 'cora'?"),
        (DIGITS, {3: 900, 5: 1000}, "has 1,900 validation and test nodes, and digits has 1,797 in all"),
        (DIGITS, {3: 108}, "has 100 and 1000 on the same split of digits; nothing was imported: if the store is wrong"),
        (DIGITS, {7: 10**20}, "has a number that is far too large"),
    ],
)
def test_an_import_refuses_what_no_training_could_have(
    tmp_path: Path, store: Path, cell: Cell, change: dict[int, int], says: str
) -> None:
    before, file = exported(store), tmp_path / "bad.jsonl"
    row = tuple(change.get(place, value) for place, value in enumerate(ROW))
    cell = replace(cell, split_kind=ONE.cell.split_kind, train_nodes=ONE.cell.train_nodes)
    write_export(file, [(cell.text, *row)])
    assert says in one_sentence(propreg("store", "import", file, "--store", store))
    assert exported(store) == before
    assert check_store(store) == (200, [])


def test_an_import_refuses_a_file_that_contradicts_itself(tmp_path: Path) -> None:
    file = tmp_path / "bad.jsonl"
    write_export(file, [(DIGITS.text, *ROW), (DIGITS.text, 0, 1, 90, 108, *ROW[4:])])
    said = one_sentence(propreg("store", "import", file, "--store", tmp_path / "new.sqlite"))
    assert "with 108 validation and 1000 test nodes, but in it run" in said
    assert "nothing was imported: export it again, or take a copy." in said


def printed(said: str, done: Path) -> list[list[str]]:
    """The commands of a sentence, from propreg to where a word is not of a command."""
    found = []
    for command in re.findall(r"propreg (store (?:remove|salvage|leases)[^;,.]*(?:\.sqlite'?)?[^;,:]*)", said):
        words = shlex.split(command.split(" drops")[0].split(" removes")[0].split(" goes")[0].split(" keeps")[0])
        found.append([str(done) if word == "NEW" else word for word in words])
    return found


def test_one_bad_run_does_not_lock_a_store(tmp_path: Path, store: Path) -> None:
    """A run whose sizes disagree: once the store could neither be exported nor merged, and the advice did nothing."""
    good = exported(store)
    split = replace(DIGITS, split_kind=ONE.cell.split_kind, train_nodes=ONE.cell.train_nodes)
    run = put(store, split, (0, 99, 90, 108, *ROW[4:]))
    (wrong,) = check_store(store).wrong
    assert one_sentence(propreg("store", "export", tmp_path / "a.jsonl", "--store", store))
    (command,) = printed(wrong, tmp_path / "new.sqlite")
    done = propreg(*command)
    assert done.exit_code == 0, done.output
    assert run.key in done.stdout
    assert check_store(store) == (200, [])
    assert exported(store) == good


@pytest.mark.parametrize(
    "statements",
    [
        [f"UPDATE runs SET test = test - 1 WHERE key = '{ONE.key}'"],
        [f"UPDATE runs SET seed = 77 WHERE key = '{ONE.key}'"],
        [f"DELETE FROM runs WHERE key = '{ONE.key}'"],
        [f"UPDATE runs SET cell = 9999 WHERE key = '{ONE.key}'"],
        ["UPDATE batches SET keys = substr(keys, 65)"],
        ["UPDATE totals SET number = 7"],
        ["DROP TABLE leases"],
        ["UPDATE cells SET text = 'x' WHERE id = 1"],
        ["INSERT INTO leases VALUES ('a', 'here', 'x', '', 5)"],
    ],
)
def test_the_printed_commands_end_in_a_store_that_is_whole(tmp_path: Path, store: Path, statements: list[str]) -> None:
    with closing(sqlite3.connect(store)) as db, db:
        for statement in statements:
            db.execute(statement)
    wrong = check_store(store).wrong
    assert wrong
    new = tmp_path / "new.sqlite"
    commands = printed(wrong[0], new)
    assert commands, wrong[0]
    for command in commands:
        done = propreg(*command)
        assert done.exit_code == 0, (command, done.output)
    runs, still = check_store(new if new.exists() else store)
    assert still == []
    assert runs >= 170


def test_salvage_keeps_what_is_whole_and_who_trained_it(tmp_path: Path, store: Path) -> None:
    change(store, f"UPDATE runs SET test = test - 1 WHERE key = '{ONE.key}'", "DELETE FROM digests WHERE key >= 'f8'")
    put(store, replace(DIGITS, split_kind=ONE.cell.split_kind), (0, 99, 90, 108, *ROW[4:]))
    with closing(sqlite3.connect(store)) as db:
        (lost,) = db.execute("SELECT count(*) FROM runs WHERE key >= 'f8'").fetchone()
    done = propreg("store", "salvage", store, "--store", tmp_path / "new.sqlite", "--json")
    found = json.loads(done.stdout)
    assert found["kept"] == 200 - 1 - lost
    assert found["left_out"] == {
        "were changed after they were stored": 1,
        "have no digest": lost,
        "have other sizes than most runs on their split": 1,
    }
    assert check_store(tmp_path / "new.sqlite") == (found["kept"], [])
    with Store(tmp_path / "new.sqlite", "read") as new:
        (session,) = new.sessions()
        assert (session["device"], session["taken_from"]) == ("none", store.name)
        assert len(new.members(batches()[0].id)) == 20
    assert "exists already" in one_sentence(propreg("store", "salvage", store, "--store", tmp_path / "new.sqlite"))


def test_salvage_reads_around_damaged_pages(tmp_path: Path, store: Path) -> None:
    """Each page of the file is overwritten once: nothing false is ever kept, and mostly much is."""
    with Store(store, "read") as opened:
        good = set(opened.rows())
    whole, bad, kept = store.read_bytes(), tmp_path / "bad.sqlite", list[int]()
    for number, at in enumerate(range(4096, len(whole), 4096)):
        raw = bytearray(whole)
        raw[at : at + 4096] = random.Random(number).randbytes(4096)
        bad.write_bytes(raw)
        new = tmp_path / f"{number}.sqlite"
        try:
            kept.append(salvage(bad, new).kept)
        except StudyError:
            kept.append(0)
            assert not new.exists()
            continue
        with Store(new, "read") as opened:
            assert set(opened.rows()) <= good
        assert check_store(new).wrong == []
    assert sum(runs > 100 for runs in kept) > len(kept) // 2


@pytest.mark.parametrize("name", ["runs.jsonl", "runs.jsonl.gz"])
def test_salvage_of_a_damaged_export(tmp_path: Path, store: Path, name: str) -> None:
    file = tmp_path / name
    with Store(store, "read") as opened:
        write_export(file, opened.rows())
        good = set(opened.rows())
    raw = file.read_bytes()
    if name.endswith(".gz"):
        file.write_bytes(raw[: len(raw) * 3 // 4])
    else:
        text = raw.decode()
        at = text.index(',"runs":[[') + 14
        file.write_text(text[:at] + ("2" if text[at] != "2" else "3") + text[at + 1 :])
    with pytest.raises(StudyError):
        take_into(tmp_path / "no.sqlite", file)
    found = salvage(file, tmp_path / "new.sqlite")
    assert found.kept > (90 if name.endswith(".gz") else 198)
    with Store(tmp_path / "new.sqlite", "read") as opened:
        assert set(opened.rows()) <= good


def test_remove_takes_a_run_and_its_digest(store: Path) -> None:
    done = propreg("store", "remove", ONE.key[:12], "--store", store)
    assert done.exit_code == 0
    assert check_store(store) == (199, [])
    assert "has no run whose key begins with" in one_sentence(propreg("store", "remove", ONE.key, "--store", store))
    assert "has more than one run whose key" in one_sentence(propreg("store", "remove", "", "--store", store))
    with Store(store) as opened:
        assert reproduce(batches(), opened, MadeUp).stored == 1


def test_leases_are_shown_and_cleared(store: Path) -> None:
    with Store(store) as opened:
        assert claim(opened, "a", Worker("another-host", 7, ""))
        assert claim(opened, "b", Worker.me())
        shown = propreg("store", "leases", "--store", store).stdout
        assert "batch a: process 7 on another-host, which may run; for 1" in shown
        assert "2 leases." in shown
        done = propreg("store", "leases", "--clear", "--store", store)
        assert "1 leases were removed; 1 of processes that run here stay." in done.stdout
        assert claim(opened, "a", Worker.me())


def test_a_salvaged_copy_takes_the_rest_from_an_export(tmp_path: Path, store: Path) -> None:
    good, bad = exported(store), tmp_path / "bad.sqlite"
    with Store(store, "read") as opened:
        write_export(tmp_path / "runs.jsonl.gz", opened.rows())
    shutil.copy(store, bad)
    change(bad, "UPDATE runs SET test = test - 1 WHERE seed = 0")
    salvage(bad, tmp_path / "new.sqlite")
    take_into(tmp_path / "new.sqlite", tmp_path / "runs.jsonl.gz")
    assert exported(tmp_path / "new.sqlite") == good


def test_an_import_brings_back_a_run_that_has_gone(tmp_path: Path, store: Path) -> None:
    with Store(store, "read") as opened:
        write_export(tmp_path / "runs.jsonl.gz", opened.rows())
    good = exported(store)
    change(store, "DELETE FROM runs WHERE seed = 0")
    assert len(check_store(store).wrong) > 20
    assert take_into(store, tmp_path / "runs.jsonl.gz").added > 20
    assert check_store(store) == (200, [])
    assert exported(store) == good
