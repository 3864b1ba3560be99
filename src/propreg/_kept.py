"""Graphs that a module keeps: a propagation is reused while the very same tensors come again, unchanged."""

import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from propreg import _errors
from propreg._operator import Operator

KEPT = 4
"""Graphs that a module keeps."""


class Kept(list["KeptGraph"]):
    """The last few graphs; they are no part of ``state_dict``, pickles and copies."""

    def find(self, sizes: object, tensors: tuple[Any, ...], make: Callable[[], Operator]) -> Operator:
        """The graph of these tensors and sizes, made and kept if it is a new one."""
        keep = _errors.plain()
        for kept in self if keep else ():
            if kept.matches(sizes, tensors):
                return kept.operator
        made = make()
        if keep and _errors.lasting() and not made.differentiable:
            self[:] = [KeptGraph(made, sizes, tensors), *self[: KEPT - 1]]
        return made


class KeptGraph:
    """A graph, and the check that a graph is still the same: same objects, same version."""

    def __init__(self, operator: Operator, sizes: object, tensors: tuple[Any, ...]) -> None:
        self.operator, self.sizes = operator, sizes
        self._seen = [None if t is None else (weakref.ref(t), _version(t)) for t in tensors]

    def matches(self, sizes: object, tensors: tuple[Any, ...]) -> bool:
        """Whether a graph of these tensors is this one."""
        return sizes == self.sizes and all(
            t is None if seen is None else (seen[0]() is t and seen[1] is not None and seen[1] == _version(t))
            for seen, t in zip(self._seen, tensors, strict=True)
        )


def _version(tensor: Tensor | None) -> tuple[Any, ...] | None:
    if tensor is None:
        return None
    held = tensor.as_tensor() if hasattr(tensor, "as_tensor") else tensor  # EdgeIndex wraps a tensor with its version
    if tensor.is_inference() or held.is_inference():
        return None  # an inference tensor counts no versions: a change would go unnoticed
    address = held.data_ptr() if held.layout == torch.strided else None  # x.data = y counts no version
    state = (tensor._version, held._version, address)
    return (*state, tensor.shape, tensor.dtype, tensor.device, tensor.requires_grad)
