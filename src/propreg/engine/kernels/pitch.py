"""Where the rows of logits and of their gradients lie: so that a gather reads few pieces of memory, and whole ones.

Memory hands out 32 bytes at a time. A row of five classes, 20 bytes, lies in one such piece or across two; of fifteen,
in two to three. With rows filled up to whole pieces, and what is gathered alone at the end of its row, a gather through
the L2 cache moves half as many bytes.
"""

import torch
from torch import Tensor

from propreg.engine.kernels._triton import power_of_two, tiles

PIECE = 8  # float32 numbers in 32 bytes


def filled_up(width: int) -> int:
    """The length of a row of so many numbers, filled up in front to whole pieces."""
    return tiles(width, PIECE) * PIECE


def slot_for(width: int) -> int:
    """The room for the gradient of one pass, filled up in front too: tiles have no other sizes."""
    return power_of_two(width, least=4)


def in_rows(x: Tensor) -> Tensor:
    """x [R, N, W] if it is some columns of a contiguous tensor, with ``x.stride(1)`` from row to row; else a copy."""
    replicas, rows, width = x.shape
    pitch = x.stride(1)
    even = (width == 1 or x.stride(2) == 1) and pitch >= width and (replicas == 1 or x.stride(0) == rows * pitch)
    return x if even else x.clone(memory_format=torch.contiguous_format)


def with_columns_before(x: Tensor, columns: int) -> Tensor | None:
    """x [R, N, W] with those columns of its rows that lie before it, [R, N, columns]; None where there are too few."""
    more, offset = columns - x.shape[2], x.storage_offset()
    if offset % max(x.stride(1), 1) < more:
        return None
    return x.as_strided((*x.shape[:2], columns), x.stride(), offset - more)


def in_slots(grad: Tensor) -> tuple[Tensor, int, int]:
    """The gradient [R, N, passes, C] of logits by rows, [R, N, passes · slot], the slot, and where in it C begins.

    Without a copy if it is contiguous or lies in slots already.
    """
    replicas, rows, passes, width = grad.shape
    slot = slot_for(width)
    length, shift = passes * slot, slot - width
    wanted = (rows * length, length, slot, 1)
    held = grad.untyped_storage().nbytes() // grad.element_size()
    if shift and grad.stride() == wanted and grad.storage_offset() == shift and held >= replicas * rows * length:
        return grad.as_strided((replicas, rows, length), (rows * length, length, 1), 0), slot, shift
    return grad.contiguous().view(replicas, rows, passes * width), width, 0
