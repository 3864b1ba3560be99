"""Masks and reductions: from one value per node to the term."""

import torch
from torch import Tensor

from propreg import _errors


def selected(mask: Tensor | None, z: Tensor, validate: bool | None) -> Tensor | None:
    """The mask as bool [N], from bool [N] or unique int64 node numbers."""
    if mask is None:
        return None
    nodes = z.shape[0]
    if not isinstance(mask, Tensor):
        raise TypeError(f"mask must be a bool or int64 tensor, got a {type(mask).__name__}.")
    _errors.same_device("z", z, "mask", mask)
    checked = _errors.values_are_checked(validate, mask)
    if mask.dtype == torch.bool:
        if mask.shape != (nodes,):
            raise ValueError(f"mask must have one entry per row of z, shape ({nodes},), got {tuple(mask.shape)}.")
        return mask
    if mask.dtype != torch.int64:
        raise TypeError(f"mask must be bool or int64, but its dtype is {mask.dtype}.")
    if mask.dim() != 1:
        raise ValueError(f"mask of node numbers must have one dimension, but its shape is {tuple(mask.shape)}.")
    if checked and mask.shape[0]:
        _check_numbers(mask, nodes)
    return torch.zeros(nodes, dtype=torch.bool, device=z.device).index_fill(0, mask, True)


def reduced(value: Tensor, mask: Tensor | None, reduction: str) -> Tensor:
    """The mean per counted node, the sum, or the values with 0 where a node does not count; 0 if none does."""
    if mask is not None:
        value = torch.where(mask, value, torch.zeros_like(value))
    if reduction == "none":
        return value
    if reduction == "sum":
        return value.sum()
    return value.mean() if mask is None else value.sum() / mask.sum().clamp(min=1)


def _check_numbers(mask: Tensor, nodes: int) -> None:
    low, high = (int(v) for v in torch.aminmax(mask))
    if low < 0 or high >= nodes:
        raise ValueError(
            f"mask refers to node {low if low < 0 else high} but z has {nodes} rows: "
            f"node numbers go from 0 to {nodes - 1}."
        )
    if bool((mask.sort().values.diff() == 0).any()):
        raise ValueError(
            "mask names a node twice: pass unique node numbers, for example mask.unique(); "
            "a mask of zeros and ones is mask.bool()."
        )
