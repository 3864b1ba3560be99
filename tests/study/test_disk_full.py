"""A full disk: a clear error, a store that still checks, and a sweep that goes on once there is space."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from propreg.study.checking import check_store
from propreg.study.errors import StudyError
from propreg.study.runner import reproduce
from propreg.study.store import Store
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
    runs, wrong, undigested = check_store(path)
    assert 0 < runs < 200
    assert (wrong, undigested) == ([], 0)
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
        with pytest.raises(StudyError, match=r"the disk is full|disk I/O error"):
            reproduce(batches(), store, MadeUp)
    assert check_store(path)[1] == []
    ballast.unlink()
    subprocess.run(["mount", "-o", "remount,size=16m", str(small_disk)], check=True)
    with Store(path) as store:
        reproduce(batches(), store, MadeUp)
    assert exported(path) == undisturbed
