"""The engine's Triton kernels: each the twin of a plain torch function, used on a GPU where Triton is installed.

Nothing here is imported before it is needed: Triton takes a second to load, and a CPU never needs it. With
``TRITON_INTERPRET=1`` the kernels run on CPU tensors, one NumPy operation at a time: that is how they are tested.
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
    """Whether kernels can take these tensors: float32 or float64 (or integers), on the GPU that is current.

    None stands for an optional tensor that is not there.

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
    """Plain torch only, whatever the device: to compare the two."""
    global _off  # noqa: PLW0603  (the one switch there is; engine code asks :func:`usable` in many places)
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
    """Whether Triton is there."""
    return importlib.util.find_spec("triton") is not None


@cache
def interpreted() -> bool:
    """Whether kernels run through Triton's interpreter; it has to be said before Triton is imported."""
    return os.environ.get("TRITON_INTERPRET") == "1"
