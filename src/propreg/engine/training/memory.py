"""Memory: what a replica takes, what the machine has left, and how the C library keeps what an epoch frees."""

import functools
import re
from dataclasses import dataclass
from pathlib import Path

import torch

from propreg.engine.spec import Method, Model
from propreg.engine.tasks.node import Problem
from propreg.engine.training.cost import numbers_per_run

MEMORY, STATUS = Path("/proc/meminfo"), Path("/proc/self/status")
OWN_GROUP, GROUPS = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")
LARGE = 33_000_000  # bytes: just under the largest block that glibc's threshold follows


def bytes_per_replica(
    problem: Problem, model: Model, method: Method, *, keep_weights: bool = False, kept_logits: int = 0
) -> int:
    """What one more replica adds to the peak of an epoch, rather too much than too little.

    Measured on a CPU it is 1.0 to 1.5 times what an epoch takes, on an H200 1.2 times (a GCN on Physics).

    Args:
        problem, model, method: What is trained. Each entry of ``MODELS`` and ``REGULARIZERS`` knows its activations.
        keep_weights: Whether the weights of the reported epoch are kept.
        kept_logits: For how many rules the logits of validation and test nodes are kept.
    """
    sizes = problem.sizes
    judged = max((int(s.val.sum() + s.test.sum()) for s in problem.splits.values()), default=0)
    numbers = numbers_per_run(sizes, model, method, keep_weights=keep_weights)
    numbers += (kept_logits + bool(kept_logits)) * judged * sizes.classes
    # The numbers of validation, test and training nodes, each at most once, and which of them are right.
    return int(numbers * torch.finfo(problem.dtype).bits // 8) + 20 * sizes.nodes


def available_bytes() -> int | None:
    """Free memory of the machine, of the container or of this process's share, whichever is least; None if unknown."""
    return min([*_of_machine(), *_of_groups(), *_of_share()], default=None)


def peak_bytes() -> int | None:
    """The most memory that this process has had; None if unknown."""
    return next((1024 * number for number in _numbers(STATUS, r"VmHWM:\s+(\d+) kB")), None)


@dataclass
class Share:
    """What this process may take where several share a machine: each of them would count all that is free as its own.

    Args:
        memory: Bytes; None for all.
        gpu: The part of its GPU.
    """

    memory: int | None = None
    gpu: float = 1.0

    def free_on_gpu(self, device: torch.device) -> int:
        """Bytes that a GPU, or this share of it, has left, without those that torch keeps for itself."""
        free, total = torch.cuda.mem_get_info(device)
        if self.gpu < 1:
            free = max(0, min(free, int(self.gpu * total) - torch.cuda.memory_reserved(device)))
        return free


SHARE = Share()


def _of_share() -> list[int]:
    if SHARE.memory is None:
        return []
    used = _numbers(STATUS, r"VmRSS:\s+(\d+) kB") or [0]
    return [max(SHARE.memory - 1024 * used[0], 0)]


def _of_machine() -> list[int]:
    return [1024 * number for number in _numbers(MEMORY, r"MemAvailable:\s+(\d+) kB")]


def _of_groups() -> list[int]:
    """By the limits of control groups (version 2): the process's own and all that contain it."""
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


@functools.cache
def warm_up_malloc() -> None:
    """Raise glibc's dynamic mmap threshold.

    Freed blocks above it go back to the kernel, and every epoch would page-fault them in again: up to 2,300 pages and a
    third of an epoch on Cora, where no block is larger than 3 MB. Freeing one block of 33 MB is enough, once per
    process: glibc then keeps up to 67 MB. Its pages are never touched, and other C libraries ignore it.
    """
    torch.empty(LARGE, dtype=torch.uint8, device="cpu")
