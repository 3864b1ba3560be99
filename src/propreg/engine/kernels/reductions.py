"""Sums of a gradient over the nodes, which bias vectors receive.

``column_sums``: the kernel that writes a gradient also computes the sums of its columns, and attaches them to it for
the bias: a separate pass over the gradient takes 2 µs of an epoch of Physics.

``slot_sums``: each pass is summed separately and in a fixed order, whatever stands beside it. A second pass whose
gradient is 0 then changes no bit, and a strength of 0 equals the plain run.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls
# ruff: noqa: N803
# Triton compiles its functions from their source: pointers and tiles have no types, constants are in capitals.

from torch import Tensor

from propreg.engine.kernels.triton_names import LAUNCH, jit, power_of_two, tl


def attach_column_sums(grad: Tensor, sums: Tensor) -> Tensor:
    """Attach its column sums to a gradient, and return it."""
    grad._column_sums = grad._version, sums  # type: ignore[attr-defined]  # it lives as long as the gradient does
    return grad


def column_sums(grad: Tensor) -> Tensor:
    """The attached sums, if the gradient has not changed since; else computed here."""
    known: tuple[int, Tensor] | None = getattr(grad, "_column_sums", None)
    return grad.sum(1) if known is None or known[0] != grad._version else known[1]


AT_ONCE = 8192  # numbers that a program adds at once: few steps even for one replica of a large graph


def slot_sums(grad: Tensor, slot: int, shift: int, width: int, members: int, replicas: int) -> Tensor:
    """The sums of all passes over the nodes.

    Args:
        grad: The gradients of the passes, each in the slots of a row, one slot for each member of a group.
        slot: The length of a slot.
        shift: The offset of the classes in it.
        width: The number of classes.
        members: The number of replicas in a group.
        replicas: The number of replicas.

    Shape:
        grad [groups, N, passes · members · slot] → [R, width].
    """
    rows, passes = grad.shape[1], grad.shape[2] // (members * slot)
    sums = grad.new_empty(replicas, passes, width)
    columns = power_of_two(width)
    at_once = max(AT_ONCE // columns, 1)
    if sums.numel():
        _sums[passes, replicas](
            grad, sums, rows, passes,
            MEMBERS=members, SLOT=slot, SHIFT=shift, WIDTH=width, COLUMNS=columns, ROWS=at_once, num_warps=8, **LAUNCH,
        )  # fmt: skip
    return sums.sum(1)


@jit
def _sums(
    grad, sums, num_rows, num_passes,
    MEMBERS: tl.constexpr, SLOT: tl.constexpr, SHIFT: tl.constexpr, WIDTH: tl.constexpr, COLUMNS: tl.constexpr,
    ROWS: tl.constexpr,
):  # fmt: skip
    number, replica = tl.program_id(0), tl.program_id(1).to(tl.int64)
    grad += (replica // MEMBERS * num_rows * num_passes + number) * (MEMBERS * SLOT) + replica % MEMBERS * SLOT + SHIFT
    column = tl.arange(0, COLUMNS)
    row = tl.arange(0, ROWS)
    total = tl.zeros([ROWS, COLUMNS], grad.dtype.element_ty)
    for first in range(0, num_rows, ROWS):
        place = (first + row).to(tl.int64)[:, None] * (num_passes * MEMBERS * SLOT) + column[None, :]
        mask = (first + row < num_rows)[:, None] & (column < WIDTH)[None, :]
        total += tl.load(grad + place, mask, other=0.0)
    tl.store(sums + (replica * num_passes + number) * WIDTH + column, tl.sum(total, 0), column < WIDTH)
