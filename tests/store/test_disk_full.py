"""A full disk: a clear error, a store that still checks, and a sweep that goes on once there is space."""

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from propreg.store.errors import StudyError
from propreg.store.integrity import check_store
from propreg.store.sqlite_errors import store_sentence
from propreg.store.store import Store
from propreg.study.execute.runner import reproduce
from study.sweeping import MadeUp, batches, exported


@pytest.fixture
def undisturbed(tmp_path: Path) -> str:
    path = tmp_path / "undisturbed.sqlite"
    with Store(path) as store:
        reproduce(batches(), store, MadeUp)
    return exported(path)


def test_no_more_pages(tmp_path: Path, undisturbed: str) -> None:
    path = tmp_path / "store.sqlite"
    with Store(path) as store:
        (pages,) = store.db.execute("PRAGMA page_count").fetchone()
        store.db.execute(f"PRAGMA max_page_count = {pages + 8}")
        with pytest.raises(StudyError, match="cannot grow, the disk is full: free some space"):
            reproduce(batches(), store, MadeUp)
    runs, wrong = check_store(path)
    assert 0 < runs < 200
    assert wrong == []
    with Store(path) as store:
        reproduce(batches(), store, MadeUp)
    assert exported(path) == undisturbed


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "small"
    folder.mkdir()
    mount = shutil.which("mount")
    command = [mount or "mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)]
    if mount is None or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("no tmpfs can be mounted here; the limit on pages is tested instead")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_small_disk(small_disk: Path, undisturbed: str) -> None:
    path, ballast = small_disk / "store.sqlite", small_disk / "ballast"
    with Store(path) as store:
        reproduce(batches()[:1], store, MadeUp)
        with pytest.raises(OSError, match="No space left"):
            ballast.write_bytes(bytes(4 << 20))
        with pytest.raises(StudyError, match=r"the disk is full .*free some space|the disk is full: free some space"):
            reproduce(batches(), store, MadeUp)
    assert check_store(path)[1] == []
    ballast.unlink()
    subprocess.run(["mount", "-o", "remount,size=16m", str(small_disk)], check=True)
    with Store(path) as store:
        reproduce(batches(), store, MadeUp)
    assert exported(path) == undisturbed


@pytest.mark.parametrize("left", [0, 1, 4, 8, 16, 24])
def test_a_disk_that_is_full_before_there_is_a_store(small_disk: Path, left: int) -> None:
    """With so many pages left. What is there of the store then is one without runs."""
    path, ballast = small_disk / "store.sqlite", small_disk / "ballast"
    with suppress(OSError), ballast.open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass
    os.truncate(ballast, ballast.stat().st_size - left * 4096)
    with pytest.raises(StudyError, match=r"store.sqlite .*the disk is full.*free some space"), Store(path) as store:
        reproduce(batches(), store, MadeUp)
    ballast.unlink()
    if path.exists():
        assert check_store(path).wrong == []
    with Store(path) as store:
        assert reproduce(batches()[:1], store, MadeUp).missing == 0


def test_an_error_of_the_disk_names_it() -> None:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorname = "SQLITE_IOERR_SHMSIZE"
    assert store_sentence(Path("a.sqlite"), error, 60) == (
        "a.sqlite cannot be read or written, the disk is full or fails (disk I/O error): free some space, or check the "
        "disk, and run again; stored runs are kept."
    )
