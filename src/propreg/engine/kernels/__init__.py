"""The engine's Triton kernels: each the twin of a plain torch function, used on a GPU where Triton is installed.

Modules are imported on first use: Triton takes a second to load, and a CPU never needs it. With ``TRITON_INTERPRET=1``
the kernels run on CPU tensors, one NumPy operation at a time; the tests use that.

``spmm`` holds the sparse products, ``linear`` the dense ones with dropout and the last layer, ``attention`` graph
attention, ``preg`` P-reg with its propagation; the others are single operations and what kernels share.
"""

import contextlib
import importlib.util
import os
from collections.abc import Iterator
from functools import cache

import torch
from torch import Tensor

FLOATS = (torch.float32, torch.float64)


def usable(*tensors: Tensor | None) -> bool:
    """Whether kernels support these tensors: float32, float64 or integers, on the current GPU.

    None stands for an optional tensor that is absent.

    Example:
        >>> usable(torch.zeros(3))
        False
    """
    if _off:
        return False
    given = [t for t in tensors if t is not None]
    return all(_reachable(t) for t in given) and all(t.dtype in FLOATS or not t.is_floating_point() for t in given)


@contextlib.contextmanager
def switched_off() -> Iterator[None]:
    """Use plain torch on every device, to compare the two."""
    global _off  # noqa: PLW0603  (the only switch; engine code calls :func:`usable` in many places)
    before, _off = _off, True
    try:
        yield
    finally:
        _off = before


_off = False


def _reachable(tensor: Tensor) -> bool:
    if tensor.is_cuda:
        return installed() and tensor.get_device() == torch.cuda.current_device()
    return interpreted() and tensor.device.type == "cpu" and installed()


@cache
def installed() -> bool:
    """Whether Triton is installed."""
    return importlib.util.find_spec("triton") is not None


@cache
def interpreted() -> bool:
    """Whether kernels run through Triton's interpreter; the variable must be set before Triton is imported."""
    return os.environ.get("TRITON_INTERPRET") == "1"
