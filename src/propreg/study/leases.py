"""Leases: which worker trains which batch. A lease ends when it is given back, expires, or its process is gone."""

import os
import socket
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from propreg.study.errors import StudyError
from propreg.study.store import Store

LEASE_SECONDS = 120.0


@dataclass(frozen=True)
class Worker:
    """A process: host, number, and when it began, so that a later process with that number is another worker."""

    host: str
    pid: int
    born: str

    @classmethod
    def me(cls) -> "Worker":
        """This process."""
        return cls(socket.gethostname(), os.getpid(), _born(os.getpid()))

    def is_gone(self) -> bool:
        """Whether its process has ended; of another host's nothing is known."""
        if self.host != socket.gethostname():
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except OSError:  # it lives, and is someone else's
            return False
        return _born(self.pid) != self.born


def claim(store: Store, batch: str, worker: Worker, seconds: float = LEASE_SECONDS) -> bool:
    """Take a batch, unless another living worker has it."""
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
    """Give a batch back."""
    mine = (batch, worker.host, worker.pid, worker.born)
    with store.transaction():
        store.db.execute("DELETE FROM leases WHERE batch = ? AND host = ? AND pid = ? AND born = ?", mine)


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
            except StudyError:  # a full disk or a lock: another beat follows, and the trainer reports what matters
                continue


def _born(pid: int) -> str:
    """When a process began, in the kernel's ticks; empty where the system does not tell."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
    return text.rpartition(")")[2].split()[19]
