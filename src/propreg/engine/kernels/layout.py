"""The memory layout of logits and their gradients: a gather reads few, whole sectors, and many of them at once.

Memory is read in sectors of 32 bytes. A row of five classes, 20 bytes, lies in one sector or across two; one of fifteen
in two or three. With rows padded to whole sectors, and the columns that are gathered alone at the end of the row, a
gather through the L2 cache moves half as many bytes.

A row of one replica is still short: locating it costs more than reading it. So several replicas form a *group*: their
rows of the same node are adjacent, and a program locates them all at once.
"""

from functools import cache

import torch
from torch import Tensor

from propreg.engine.kernels.triton_names import power_of_two, tiles

SECTOR = 8  # float32 numbers in 32 bytes
AT_ONCE = 64  # numbers of a row that a warp gathers at once
CACHED = 0.4  # share of the L2 cache for a group's logits, so that writes do not evict them
L2 = 60_000_000  # bytes of an H200's L2 cache


def padded_width(width: int) -> int:
    """The length of a row of this many numbers, padded in front to whole sectors."""
    return tiles(width, SECTOR) * SECTOR


def slot_width(width: int) -> int:
    """The length of the slot for the gradient of one pass, padded in front: tiles are powers of two."""
    return power_of_two(width, least=4)


def group_size(replicas: int, nodes: int, pitch: int, slot: int, l2: int = L2) -> int:
    """The number of replicas in a group, for rows of length ``pitch``, gradients in slots and this many bytes of cache.

    Few replicas, like the last of a batch, form no group: their number would need kernels compiled for it.
    """
    members = max(AT_ONCE // slot, 1)
    while members > 1 and 4 * nodes * pitch * members > CACHED * l2:
        members //= 2
    return members if 2 * replicas > members else 1


@cache
def l2_bytes(device: torch.device) -> int:
    """The size of the device's L2 cache; an H200's for the interpreter."""
    return torch.cuda.get_device_properties(device).L2_cache_size if device.type == "cuda" else L2


def row_major(x: Tensor) -> Tensor:
    """x [groups, members, N, W], copied unless its rows are consecutive in memory with all members in each.

    The stride from row to row is ``x.stride(2)``, from member to member :func:`member_stride`.
    """
    groups, members, rows, width = x.shape
    outer, apart, pitch, inner = x.stride()
    inside = width <= pitch if members == 1 else width <= apart and (members - 1) * apart + width <= pitch
    if inside and (width == 1 or inner == 1) and (groups == 1 or outer == rows * pitch):
        return x
    return x.transpose(1, 2).clone(memory_format=torch.contiguous_format).transpose(1, 2)


def member_stride(x: Tensor) -> int:
    """The stride between members of x; 0 for one member, so that kernels do not depend on the number of nodes."""
    return x.stride(1) if x.shape[1] > 1 else 0


def extended_left(x: Tensor, columns: int) -> Tensor | None:
    """x of :func:`row_major` extended to the left by columns that precede it in memory; None if there are too few."""
    more, offset = columns - x.shape[3], x.storage_offset()
    if offset % max(x.stride(2), 1) < more:
        return None
    return x.as_strided((*x.shape[:3], columns), x.stride(), offset - more)


def from_slots(grad: Tensor, members: int, shift: int, width: int) -> Tensor:
    """A view [groups, members, N, passes, C] of gradients stored in slots [groups, N, passes, members · slot]."""
    groups, rows, passes, length = grad.shape
    each = grad.view(groups, rows, passes, members, length // members).permute(0, 3, 1, 2, 4)
    return each[..., shift : shift + width]


def in_slots(grad: Tensor) -> tuple[Tensor, int, int]:
    """The rows [groups, N, passes · members · slot] of a gradient, the slot's length, and the classes' offset in it.

    A view if the gradient comes from :func:`from_slots`, else a copy.
    """
    groups, members, rows, passes, width = grad.shape
    slot = slot_width(width)
    length, shift = passes * members * slot, slot - width
    wanted = (rows * length, slot, length, members * slot, 1)
    held = grad.untyped_storage().nbytes() // grad.element_size()
    if shift and grad.stride() == wanted and grad.storage_offset() == shift and held >= groups * rows * length:
        return grad.as_strided((groups, rows, length), (rows * length, length, 1), 0), slot, shift
    return grad.permute(0, 2, 3, 1, 4).reshape(groups, rows, passes * members * width), width, 0
