"""Who writes to a store: processes as workers, and one writer at a time where the file system is of a network.

SQLite's write-ahead log needs memory that all processes share, which two machines do not have, and locks that many
network file systems only pretend to have. There a store has a rollback journal, and a file beside it names its writer:
making a file that must not exist is atomic on all of them.
"""

import json
import os
import re
import secrets
import shlex
import socket
import threading
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from propreg.store.errors import StudyError

MOUNTS = Path("/proc/self/mountinfo")
NETWORK = re.compile(
    r"nfs\d?|cifs|smb\w*|lustre|gpfs|mmfs|beegfs\w*|ceph|afs|orangefs|pvfs2|panfs|wekafs|glusterfs|"
    r"fuse\.(sshfs|ceph\w*|glusterfs|s3fs|gcsfuse|rclone|beegfs\w*|mount\.\w+|juicefs|davfs\w*)|davfs"
)
"""Types of file systems of networks, as the kernel names them."""


@dataclass(frozen=True)
class Worker:
    """A process: host, number, and when it began, so that a later process with the same number is another worker."""

    host: str
    pid: int
    born: str

    @classmethod
    def me(cls) -> "Worker":
        """This process."""
        return cls(socket.gethostname(), os.getpid(), _born(os.getpid()))

    def is_here(self) -> bool:
        """Whether it runs on this host."""
        return self.host == socket.gethostname() and not self.is_gone()

    def is_gone(self) -> bool:
        """Whether its process has ended; False for another host, whose processes are unknown."""
        if self.host != socket.gethostname():
            return False
        try:
            os.kill(self.pid, 0)
        except (ProcessLookupError, OverflowError):
            return True
        except OSError:  # it runs, as another user
            return False
        return _born(self.pid) != self.born


def network_of(path: Path) -> str:
    """The type of the network file system that a file is on; empty if it is on none, or that is unknown."""
    try:
        lines = MOUNTS.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:  # another system than Linux
        return ""
    real, best, kind = path.absolute().resolve(), -1, ""
    for line in lines:
        before, _, after = line.partition(" - ")
        fields, end = before.split(" "), after.split(" ")
        if len(fields) < 5:
            continue
        point = Path(re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), fields[4]))
        if real.is_relative_to(point) and len(point.parts) >= best:  # of equals the one mounted last
            best, kind = len(point.parts), end[0]
    return kind if NETWORK.fullmatch(kind) else ""


def writer_file(path: Path) -> Path:
    """What names the writer of a store on a network file system: a link to a text, or a file where links cannot be."""
    real = path.resolve()
    return real.with_name(f"{real.name}-writer")


_mine: Counter[tuple[int, Path]] = Counter()
_guard = threading.Lock()


def claim_writing(path: Path, kind: str) -> None:
    """Become the writer of a store on a network file system; a process may be so several times.

    Args:
        path: The store.
        kind: The type of the file system.

    Raises:
        StudyError: If another process is.
    """
    file = writer_file(path)
    with _guard:
        me = (os.getpid(), file)  # a forked process has written nothing yet
        if not _mine[me] and not _make(file, Worker.me()):
            holder = _holder(file)
            if holder is None or not holder.is_gone() or not _take_over(file):
                raise StudyError(_several(path, kind, holder))
        _mine[me] += 1


def release_writing(path: Path) -> None:
    """End what :func:`claim_writing` began."""
    file = writer_file(path)
    with _guard:
        me = (os.getpid(), file)
        _mine[me] -= 1
        if not _mine[me]:
            file.unlink(missing_ok=True)


def clear_writer(path: Path) -> Worker | None:
    """Remove the file that names a store's writer, unless that runs on this host. Returns whom it named."""
    file = writer_file(path)
    holder = _holder(file)
    if holder is not None and holder.is_here():
        return None
    file.unlink(missing_ok=True)
    return holder


def _make(file: Path, worker: Worker) -> bool:
    text = json.dumps(vars(worker))
    try:
        try:
            file.symlink_to(text)  # made with its text at once: a kill leaves no file that names nobody
        except FileExistsError:
            return False
        except OSError:  # no links there
            with file.open("x", encoding="utf-8") as out:
                out.write(text)
    except FileExistsError:
        return False
    except OSError as error:
        raise StudyError(f"{file} cannot be written: {error.strerror or error}.") from error
    return True


def _take_over(file: Path) -> bool:
    """Take the place of a writer whose process is gone; of several that try only one can rename the file."""
    old = file.with_name(f"{file.name}.{secrets.token_hex(4)}")
    with suppress(OSError):
        file.rename(old)
        old.unlink()
    return _make(file, Worker.me())


def _holder(file: Path) -> Worker | None:
    try:
        found = json.loads(os.readlink(file) if file.is_symlink() else file.read_text(encoding="utf-8"))
        return Worker(str(found["host"]), int(found["pid"]), str(found["born"]))
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _several(path: Path, kind: str, holder: Worker | None) -> str:
    who = "another process" if holder is None else f"process {holder.pid} on {holder.host}"
    name = shlex.quote(str(path))
    return (
        f"{path} is on a network file system ({kind}), where only one process may write to a store, and {who} does: "
        f"give each its own with --store, then run propreg store merge with all of them and --store {name} (propreg "
        "reproduce --shard names a store for each job of an array); if that process is gone, propreg store leases "
        f"--clear --store {name}."
    )


def _born(pid: int) -> str:
    """When a process began, in the kernel's ticks; empty on a system without /proc."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
    return text.rpartition(")")[2].split()[19]
