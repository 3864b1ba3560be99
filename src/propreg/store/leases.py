"""Leases: which worker trains which batch. A lease ends when it is released, expires, or its process is gone."""

import threading
import time
from pathlib import Path
from typing import NamedTuple

from propreg.store.errors import StudyError
from propreg.store.locks import Worker
from propreg.store.store import Store

LEASE_SECONDS = 120.0


def claim(store: Store, batch: str, worker: Worker, seconds: float = LEASE_SECONDS) -> bool:
    """Lease a batch, unless another live worker has it."""
    with store.transaction():
        row = store.db.execute("SELECT host, pid, born, expires FROM leases WHERE batch = ?", (batch,)).fetchone()
        if row is not None:
            holder = Worker(*row[:3])
            if holder != worker and row[3] > time.time() and not holder.is_gone():
                return False
        store.db.execute(
            "INSERT OR REPLACE INTO leases (batch, host, pid, born, expires) VALUES (?, ?, ?, ?, ?)",
            (batch, worker.host, worker.pid, worker.born, time.time() + seconds),
        )
    return True


def release(store: Store, batch: str, worker: Worker) -> None:
    """End a lease."""
    mine = (batch, worker.host, worker.pid, worker.born)
    with store.transaction():
        store.db.execute("DELETE FROM leases WHERE batch = ? AND host = ? AND pid = ? AND born = ?", mine)


class Lease(NamedTuple):
    """Who trains which batch, and until when."""

    batch: str
    worker: Worker
    expires: float


def leases(store: Store) -> list[Lease]:
    """All leases of a store."""
    with store.reading():
        rows = store.db.execute("SELECT batch, host, pid, born, expires FROM leases ORDER BY batch").fetchall()
    return [Lease(batch, Worker(host, pid, born), expires) for batch, host, pid, born, expires in rows]


def clear(store: Store) -> tuple[int, int]:
    """End the leases of all workers but those that run on this host. Returns how many ended, and how many are left."""
    gone = 0
    with store.transaction():
        every = leases(store)
        for lease in every:
            if not lease.worker.is_here():
                gone += store.db.execute("DELETE FROM leases WHERE batch = ?", (lease.batch,)).rowcount
    return gone, len(every) - gone


class Heartbeat:
    """Renews a worker's leases from a thread of its own while a batch trains."""

    def __init__(self, path: Path, worker: Worker, seconds: float = LEASE_SECONDS) -> None:
        self.path, self.worker, self.seconds = path, worker, seconds
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)

    def __enter__(self) -> "Heartbeat":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _beat(self) -> None:
        while not self._done.wait(self.seconds / 4):
            try:
                with Store(self.path, "update") as store, store.transaction():
                    store.db.execute(
                        "UPDATE leases SET expires = ? WHERE host = ? AND pid = ? AND born = ?",
                        (time.time() + self.seconds, self.worker.host, self.worker.pid, self.worker.born),
                    )
            except StudyError:  # a full disk or a lock: the next beat tries again, and writing a run reports the error
                continue
