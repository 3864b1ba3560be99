"""How much memory this process may still take, as far as the system says."""

import re
from pathlib import Path

MEMORY, OWN_GROUP, GROUPS = Path("/proc/meminfo"), Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")


def available_bytes() -> int | None:
    """What the machine has left, or the container that the process is in; None where nothing says it (not on Linux)."""
    return min([*_of_machine(), *_of_groups()], default=None)


def _of_machine() -> list[int]:
    return [1024 * number for number in _numbers(MEMORY, r"MemAvailable:\s+(\d+) kB")]


def _of_groups() -> list[int]:
    """By the limits of control groups (version 2): that of the process, and all that it lies in."""
    own = re.search(r"^0::/(.*)$", _text(OWN_GROUP), re.MULTILINE)
    group = GROUPS / (own[1] if own else "")
    found = []
    for folder in (group, *group.parents):
        if folder.is_relative_to(GROUPS):
            limit, used = _numbers(folder / "memory.max", r"(\d+)"), _numbers(folder / "memory.current", r"(\d+)")
            files = _numbers(folder / "memory.stat", r"inactive_file (\d+)")  # counted as used, but given back
            found += [max(most - now + sum(files), 0) for most, now in zip(limit, used, strict=False)]
    return found


def _numbers(path: Path, pattern: str) -> list[int]:
    found = re.search(rf"^{pattern}$", _text(path), re.MULTILINE)
    return [int(found[1])] if found else []


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
