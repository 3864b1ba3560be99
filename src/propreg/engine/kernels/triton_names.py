"""Triton where it is installed; elsewhere stand-ins with which the kernels' modules import but do not run."""

import inspect
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

__all__ = ["LAUNCH", "jit", "power_of_two", "tiles", "tl"]

try:
    import triton
    import triton.language as tl
except ImportError:
    triton, tl = None, SimpleNamespace(constexpr=int)

# No pipelining through shared memory (these kernels gather), and a·b + c in one rounding whatever Triton's default.
LAUNCH: dict[str, Any] = {"num_stages": 1, "enable_fp_fusion": True}


def jit(kernel: Callable[..., Any]) -> Any:
    """``triton.jit``, or the bare function where there is no Triton.

    Triton recompiles a kernel for arguments that are 1 or multiples of 16. Counts of a graph are exempt: no access
    depends on them, and a second graph would wait for a second compilation.
    """
    if triton is None:
        return kernel
    counts = [name for name in inspect.signature(kernel).parameters if name.startswith("num_") or name in _COUNTS]
    return triton.jit(kernel, do_not_specialize=counts)


_COUNTS = ("nnz", "chunks", "first", "last", "before")


def power_of_two(n: int, least: int = 1) -> int:
    """The next power of two: Triton's tiles have no other sizes."""
    return max(least, 1 << (n - 1).bit_length())


def tiles(size: int, block: int) -> int:
    """The number of blocks that cover ``size``."""
    return -(-size // block)
