"""How many predictions are correct: the twin of counting ``logits.argmax(-1) == y``."""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls
# ruff: noqa: N803
# Triton compiles its functions from their source: pointers and tiles have no types, constants are in capitals.

import torch
from torch import Tensor

from propreg.engine.kernels.layout import member_stride, row_major
from propreg.engine.kernels.triton_names import LAUNCH, jit, power_of_two, tiles, tl


def count_correct(logits: Tensor, y: Tensor, *judged: tuple[Tensor, Tensor]) -> Tensor:
    """How many of some nodes have the class as their largest logit, for each choice of nodes.

    Of equal logits the first counts, and NaN is larger than any number.

    Args:
        logits: Not copied if their layout is that of :func:`.layout.row_major`.
        y: The classes.
        judged: Nodes of each replica, and which of them are real.

    Shape:
        logits [R, N, C] or in groups [groups, members, N, C] with R ≤ groups · members, y [N], judged [R, T] each
        → int64 [choices, R].
    """
    logits = row_major(logits if logits.dim() == 4 else logits.unsqueeze(1))
    _, members, nodes, classes = logits.shape
    columns = power_of_two(classes, least=2)
    rows = max(1024 // columns, 1)
    out = torch.zeros(len(judged), len(judged[0][0]), dtype=torch.int64, device=logits.device)
    for counts, (chosen, real) in zip(out, judged, strict=True):
        replicas, number = chosen.shape
        if chosen.numel():
            _count_correct[tiles(number, rows), replicas](
                logits, y, chosen.contiguous(), real.contiguous().view(torch.uint8), counts, nodes, number,
                MEMBERS=members, PITCH=logits.stride(2), APART=member_stride(logits), WIDTH=classes,
                COLUMNS=columns, ROWS=rows, num_warps=4, **LAUNCH,
            )  # fmt: skip
    return out


@jit
def _count_correct(
    logits, y, nodes, real, counts, num_rows, num_nodes, MEMBERS: tl.constexpr, PITCH: tl.constexpr,
    APART: tl.constexpr, WIDTH: tl.constexpr, COLUMNS: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    replica = tl.program_id(1).to(tl.int64)
    logits += replica // MEMBERS * num_rows * PITCH + replica % MEMBERS * APART
    place = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    chosen = tl.load(real + replica * num_nodes + place, place < num_nodes, other=0) != 0
    row = tl.load(nodes + replica * num_nodes + place, chosen, other=0)
    column = tl.arange(0, COLUMNS)[None, :]
    tile = tl.load(logits + row[:, None] * PITCH + column, chosen[:, None] & (column < WIDTH), other=float("-inf"))
    wanted = tl.load(y + row, chosen, other=-1)
    known = chosen & (wanted >= 0) & (wanted < WIDTH)
    mine = tl.load(logits + row * PITCH + wanted, known, other=float("-inf"))[:, None]
    # Another logit wins if it is larger, or equal and before it; NaN is larger than any number.
    larger = (tile > mine) | ((tile != tile) & (mine == mine))  # noqa: PLR0124
    as_large = (tile == mine) | ((tile != tile) & (mine != mine))  # noqa: PLR0124
    beaten = larger | (as_large & (column < wanted[:, None]))
    best = tl.max(beaten.to(tl.int32), 1) == 0
    tl.atomic_add(counts + replica, tl.sum((best & known).to(tl.int64), 0))  # of integers: the order does not matter
