"""Memory: what a replica takes, what the machine has left, and how the C library keeps what an epoch frees."""

import functools
import re
from pathlib import Path

import torch

from propreg.engine.spec import Method, Model
from propreg.engine.tasks.node import Problem

MEMORY, OWN_GROUP, GROUPS = Path("/proc/meminfo"), Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")
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
    sizes, architecture, regularizer = problem.sizes, model.architecture, method.regularizer
    activations = architecture.activations(model, sizes, regularizer.passes(method)) + regularizer.memory(method, sizes)
    # Weights, gradients and two moments.
    parameters = (5 if keep_weights else 4) * architecture.parameters(model, sizes)
    judged = max((int(s.val.sum() + s.test.sum()) for s in problem.splits.values()), default=0)
    numbers = parameters + activations + (kept_logits + bool(kept_logits)) * judged * sizes.classes
    # The numbers of validation, test and training nodes, each at most once, and which of them are right.
    return int(numbers * torch.finfo(problem.dtype).bits // 8) + 20 * sizes.nodes


def available_bytes() -> int | None:
    """Free memory of the machine, or of the container if that is less; None where the system does not report it."""
    return min([*_of_machine(), *_of_groups()], default=None)


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
