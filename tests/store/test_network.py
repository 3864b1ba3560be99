"""Network file systems: one writer, a rollback journal, never a write-ahead log; and locks that do not work."""

import json
import multiprocessing
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from typer.testing import CliRunner

from propreg.cli.app import app
from propreg.store import locks
from propreg.store.errors import StudyError
from propreg.store.integrity import check_store
from propreg.store.locks import NETWORK, Worker, network_of, writer_file
from propreg.store.merge import take_into
from propreg.store.results import load_results
from propreg.store.run import Record
from propreg.store.sqlite import has_wal, log_of
from propreg.store.sqlite_errors import store_sentence
from propreg.store.store import Store
from propreg.study.execute.runner import Progress, reproduce
from study.sweeping import MadeUp, batches, exported, fill, made_up

RUNS = batches()[0].runs[:3]
LINE = "36 35 98:0 /mnt1 {point} rw,noatime master:1 - {kind} host:/x rw,errors=continue\n"


@pytest.fixture
def share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that the kernel says is on NFS."""
    folder = tmp_path / "a share"
    folder.mkdir()
    point = str(folder).replace(" ", r"\040")
    mounts = tmp_path / "mountinfo"
    mounts.write_text(LINE.format(point="/", kind="ext4") + LINE.format(point=point, kind="nfs4"))
    monkeypatch.setattr(locks, "MOUNTS", mounts)
    return folder


def test_the_type_is_that_of_the_nearest_mount(share: Path, tmp_path: Path) -> None:
    assert network_of(share / "store.sqlite") == "nfs4"
    assert network_of(tmp_path / "store.sqlite") == ""
    (tmp_path / "link").symlink_to(share)
    assert network_of(tmp_path / "link" / "store.sqlite") == "nfs4"


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "smb3", "lustre", "gpfs", "beegfs", "ceph", "fuse.sshfs"])
def test_known_types(kind: str) -> None:
    assert NETWORK.fullmatch(kind)


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "tmpfs", "overlay", "zfs", "fuse.bindfs"])
def test_local_types(kind: str) -> None:
    assert not NETWORK.fullmatch(kind)


def test_a_single_writer_works_without_a_log(share: Path, tmp_path: Path) -> None:
    path, logs = share / "store.sqlite", list[bool]()

    def look(progress: Progress) -> None:
        logs.append(log_of(path).exists() or has_wal(path))
        if progress.done == 50:
            assert writer_file(path).is_symlink()
            assert check_store(path) == (50, []), "readers read meanwhile"

    with Store(path) as store:
        assert reproduce(batches(), store, MadeUp, tell=look).missing == 0
    assert not any(logs)
    assert [file.name for file in share.iterdir()] == ["store.sqlite"]
    with Store(tmp_path / "local.sqlite") as store:
        reproduce(batches(), store, MadeUp)
    assert exported(path) == exported(tmp_path / "local.sqlite")
    assert len(load_results(path)) == 200


def _write(path: Path, answers: "multiprocessing.SimpleQueue[str]") -> None:
    try:
        Store(path).close()
        answers.put("")
    except StudyError as error:
        answers.put(str(error))


@pytest.mark.skipif(sys.platform != "linux", reason="processes are forked")
def test_a_second_writer_is_refused_with_the_way_out(share: Path) -> None:
    path, context = share / "store.sqlite", multiprocessing.get_context("fork")
    answers = context.SimpleQueue()
    with Store(path) as store:
        assert store.add(Record(RUNS[0], made_up(RUNS[0]), "b"), store.begin_session({}))
        with Store(path) as again:  # the same process, as the heartbeat is
            assert again.keys() == {RUNS[0].key}
        other = context.Process(target=_write, args=(path, answers))
        other.start()
        said = answers.get()
        other.join()
        assert "is on a network file system (nfs4), where only one process may write to a store" in said
        assert "give each its own with --store, then run propreg store merge" in said
        assert "(propreg reproduce --shard names a store for each job of an array)" in said
        assert store.add(Record(RUNS[1], made_up(RUNS[1]), "b"), 1), "the first one goes on"
    other = context.Process(target=_write, args=(path, answers))
    other.start()
    assert answers.get() == "", "and then the second one may"
    other.join()
    assert check_store(path) == (2, [])


def test_shards_are_merged(share: Path) -> None:
    for name, runs in (("one", RUNS[:2]), ("two", RUNS[1:])):
        fill(share / f"{name}.sqlite", runs)
    for name in ("one", "two"):
        take_into(share / "all.sqlite", share / f"{name}.sqlite")
    assert check_store(share / "all.sqlite") == (3, [])


@pytest.mark.parametrize("where", ["here", "elsewhere"])
def test_a_writer_that_was_killed_is_followed(share: Path, where: str) -> None:
    path = fill(share / "store.sqlite", RUNS)
    with subprocess.Popen([sys.executable, "-c", "pass"]) as process:
        process.wait()
    host = socket.gethostname() if where == "here" else "another-host"
    writer_file(path).write_text(json.dumps(vars(Worker(host, process.pid, ""))))
    if where == "elsewhere":
        with pytest.raises(StudyError, match=rf"process {process.pid} on another-host does: .*store leases --clear"):
            Store(path)
        done = CliRunner().invoke(app, ["store", "leases", "--clear", "--store", str(path)])
        assert f"The lease of the writer, process {process.pid} on another-host, was removed too." in done.stdout
    with Store(path) as store:
        assert len(store.keys()) == 3
    assert not os.path.lexists(writer_file(path))


def test_a_store_in_wal_mode_is_read_and_converted(tmp_path: Path, share: Path) -> None:
    local = fill(tmp_path / "store.sqlite", RUNS)
    shutil.copy(local, share / "whole.sqlite")
    with Store(local) as store:
        run = batches()[1].runs[0]
        store.add(Record(run, made_up(run), "b"), 1)
        for end in ("", "-wal"):
            shutil.copy(f"{local}{end}", share / f"killed.sqlite{end}")
    for name, runs in (("whole", 3), ("killed", 4)):
        path = share / f"{name}.sqlite"
        before = sorted(file.name for file in share.iterdir())
        assert has_wal(path)
        assert check_store(path) == (runs, [])
        assert sorted(file.name for file in share.iterdir()) == before, "reading makes no files there"
        Store(path).close()
        assert not has_wal(path)
        assert check_store(path) == (runs, [])
        assert not log_of(path).exists()
        shutil.copy(path, tmp_path / "back.sqlite")
        Store(tmp_path / "back.sqlite").close()
        assert has_wal(tmp_path / "back.sqlite"), "on a local disk it has a log again"


def test_the_journal_of_a_writer_that_was_killed_is_rolled_back_by_readers(share: Path) -> None:
    """Half of a transaction is in the file: without its journal, a reader would see that half, or a damaged file."""
    path, copy = fill(share / "store.sqlite", batches()[0].runs), share / "copy.sqlite"
    with Store(path) as store, suppress(KeyError), store.transaction():
        store.db.execute("PRAGMA cache_size = 1")
        store.db.execute("UPDATE runs SET test = test + 1, batch = hex(randomblob(900))")
        store.db.execute("UPDATE digests SET digest = randomblob(900)")
        for end in ("", "-journal"):
            shutil.copy(f"{path}{end}", f"{copy}{end}")
        raise KeyError
    whole, half = path.read_bytes(), copy.read_bytes()
    assert whole != half[: len(whole)], "nothing of the transaction is in the file yet"
    before = sorted(file.name for file in share.iterdir())
    assert check_store(copy) == (20, [])
    assert exported(copy) == exported(path)
    assert sorted(file.name for file in share.iterdir()) == before


@pytest.mark.parametrize(
    "name", ["SQLITE_PROTOCOL", "SQLITE_IOERR_LOCK", "SQLITE_IOERR_SHMOPEN", "SQLITE_IOERR_SHMMAP"]
)
def test_locks_that_do_not_work_have_their_own_sentence(share: Path, name: str) -> None:
    error = sqlite3.OperationalError("locking protocol")
    error.sqlite_errorname = name
    assert store_sentence(share / "a.sqlite", error, 60) == (
        f"{share}/a.sqlite cannot be locked (locking protocol): its file system (nfs4) has no locks that SQLite can "
        "use; keep the store on a local disk, name it with --store, and take its runs here with propreg store merge "
        f"and --store '{share}/a.sqlite'."
    )
