"""Opening a store's file: empty ones, read-only folders, names that are no files, and one that goes while in use."""

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

from propreg.cli.app import app
from propreg.store.errors import StudyError
from propreg.store.integrity import check_store
from propreg.store.merge import take_into
from propreg.store.results import load_results
from propreg.store.run import Record
from propreg.store.sqlite import log_of
from propreg.store.store import Store
from propreg.study.execute.runner import Progress, reproduce
from study.sweeping import MadeUp, batches, fill, made_up

RUNS = batches()[0].runs[:3]


@pytest.mark.parametrize("made", ["nothing", "a file", "a header"])
def test_a_store_whose_making_was_cut_short_has_no_runs(tmp_path: Path, made: str) -> None:
    path = tmp_path / "new.sqlite"
    path.touch()
    if made == "a header":
        with closing(sqlite3.connect(path)) as db:
            db.execute("PRAGMA journal_mode = WAL")
    before = path.read_bytes()
    assert check_store(path) == (0, [])
    assert len(load_results(path)) == 0
    with Store(tmp_path / "other.sqlite") as other:
        assert take_into(other.path, path).added == 0
    with Store(path, "read") as store, pytest.raises(StudyError, match="cannot be written"):
        store.begin_session({})
    assert path.read_bytes() == before
    assert check_store(fill(path, RUNS)) == (3, [])


def test_an_empty_database_of_another_program_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("PRAGMA application_id = 7")
    for mode in ("read", "write"):
        with pytest.raises(StudyError, match="is not a propreg store"):
            Store(path, mode)


def test_updating_makes_no_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even where the file goes between looking for it and opening it."""
    monkeypatch.setattr(Path, "exists", lambda _: True)
    with pytest.raises(StudyError, match="cannot be written or opened"):
        Store(tmp_path / "gone.sqlite", "update")
    assert list(tmp_path.iterdir()) == []


@contextmanager
def _may_not_write() -> Iterator[Path]:
    """A folder that this process cannot write, once its mode says so; who may do everything is nobody meanwhile."""
    folder = Path(tempfile.mkdtemp())
    user = os.geteuid()
    try:
        yield folder
    finally:
        if user == 0:
            os.setresuid(0, 0, 0)
        folder.chmod(0o700)
        shutil.rmtree(folder)


def _take_away_rights(folder: Path) -> None:
    folder.chmod(0o555)
    if os.geteuid() == 0:
        os.setresuid(65534, 65534, 0)


def test_a_store_in_a_folder_that_cannot_be_written_is_read() -> None:
    with _may_not_write() as folder:
        path = fill(folder / "store.sqlite", RUNS)
        path.chmod(0o444)
        _take_away_rights(folder)
        with pytest.raises(PermissionError):
            (folder / "other").touch()
        assert check_store(path) == (3, [])
        assert len(load_results(path)) == 3
        with pytest.raises(StudyError, match="check its folder and permissions"):
            Store(path)
        assert [file.name for file in folder.iterdir()] == ["store.sqlite"]


def test_what_a_log_holds_is_not_left_out() -> None:
    """A store that was not closed, in such a folder: without its log it would have fewer runs."""
    with _may_not_write() as folder:
        path, copy = folder / "store.sqlite", folder / "copy.sqlite"
        with Store(path) as store:
            store.add(Record(RUNS[0], made_up(RUNS[0]), "b"), store.begin_session({}))
            for end in ("", "-wal"):
                shutil.copy(f"{path}{end}", f"{copy}{end}")
        _take_away_rights(folder)
        with Store(copy, "read") as store:
            assert store.keys() == {RUNS[0].key}
            with pytest.raises(StudyError, match="cannot be written"):
                store.begin_session({})
        assert check_store(copy) == (1, [])
        assert len(load_results(copy)) == 1
        assert sorted(file.name for file in folder.iterdir()) == ["copy.sqlite", "copy.sqlite-wal", "store.sqlite"]


def test_a_name_is_always_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in (":memory:", "file:a?mode=memory", "a b?#%41é.sqlite"):
        assert check_store(fill(Path(name), RUNS)) == (3, [])
        assert (tmp_path / name).stat().st_size > 4096


@pytest.mark.parametrize("how", ["deleted", "replaced"])
def test_a_sweep_whose_store_goes_says_so(tmp_path: Path, how: str) -> None:
    path = tmp_path / "store.sqlite"

    def lose(progress: Progress) -> None:
        if progress.done == 7 and path.exists():
            path.unlink()
            if how == "replaced":
                Store(path).close()

    says = "store.sqlite was deleted, moved or replaced while it was in use: put it back and run again"
    with Store(path) as store, pytest.raises(StudyError, match=says):
        reproduce(batches(), store, MadeUp, tell=lose)


def test_nothing_to_do_is_not_said_of_a_store_that_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    with Store(path) as store:
        reproduce(batches()[:1], store, MadeUp)
        store.still_there()
        with pytest.raises(StudyError, match="was deleted, moved or replaced"):
            reproduce(batches()[:1], store, MadeUp, tell=lambda _: path.unlink())


def test_a_store_that_goes_does_not_take_runs(tmp_path: Path) -> None:
    path, run = fill(tmp_path / "store.sqlite", RUNS), batches()[1].runs[0]
    with Store(path) as store:
        path.rename(tmp_path / "moved.sqlite")
        with pytest.raises(StudyError, match="was deleted, moved or replaced"):
            store.add(Record(run, made_up(run), "b"), 1)
        (tmp_path / "moved.sqlite").rename(path)
        assert store.add(Record(run, made_up(run), "b"), 1)
    assert check_store(path) == (4, [])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("DROP TABLE batches", "has no table batches: take"),
        ("DROP TABLE leases", "has no table leases: take"),
        ("DROP TABLE sessions", "has no table sessions: take"),
        ("ALTER TABLE leases DROP COLUMN born", "has no column born of table leases: take"),
    ],
)
def test_a_check_compares_the_tables_first(tmp_path: Path, change: str, says: str) -> None:
    path = fill(tmp_path / "store.sqlite", RUNS)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(change)
    done = CliRunner().invoke(app, ["store", "check", "--store", str(path)])
    assert (done.exit_code, done.stdout, len(done.stderr.splitlines())) == (1, "", 1)
    assert f"{path} {says} the runs from a copy or an export into a new store" in done.stderr


def test_a_link_is_the_store_itself(tmp_path: Path) -> None:
    """SQLite's own files lie beside the file, not beside the link."""
    real, link = tmp_path / "real" / "s.sqlite", tmp_path / "link.sqlite"
    real.parent.mkdir()
    fill(real, RUNS)
    link.symlink_to(real)
    before = sorted(path.name for path in real.parent.iterdir())
    assert check_store(link) == (3, [])
    assert len(load_results(link)) == 3
    assert sorted(path.name for path in real.parent.iterdir()) == before
    assert log_of(link) == log_of(real)
