"""Leases: one worker per batch, none for ever."""

import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

from propreg.store.leases import Heartbeat, claim, release
from propreg.store.locks import Worker
from propreg.store.store import Store

ME = Worker.me()
ELSEWHERE = Worker("another-host", 1, "")


def test_a_batch_is_held_by_one(tmp_path: Path) -> None:
    with Store(tmp_path / "store.sqlite") as store:
        assert claim(store, "a", ELSEWHERE)
        assert not claim(store, "a", ME)
        assert claim(store, "b", ME)
        release(store, "a", ME)
        assert not claim(store, "a", ME), "only the holder gives back"
        release(store, "a", ELSEWHERE)
        assert claim(store, "a", ME)
        assert claim(store, "a", ME), "a worker may claim again what it holds"


def test_a_lease_expires(tmp_path: Path) -> None:
    with Store(tmp_path / "store.sqlite") as store:
        assert claim(store, "a", ELSEWHERE, seconds=-1.0)
        assert claim(store, "a", ME)


def test_the_lease_of_a_dead_process_is_void(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "pass"]) as process:
        process.wait()
    with Store(tmp_path / "store.sqlite") as store:
        assert claim(store, "a", replace(ME, pid=process.pid))
        assert claim(store, "a", ME)
        if ME.born:  # the number of a dead process may be given to another
            assert claim(store, "b", replace(ME, born="long ago"))
            assert claim(store, "b", ME)


def test_a_heartbeat_renews(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    with Store(path) as store:
        claim(store, "a", ME, seconds=0.0)
        (before,) = store.db.execute("SELECT expires FROM leases").fetchone()
        after = before
        with Heartbeat(path, ME, seconds=0.2):
            for _ in range(200):
                (after,) = store.db.execute("SELECT expires FROM leases").fetchone()
                if after > before:
                    break
                time.sleep(0.05)
        assert after > before
