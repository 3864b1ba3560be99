"""Tensors that a kernel reads by rows, without a copy where that can be."""

import torch
from torch import Tensor


def in_rows(x: Tensor) -> Tensor:
    """x [R, N, W] if it is some columns of a contiguous tensor, with ``x.stride(1)`` from row to row; else a copy."""
    replicas, rows, width = x.shape
    pitch = x.stride(1)
    even = (width == 1 or x.stride(2) == 1) and pitch >= width and (replicas == 1 or x.stride(0) == rows * pitch)
    return x if even else x.clone(memory_format=torch.contiguous_format)
