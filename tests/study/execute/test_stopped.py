"""``propreg reproduce`` ended from outside: SIGTERM ends it as Ctrl-C does, and a full disk keeps what is done."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from propreg.store.errors import StudyError
from propreg.store.integrity import check_store
from propreg.store.store import Store
from propreg.study.execute.runner import reproduce
from study.sweeping import MadeUp, batches, exported

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="signals and limits as Linux has them")
PATIENCE = 300.0
PROGRAM = """
import resource, sys
from unittest.mock import patch
from study.sweeping import MadeUp
from propreg.cli import reproduce
from propreg.cli.app import app
size = int(sys.argv[3]) or resource.RLIM_INFINITY
resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
with patch.object(reproduce, "make_trainer", lambda *_: MadeUp(float(sys.argv[1]))):
    app(["reproduce", "digits-smoke", "--store", sys.argv[2]])
"""


def begin(path: Path, pause: float, file_size: int = 0) -> "subprocess.Popen[str]":
    """The command in a process of its own, with made-up results, whose files can have so many bytes; 0: any number."""
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(pause), str(path), str(file_size)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )


def undisturbed(path: Path) -> str:
    with Store(path) as store:
        reproduce(batches(), store, MadeUp)
    return exported(path)


def stored(path: Path) -> int:
    try:
        with Store(path, "read") as store:
            return len(store.keys())
    except StudyError:  # there is none yet
        return 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_keeps_finished_runs(tmp_path: Path, number: signal.Signals) -> None:
    path, until = tmp_path / "store.sqlite", time.monotonic() + PATIENCE
    with begin(path, pause=0.02) as process:
        while stored(path) < 30 and process.poll() is None and time.monotonic() < until:
            time.sleep(0.02)
        before = stored(path)
        process.send_signal(number)
        out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, err
    assert "runs are missing (interrupted)." in out
    assert "Traceback" not in err
    runs, wrong = check_store(path)
    assert 30 <= before <= runs < 200
    assert wrong == []
    assert sorted(file.name for file in tmp_path.iterdir()) == ["store.sqlite"], "the log is in the file"
    with Store(path) as store:
        assert store.db.execute("SELECT count(*) FROM leases").fetchone() == (0,)
        assert reproduce(batches(), store, MadeUp).stored == 200 - runs
    assert exported(path) == undisturbed(tmp_path / "other.sqlite")


@pytest.mark.parametrize("size", [100_000, 200_000, 400_000])
def test_a_file_that_cannot_grow_keeps_finished_runs(tmp_path: Path, size: int) -> None:
    path = tmp_path / "store.sqlite"
    with begin(path, pause=0.0, file_size=size) as process:
        out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (1, "")
    last = err.splitlines()[-1]
    assert "the disk is full" in last
    assert "free some space" in last
    assert "stored runs are kept" in last
    runs, wrong = check_store(path)
    assert wrong == []
    assert 0 < runs < 200
    with Store(path) as store:
        assert reproduce(batches(), store, MadeUp).stored == 200 - runs
    assert exported(path) == undisturbed(tmp_path / "other.sqlite")
