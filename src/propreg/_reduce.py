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


def graphs_of(batch: Tensor | None, z: Tensor, reduction: str, validate: bool | None) -> Tensor | None:
    """The number of each node's graph, int64 [N]."""
    if batch is None:
        return None
    if not isinstance(batch, Tensor) or batch.shape != z.shape[:1] or batch.dtype != torch.int64:
        got = f"{batch.dtype} {tuple(batch.shape)}" if isinstance(batch, Tensor) else f"a {type(batch).__name__}"
        raise ValueError(f"batch must be PyG's batch vector, int64 with shape ({z.shape[0]},), got {got}.")
    if reduction != "mean":
        raise ValueError(
            f"batch takes a mean per graph and cannot be combined with reduction={reduction!r}: use reduction='mean'."
        )
    _errors.same_device("z", z, "batch", batch)
    if _errors.values_are_checked(validate, batch):
        low, high = (int(v) for v in torch.aminmax(batch))
        if low < 0 or high >= z.shape[0]:
            raise ValueError(
                f"batch has the graph number {low if low < 0 else high}, but {z.shape[0]} nodes are in at most as many "
                "graphs: number them from 0."
            )
    return batch


def reduced(value: Tensor, mask: Tensor | None, reduction: str, batch: Tensor | None = None) -> Tensor:
    """The mean per counted node, the sum, or the values with 0 where a node does not count; 0 if none does.

    With a batch vector, the mean of the graphs' means: sizes are those of z, so that no shape depends on a value.
    """
    if batch is not None:
        ones = torch.ones_like(value) if mask is None else mask.to(value.dtype)
        sizes = torch.zeros_like(value).index_add(0, batch, ones)
        weight = ones / sizes.clamp(min=1).index_select(0, batch) / (sizes > 0).sum().clamp(min=1)
        return (torch.where(weight > 0, value, torch.zeros_like(value)) * weight).sum()
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
