"""``propreg store import`` and ``merge``: what fails leaves nothing behind and takes nothing away."""

import json
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from hand_written import HEAD, write_lines
from propreg.cli.app import app
from propreg.store.errors import StudyError
from propreg.store.export import write_export
from propreg.store.integrity import check_store
from propreg.store.merge import take_into
from propreg.store.results import load_results
from propreg.store.run import Cell, Record
from propreg.store.store import Store
from study.sweeping import batches, fill, made_up

RUNS = batches()[0].runs[:5]
CELL = json.loads(Cell("digits", "0" * 64).text)
ROW = [0, 0, 90, 100, 800, 1000, 12, 40, None, None, "b"]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return fill(tmp_path / "mine.sqlite", RUNS)


@pytest.fixture
def export(tmp_path: Path, store: Path) -> Path:
    with Store(store, "read") as opened:
        write_export(tmp_path / "runs.jsonl", opened.rows())
    return tmp_path / "runs.jsonl"


def propreg(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(each) for each in arguments])


def one_sentence(done: Result) -> str:
    assert (done.exit_code, done.stdout, len(done.stderr.splitlines())) == (1, "", 1), done.output
    return done.stderr


@pytest.mark.parametrize("why", [KeyboardInterrupt, StudyError])
def test_a_store_that_others_work_on_stays(
    tmp_path: Path, export: Path, monkeypatch: pytest.MonkeyPatch, why: type[BaseException]
) -> None:
    """It is new and without runs, as one is in which the first batch is being trained."""
    new, others = tmp_path / "new.sqlite", []

    def interrupted(*_: object) -> bool:
        others.append(Store(new))
        raise why

    with monkeypatch.context() as patched:
        patched.setattr(Store, "add_within", interrupted)
        assert propreg("store", "import", export, "--store", new).exit_code != 0
    (other,) = others
    with other:
        assert other.add(Record(RUNS[0], made_up(RUNS[0]), "b"), other.begin_session({}))
    assert check_store(new) == (1, [])


def test_what_cannot_be_read_makes_no_store(tmp_path: Path, export: Path) -> None:
    export.write_text(export.read_text()[:-9])
    assert "is damaged" in one_sentence(propreg("store", "import", export, "--store", tmp_path / "new.sqlite"))
    assert "cannot be read" in one_sentence(propreg("store", "merge", "gone", "--store", tmp_path / "new.sqlite"))
    assert not list(tmp_path.glob("new.sqlite*"))


def test_a_failed_import_leaves_no_session(tmp_path: Path, export: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    adding, added = Store.add_within, list[bool]()

    def fails(self: Store, record: Record, session: int) -> bool:
        if len(added) == 3:
            raise StudyError("The disk is full.")
        added.append(adding(self, record, session))
        return True

    with Store(tmp_path / "new.sqlite") as opened:
        monkeypatch.setattr(Store, "add_within", fails)
        with pytest.raises(StudyError, match="The disk is full"):
            take_into(opened.path, export)
        assert (opened.sessions(), opened.keys()) == ([], set())


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE runs SET test = test + 1 WHERE key = (SELECT min(key) FROM runs)",
        "UPDATE runs SET seed = seed + 50 WHERE key = (SELECT min(key) FROM runs)",
        "DELETE FROM runs WHERE key = (SELECT min(key) FROM runs)",
        "UPDATE runs SET cell = 99",
        "DROP TABLE batches",
    ],
)
def test_damage_is_not_handed_on(tmp_path: Path, store: Path, damage: str) -> None:
    with closing(sqlite3.connect(store)) as db, db:
        db.execute(damage)
    assert check_store(store).wrong
    for command in (
        ["export", tmp_path / "new.jsonl", "--store", store],
        ["merge", store, "--store", tmp_path / "new.sqlite"],
        ["import", store, "--store", tmp_path / "new.sqlite"],
    ):
        said = one_sentence(propreg("store", *command))
        assert f"{store} is damaged, " in said
        assert f"propreg store check --store {store} lists what, and the fix." in said
    assert [path.name for path in tmp_path.iterdir()] == ["mine.sqlite"]


@pytest.mark.parametrize(
    "change",
    [
        {"dataset": ["a"]},
        {"dataset": 3},
        {"digest": None},
        {"normalize": "yes"},
        {"strength": 10**400},
        {"patience": 10**400},
        {"patience": 2.5},
        {"train_nodes": True},
        {"model": {"name": ["gcn"]}},
        {"model": {"name": "gat", "heads": {}}},
        {"method": {"name": "preg", "threshold": "0.5"}, "strength": 0.5},
        {"depth": 3},
    ],
    ids=lambda change: str(change)[:40],
)
def test_a_cell_of_anything_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    file = write_lines(tmp_path / "bad.jsonl", (json.dumps(CELL | change), json.dumps([ROW])))
    said = one_sentence(propreg("store", "import", file, "--store", tmp_path / "new.sqlite"))
    assert "bad.jsonl is damaged" in said
    assert not (tmp_path / "new.sqlite").exists()


TOO_DEEP = 1_000 if sys.version_info < (3, 14) else 10_000
"""Brackets that JSON is read to at most: Python's limit of recursion, and from 3.14 on the size of the stack."""


@pytest.mark.parametrize("depth", [100, 900, 990, 3_000, 100_000])
@pytest.mark.parametrize("place", ["head", "cell", "dataset", "runs"])
def test_brackets_that_are_too_deep_are_damage(tmp_path: Path, depth: int, place: str) -> None:
    deep = "[" * depth + "]" * depth
    head, cell, runs = HEAD, json.dumps(CELL), "[]"
    if place == "head":
        head = f'{{"format":"propreg runs","version":{deep}}}'
    elif place == "cell":
        cell = deep
    elif place == "dataset":
        cell = f'{{"dataset":{deep},"digest":""}}'
    else:
        runs = deep
    file = write_lines(tmp_path / "bad.jsonl", (cell, runs), head=head)
    said = one_sentence(propreg("store", "import", file, "--store", tmp_path / "new.sqlite"))
    assert "bad.jsonl is damaged" in said
    if place == "head" or depth > TOO_DEEP:
        with pytest.raises(StudyError, match=r"bad.jsonl is damaged"):
            len(load_results(file))


def test_a_store_that_holds_such_a_cell_is_checked(store: Path) -> None:
    with closing(sqlite3.connect(store)) as db, db:
        db.execute("""UPDATE cells SET text = '{"dataset":["a"],"digest":"b"}' WHERE id = 1""")
    assert any("is not stored under its key" in line for line in check_store(store).wrong)


def test_provenance_that_is_too_deep_is_left_out(tmp_path: Path, export: Path) -> None:
    (tmp_path / "runs.provenance.json").write_text("[" * 100_000)
    assert propreg("store", "import", export, "--store", tmp_path / "new.sqlite").exit_code == 0


def test_an_empty_file_is_not_called_whole(tmp_path: Path) -> None:
    path = tmp_path / "cut.sqlite"
    path.touch()
    done = CliRunner().invoke(app, ["store", "check", "--store", str(path)])
    assert done.stdout.strip().endswith("0 runs, the file is empty: nothing was stored in it yet, or it was cut off.")
