"""Which predictions are correct: the twin of ``logits.argmax(-1) == y``."""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls
# ruff: noqa: N803
# Triton compiles its functions from their source: pointers and tiles have no types, constants are in capitals.

import torch
from torch import Tensor

from propreg.engine.kernels.layout import member_stride, row_major
from propreg.engine.kernels.triton_names import LAUNCH, jit, power_of_two, tiles, tl


def is_correct(logits: Tensor, y: Tensor) -> Tensor:
    """Whether the largest logit is the class's; of equal ones the first counts, and NaN is larger than any number.

    Args:
        logits: Not copied if their layout is that of :func:`.layout.row_major`.
        y: The classes.

    Shape:
        logits [R, N, C] or in groups [groups, members, N, C], y [N] → bool [R, N] or [groups · members, N].
    """
    logits = row_major(logits if logits.dim() == 4 else logits.unsqueeze(1))
    groups, members, nodes, classes = logits.shape
    replicas = groups * members
    out = torch.empty(replicas, nodes, dtype=torch.uint8, device=logits.device)
    columns = power_of_two(classes, least=2)
    rows = max(1024 // columns, 1)
    if out.numel():
        _is_correct[tiles(nodes, rows), replicas](
            logits, y, out, nodes,
            MEMBERS=members, PITCH=logits.stride(2), APART=member_stride(logits), WIDTH=classes,
            COLUMNS=columns, ROWS=rows, num_warps=4, **LAUNCH,
        )  # fmt: skip
    return out.view(torch.bool)


@jit
def _is_correct(
    logits, y, out, num_rows, MEMBERS: tl.constexpr, PITCH: tl.constexpr, APART: tl.constexpr, WIDTH: tl.constexpr,
    COLUMNS: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    replica = tl.program_id(1).to(tl.int64)
    logits += replica // MEMBERS * num_rows * PITCH + replica % MEMBERS * APART
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, COLUMNS)[None, :]
    real = row < num_rows
    place = row.to(tl.int64)[:, None] * PITCH + column
    tile = tl.load(logits + place, real[:, None] & (column < WIDTH), other=float("-inf"))
    wanted = tl.load(y + row, real, other=-1)
    known = real & (wanted >= 0) & (wanted < WIDTH)
    mine = tl.load(logits + row.to(tl.int64) * PITCH + wanted, known, other=float("-inf"))[:, None]
    # Another logit wins if it is larger, or equal and before it; NaN is larger than any number.
    larger = (tile > mine) | ((tile != tile) & (mine == mine))  # noqa: PLR0124
    as_large = (tile == mine) | ((tile != tile) & (mine != mine))  # noqa: PLR0124
    beaten = larger | (as_large & (column < wanted[:, None]))
    best = tl.max(beaten.to(tl.int32), 1) == 0
    tl.store(out + replica * num_rows + row, (best & known).to(tl.uint8), real)
