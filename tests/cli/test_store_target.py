"""Where ``propreg store export`` writes: never over a store, or over what it has not written itself."""

import gzip
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from propreg.cli.app import app
from propreg.store.export import sidecar
from propreg.store.integrity import check_store
from propreg.store.run import Record
from propreg.store.store import Store
from study.sweeping import batches, fill, made_up

RUNS = batches()[0].runs[:3]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return fill(tmp_path / "mine.sqlite", RUNS)


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def refused(store: Path, target: str, says: str) -> None:
    before = files(store.parent)
    done = CliRunner().invoke(app, ["store", "export", target, "--store", store.name])
    assert (done.exit_code, done.stdout, len(done.stderr.splitlines())) == (1, "", 1)
    assert says in done.stderr
    assert files(store.parent) == before


def test_the_store_itself_stays(store: Path) -> None:
    (store.parent / "link.jsonl").symlink_to(store)
    (store.parent / "hard.jsonl").hardlink_to(store)
    for name in ("mine.sqlite", "./mine.sqlite", str(store), "link.jsonl", "hard.jsonl"):
        refused(store, name, "is the store itself: name another file, for example runs.jsonl.gz")
    assert check_store(store) == (3, [])


def test_another_database_stays(store: Path) -> None:
    with closing(sqlite3.connect("other.jsonl")) as db, db:
        db.execute("CREATE TABLE mine (a)")
    refused(store, "other.jsonl", "other.jsonl was not written by propreg store export and stays")


@pytest.mark.parametrize(
    "content", [b"", b"precious", b'{"format":"other"}', gzip.compress(b"precious", mtime=0), b"\x1f\x8b?"]
)
def test_a_file_of_others_stays(store: Path, content: bytes) -> None:
    Path("precious.txt").write_bytes(content)
    refused(store, "precious.txt", "precious.txt was not written by propreg store export and stays: name another")


def test_a_file_of_others_where_the_provenance_would_go_stays(store: Path) -> None:
    Path("runs.provenance.json").write_text('{"mine": 1}')
    refused(store, "runs.jsonl", "runs.provenance.json was not written by propreg store export and stays, and the")


@pytest.mark.parametrize(
    ("target", "says"),
    [
        (".", ". is a folder: name a file in it, for example runs.jsonl.gz"),
        ("new.provenance.json", "new.provenance.json is the name of a provenance file, which lies beside an export"),
        ("/dev/null", "/dev/null was not written by propreg store export and stays"),
    ],
)
def test_what_is_no_file_for_runs_is_refused(store: Path, target: str, says: str) -> None:
    refused(store, target, says)


@pytest.mark.parametrize("name", ["runs.jsonl", "runs.jsonl.gz"])
def test_an_export_is_written_again(store: Path, name: str) -> None:
    for _ in range(2):
        assert CliRunner().invoke(app, ["store", "export", name, "--store", store.name]).exit_code == 0
    assert json.loads(Path("runs.provenance.json").read_text())[0]["runs"] == 3


def test_two_exports_do_not_share_their_provenance(store: Path) -> None:
    for name in ("runs.a.jsonl.gz", "runs.b.jsonl", "runs.jsonl.gz", "plain"):
        assert CliRunner().invoke(app, ["store", "export", name, "--store", store.name]).exit_code == 0
    assert {path.name for path in Path().glob("*.provenance.json")} == {
        "runs.a.provenance.json", "runs.b.provenance.json", "runs.provenance.json", "plain.provenance.json"
    }  # fmt: skip
    assert sidecar(Path("results/runs.jsonl.gz")) == Path("results/runs.provenance.json")


def test_runs_that_only_the_export_has_are_not_lost(store: Path) -> None:
    """A store that was begun anew beside a record, and a part of a store over the whole."""
    assert CliRunner().invoke(app, ["store", "export", "runs.jsonl.gz", "--store", store.name]).exit_code == 0
    with Store("new.sqlite") as opened:
        opened.add(Record(RUNS[0], made_up(RUNS[0]), "b"), opened.begin_session({}))
    arguments = ["store", "export", "runs.jsonl.gz", "--store"]
    before = files(store.parent)
    for lost, more in ((2, ["new.sqlite"]), (3, ["mine.sqlite", "--experiment", "table1"])):
        done = CliRunner().invoke(app, [*arguments, *more])
        assert (done.exit_code, done.stdout) == (1, "")
        assert f"runs.jsonl.gz has {lost} runs that would be lost: propreg store import" in done.stderr
    assert files(store.parent) == before
    assert CliRunner().invoke(app, ["store", "import", "runs.jsonl.gz", "--store", "new.sqlite"]).exit_code == 0
    assert CliRunner().invoke(app, [*arguments, "new.sqlite"]).stdout.startswith("3 runs written")
    assert CliRunner().invoke(app, [*arguments, "mine.sqlite", "--experiment", "table1", "--replace"]).exit_code == 0


def test_two_names_with_one_place_for_the_provenance_are_refused(store: Path) -> None:
    assert CliRunner().invoke(app, ["store", "export", "runs.jsonl.gz", "--store", store.name]).exit_code == 0
    refused(
        store, "runs.jsonl", "runs.jsonl.gz has its provenance in runs.provenance.json, where the provenance of runs"
    )


def test_a_list_of_others_is_no_provenance(store: Path) -> None:
    Path("runs.provenance.json").write_text("[1]")
    refused(store, "runs.jsonl", "runs.provenance.json was not written by propreg store export and stays")
