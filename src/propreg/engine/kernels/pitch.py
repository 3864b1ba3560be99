"""Where logits and their gradients lie: so that a gather reads few pieces of memory, whole ones, and many at once.

Memory hands out 32 bytes at a time. A row of five classes, 20 bytes, lies in one such piece or across two; of fifteen,
in two to three. With rows filled up to whole pieces, and what is gathered alone at the end of its row, a gather through
the L2 cache moves half as many bytes.

A row of one replica is still short: finding it costs more than reading it. So some replicas are a *group*, whose rows
of the same node stand side by side, and a program finds them all at once.
"""

from functools import cache

import torch
from torch import Tensor

from propreg.engine.kernels._triton import power_of_two, tiles

PIECE = 8  # float32 numbers in 32 bytes
AT_ONCE = 64  # numbers of a row that a warp gathers at once
CACHED = 0.4  # of the L2 cache that a group's logits may fill, so that they stay there beside what is written
L2 = 60_000_000  # bytes, of an H200


def filled_up(width: int) -> int:
    """The length of a row of so many numbers, filled up in front to whole pieces."""
    return tiles(width, PIECE) * PIECE


def slot_for(width: int) -> int:
    """The room for the gradient of one pass, filled up in front too: tiles have no other sizes."""
    return power_of_two(width, least=4)


def members_of(replicas: int, nodes: int, pitch: int, slot: int, l2: int = L2) -> int:
    """How many replicas are a group, for rows of length ``pitch``, gradients in slots and a cache of so many bytes.

    A few replicas, the last of a batch, are no group: not one of their number, for which kernels would be compiled.
    """
    members = max(AT_ONCE // slot, 1)
    while members > 1 and 4 * nodes * pitch * members > CACHED * l2:
        members //= 2
    return members if 2 * replicas > members else 1


@cache
def cache_of(device: torch.device) -> int:
    """The bytes of its L2 cache; an H200's for the interpreter."""
    return torch.cuda.get_device_properties(device).L2_cache_size if device.type == "cuda" else L2


def in_rows(x: Tensor) -> Tensor:
    """x [groups, members, N, W] if its rows lie one after the other with all members in each; else a copy that does.

    From row to row it is ``x.stride(2)``, from member to member :func:`apart`.
    """
    groups, members, rows, width = x.shape
    outer, apart, pitch, inner = x.stride()
    inside = width <= pitch if members == 1 else width <= apart and (members - 1) * apart + width <= pitch
    if inside and (width == 1 or inner == 1) and (groups == 1 or outer == rows * pitch):
        return x
    return x.transpose(1, 2).clone(memory_format=torch.contiguous_format).transpose(1, 2)


def apart(x: Tensor) -> int:
    """How far the members of x lie apart; 0 where there is one, so that kernels know no number of nodes."""
    return x.stride(1) if x.shape[1] > 1 else 0


def with_columns_before(x: Tensor, columns: int) -> Tensor | None:
    """x [groups, members, N, W] of :func:`in_rows` with columns that lie before it, so many in all; None if too few."""
    more, offset = columns - x.shape[3], x.storage_offset()
    if offset % max(x.stride(2), 1) < more:
        return None
    return x.as_strided((*x.shape[:3], columns), x.stride(), offset - more)


def from_slots(grad: Tensor, members: int, shift: int, width: int) -> Tensor:
    """The gradient [groups, members, N, passes, C] that lies in slots [groups, N, passes, members · slot]."""
    groups, rows, passes, length = grad.shape
    each = grad.view(groups, rows, passes, members, length // members).permute(0, 3, 1, 2, 4)
    return each[..., shift : shift + width]


def in_slots(grad: Tensor) -> tuple[Tensor, int, int]:
    """The rows [groups, N, passes · members · slot] of a gradient, the slot, and where in it the classes begin.

    Without a copy if it comes from :func:`from_slots`.
    """
    groups, members, rows, passes, width = grad.shape
    slot = slot_for(width)
    length, shift = passes * members * slot, slot - width
    wanted = (rows * length, slot, length, members * slot, 1)
    held = grad.untyped_storage().nbytes() // grad.element_size()
    if shift and grad.stride() == wanted and grad.storage_offset() == shift and held >= groups * rows * length:
        return grad.as_strided((groups, rows, length), (rows * length, length, 1), 0), slot, shift
    return grad.permute(0, 2, 3, 1, 4).reshape(groups, rows, passes * members * width), width, 0
