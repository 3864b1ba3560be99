"""Sweeps that are killed and restarted end in the same bytes as one left alone."""

import random
import sys
import time
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from counting import Inputs
from propreg.store.errors import StudyError
from propreg.store.integrity import check_store
from propreg.store.store import Store
from study.sweeping import begin, exported

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="processes are forked and killed the way Linux does it"),
]
PATIENCE = 300.0


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The export of a sweep that nobody disturbs."""
    path = tmp_path_factory.mktemp("undisturbed") / "store.sqlite"
    process = begin(path)
    process.join(PATIENCE)
    assert process.exitcode == 0
    return exported(path)


@pytest.mark.parametrize(("workers", "kills"), [(1, 20), (2, 10)])
def test_killed_sweeps_end_in_the_same_bytes(
    tmp_path: Path, undisturbed: str, workers: int, kills: int, inputs: Inputs
) -> None:
    """Kills come after so many more runs, not after so many seconds, and every fifth while a process starts."""
    path, draw, early = tmp_path / "store.sqlite", random.Random(workers), 0
    for number in range(kills):
        so_far = recorded(path)
        crew = [begin(path) for _ in range(workers)]
        if number % 5:
            wait_for(path, so_far + draw.randint(0, 100 // kills), crew)
        for process in crew:
            process.join(draw.uniform(0.0, 0.05))
            process.kill()
            process.join(PATIENCE)
        assert not path.exists() or check_store(path)[1] == []
        early += recorded(path) < 200
    crew = [begin(path) for _ in range(workers)]
    for process in crew:
        process.join(PATIENCE)
        assert process.exitcode == 0
    assert exported(path) == undisturbed
    with Store(path, "read") as store:
        shares = [session["runs"] for session in store.sessions()]
    assert sum(shares) == 200
    assert early > kills // 2, "most kills should have come while something was left to train"
    assert check_store(path) == (200, [])
    inputs(workers * kills)


def recorded(path: Path) -> int:
    """The number of runs in a store, and -1 if nobody has begun to write into it."""
    try:
        with Store(path, "read") as store:
            sessions = store.sessions()
            return sum(session["runs"] for session in sessions) if sessions else -1
    except StudyError:
        return -1


def wait_for(path: Path, runs: int, crew: list[BaseProcess]) -> None:
    """Wait until a store holds so many runs, or nobody is left who could add any."""
    until = time.monotonic() + PATIENCE
    while recorded(path) < runs and any(process.is_alive() for process in crew):
        assert time.monotonic() < until
        time.sleep(0.005)


def test_two_processes_share_the_work(tmp_path: Path, undisturbed: str) -> None:
    path = tmp_path / "store.sqlite"
    crew = [begin(path), begin(path)]
    for process in crew:
        process.join(PATIENCE)
        assert process.exitcode == 0
    assert exported(path) == undisturbed
    with Store(path, "read") as store:
        shares = [session["runs"] for session in store.sessions()]
        assert store.db.execute("SELECT count(*) FROM leases").fetchone() == (0,)
    assert len(shares) == 2
    assert sum(shares) == 200
