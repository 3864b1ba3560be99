"""Graph attention without messages: the twin of the scores and :func:`propreg.engine.ops.attention.attend`.

Coefficients are recomputed forward and backward from one number per node and head (as in flash attention); heads stay
in the layout of the linear map, [R, N, heads · width].
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from propreg.engine.kernels.attention.kernels import (
    edge_weights,
    node_scores,
    row_gradients,
    row_totals,
    score_gradients,
    weighted_sums,
)
from propreg.engine.kernels.spmm.product import SHORT, add_parts
from propreg.engine.kernels.spmm.segments import WHOLE, Segments, segments
from propreg.engine.kernels.triton_names import LAUNCH, power_of_two, tiles
from propreg.engine.ops.attention import SLOPE
from propreg.engine.ops.dropout import Masks
from propreg.engine.ops.sparse import Pattern

EDGES = 256  # coefficients that a program computes at once


class Shape(NamedTuple):
    """The shape of a program: heads and columns of a tile, segments and entries of each at once."""

    group: int
    columns: int
    segments: int
    entries: int


def shape_for(heads: int, width: int, mean: float = 0.0) -> Shape:
    """All heads of a few edges side by side; ``mean`` is the mean number of entries of a segment.

    Measured on an H200, per replica and pass over Physics: 46 µs (49 with two entries at once), over Computers 32.
    """
    columns = power_of_two(width)
    group = min(power_of_two(heads), max(128 // columns, 1))
    if group * columns > 32:
        return Shape(group, columns, *((4, 1) if mean < SHORT else (2, 2)))
    return Shape(group, columns, segments=8, entries=4)


def attention(pattern: Pattern, h: Tensor, source: Tensor, target: Tensor, masks: Masks | None) -> Tensor:
    """Average h over neighbors with the softmax of leaky(source · h_j + target · h_i) over the edges j → i.

    Args:
        pattern: An entry (i, j) for each edge j → i.
        h: The input of the heads, one after the other.
        source, target: The attention vectors.
        masks: Drop coefficients, indexed as in the twin: head by head, in the order of rows.

    Shape:
        h [R, N, heads · D], source and target [R, heads, D] → [R, N, heads, D].
    """
    h, source, target = h.contiguous(), source.contiguous(), target.contiguous()
    if not (torch.is_grad_enabled() and any(t.requires_grad for t in (h, source, target))):
        return _forward(h, source, target, pattern, masks, False)[0]
    out: Tensor = _Attention.apply(h, source, target, pattern, masks)  # type: ignore[no-untyped-call]
    return out


def _forward(
    h: Tensor, source: Tensor, target: Tensor, pattern: Pattern, masks: Masks | None, need: bool
) -> tuple[Tensor, ...]:
    """The output, and the tensors that the backward pass needs."""
    by_source, by_target = _node_scores(h, source, target)
    logs, shares = _row_totals(pattern, by_source, by_target)
    work = segments(pattern, False)
    weights, inverses = _edge_weights(work, by_target, by_source, (logs, shares), None, masks)
    out, up = _weighted_sums(work, h, weights, need, inverses)
    return out, up, by_source, by_target, logs, shares


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, h: Tensor, source: Tensor, target: Tensor, pattern: Pattern, masks: Masks | None) -> Tensor:
        out, *others = _forward(h, source, target, pattern, masks, True)
        ctx.pattern, ctx.masks = pattern, masks
        ctx.save_for_backward(h, source, target, out, *others)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None]:
        h, source, target, out, up, by_source, by_target, logs, shares = ctx.saved_tensors
        grad = grad.contiguous()
        deltas, to_target = torch.empty_like(logs), torch.empty_like(logs)
        width, columns = out.shape[3], power_of_two(out.shape[3])
        rows = max(2048 // columns, 1)
        row_gradients[(tiles(logs.numel(), rows),)](
            grad, out, up, shares, deltas, to_target, logs.numel(),
            WIDTH=width, COLUMNS=columns, ROWS=rows, SLOPE=SLOPE, num_warps=4, **LAUNCH,
        )  # fmt: skip
        work = segments(ctx.pattern, True)
        weights, to_source = _edge_weights(work, by_source, by_target, (logs, shares), deltas, ctx.masks)
        to_h, up = (t.view_as(h) for t in _weighted_sums(work, grad.flatten(2), weights, True))
        return to_h, *_score_gradients(h, source, target, to_source, to_target, to_h, up), None, None


def _node_scores(h: Tensor, source: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    (replicas, nodes, _), (_, heads, width) = h.shape, source.shape
    by_source, by_target = h.new_empty(replicas, nodes, heads), h.new_empty(replicas, nodes, heads)
    shape = shape_for(heads, width)
    rows = max(2048 // (shape.group * shape.columns), 1)
    node_scores[tiles(nodes, rows), tiles(heads, shape.group), replicas](
        h, source, target, by_source, by_target, nodes,
        HEADS=heads, WIDTH=width, GROUP=shape.group, COLUMNS=shape.columns, ROWS=rows, num_warps=4, **LAUNCH,
    )  # fmt: skip
    return by_source, by_target


def _row_totals(pattern: Pattern, by_source: Tensor, by_target: Tensor) -> tuple[Tensor, Tensor]:
    """Tensors for the softmax's log and share of every row, computed here for the rows that are cut elsewhere."""
    work = segments(pattern, False, WHOLE)
    replicas, _, heads = by_source.shape
    logs, shares = torch.empty_like(by_target), torch.empty_like(by_target)
    if work.num_cut:  # each has its own program with many entries at once
        row_totals[work.num_cut, replicas](
            by_source, by_target, work.inner, work.row, work.start, work.stop, logs, shares,
            0, work.num_cut, work.num_rows, work.num_inner,
            HEADS=heads, PADDED=power_of_two(heads), SEGMENTS=1, ENTRIES=64, SLOPE=SLOPE, num_warps=1, **LAUNCH,
        )  # fmt: skip
    return logs, shares


def _edge_weights(
    work: Segments,
    own: Tensor,
    others: Tensor,
    softmax: tuple[Tensor, Tensor],
    deltas: Tensor | None,
    masks: Masks | None,
) -> tuple[Tensor, Tensor]:
    """The coefficients [R, nnz, heads], and the factors of their sums over whole rows.

    With ``deltas`` the final coefficients along columns, and the part of a source's gradient that needs no gather.
    """
    replicas, _, heads = own.shape
    # The three numbers of a single head are in three sectors of memory; interleaved they are in one.
    stride = 4 if deltas is not None and heads == 1 else 1
    if deltas is not None and stride > 1:
        beside = torch.stack((others, softmax[0], deltas, deltas), -1)
        others, softmax, deltas = beside[..., 0], (beside[..., 1], softmax[1]), beside[..., 2]
    weights = own.new_empty(replicas, work.nnz, heads)
    totals, parts = torch.empty_like(own), own.new_empty(replicas, work.num_parts, heads)
    padded = power_of_two(heads)
    at_once = max(EDGES // padded // 8, 1)
    edge_weights[tiles(len(work), at_once), replicas](
        own, others, *softmax, totals, own if deltas is None else deltas, work.inner, work.place, work.row, work.owner,
        work.start, work.stop, weights, totals, parts, *_mask_tensors(masks, own),
        len(work), work.num_rows, work.num_inner, work.nnz, work.num_parts,
        HEADS=heads, PADDED=padded, STRIDE=stride, SEGMENTS=at_once, ENTRIES=8, SLOPE=SLOPE, DROP=masks is not None,
        ACROSS=deltas is not None, num_warps=1, **LAUNCH,
    )  # fmt: skip
    if deltas is not None:
        add_parts(work, parts, totals)
    return weights, totals


def _weighted_sums(
    work: Segments, x: Tensor, weights: Tensor, need: bool, inverses: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """The weighted sums of x [R, M, heads · D], and their part with positive scores: [R, N, heads, D] each."""
    replicas, heads = len(x), weights.shape[2]
    width = x.shape[2] // heads
    out = x.new_empty(2 if need else 1, replicas, work.num_rows, heads * width)
    parts = x.new_empty(len(out), replicas, work.num_parts, heads * width)
    shape = shape_for(heads, width, work.nnz / max(len(work), 1))
    weighted_sums[tiles(len(work), shape.segments), tiles(heads, shape.group), replicas](
        x, weights, x if inverses is None else inverses, work.inner, work.row, work.start, work.stop,
        out[0], parts[0], out[-1], parts[-1], len(work), work.num_rows, work.num_inner, work.nnz, work.num_parts,
        HEADS=heads, WIDTH=width, GROUP=shape.group, COLUMNS=shape.columns, SEGMENTS=shape.segments,
        ENTRIES=shape.entries, NEED=need, ACROSS=inverses is None, num_warps=1, **LAUNCH,
    )  # fmt: skip
    for sums, total in zip(parts, out, strict=True):
        add_parts(work, sums, total)
    both = out.view(len(out), replicas, work.num_rows, heads, width)
    return both[0], both[-1]


def _score_gradients(
    h: Tensor, source: Tensor, target: Tensor, to_source: Tensor, to_target: Tensor, to_h: Tensor, up: Tensor
) -> tuple[Tensor, Tensor]:
    """The gradients to the attention vectors; their contribution to the gradient of h is added to ``to_h``."""
    replicas, nodes, _ = h.shape
    heads, width = source.shape[1:]
    shape = shape_for(heads, width)
    rows = max(1024 // (shape.group * shape.columns), 1)
    steps = 8
    chunks = tiles(nodes, rows * steps)
    parts = h.new_empty(2, replicas, chunks, heads, width)
    score_gradients[chunks, tiles(heads, shape.group), replicas](
        h, source, target, to_source, to_target, to_h, up, parts[0], parts[1], nodes, chunks,
        HEADS=heads, WIDTH=width, GROUP=shape.group, COLUMNS=shape.columns, ROWS=rows, STEPS=steps, SLOPE=SLOPE,
        num_warps=4, **LAUNCH,
    )  # fmt: skip
    by_source, by_target = parts.sum(2)
    return by_source, by_target


def _mask_tensors(masks: Masks | None, unused: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return (unused, unused, unused) if masks is None else (masks.keys, masks.least, masks.scale)
