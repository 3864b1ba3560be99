"""P-reg with cross entropy, propagation included, alone and together with the cross entropy on the training nodes.

The propagated logits are never in memory. The forward pass computes ∂L/∂z and ∂L/∂z' as well, so that the backward pass
is a single product with Âᵀ that adds one to the other and scales both.

``preg_and_cross_entropy`` writes one gradient for all passes. As two functions of two passes, each with its own
gradient, the gradients would be padded with zeros, stacked and added: that moves as many bytes again as the term.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls
# ruff: noqa: N803
# Triton compiles its functions from their source: pointers and tiles have no types, constants are in capitals.

from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from propreg.engine.kernels.layout import AT_ONCE, extended_left, from_slots, member_stride, row_major, slot_width
from propreg.engine.kernels.spmm.product import multiply
from propreg.engine.kernels.spmm.rows import full_entries, longest_segment, packed_sums, row_sums
from propreg.engine.kernels.spmm.segments import WHOLE, pairs, segments
from propreg.engine.kernels.triton_names import LAUNCH, jit, tiles, tl
from propreg.engine.ops.sparse import Matrix

if TYPE_CHECKING:
    from propreg.engine.tasks.node import Targets


def preg(matrix: Matrix, z: Tensor, source: Tensor, weights: Tensor) -> Tensor:
    r"""The twin of ``soft_cross_entropy(z, matrix(source), weights)``: :math:`-\sum_i w_i \sum_c P_{ic} \log Q_{ic}`
    of each replica.

    P is the softmax of ``z`` and Q that of A · ``source``, which may be ``z`` itself.

    Shape:
        z, source [R, N, C], weights [N] or [R, N] → [R].
    """
    other = None if source is z else row_major(source.unsqueeze(1))
    value: Tensor = _Preg.apply(row_major(z.unsqueeze(1)), other, weights.contiguous(), matrix)
    return value


class _Preg(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, z: Tensor, source: Tensor | None, weights: Tensor, matrix: Matrix) -> Tensor:
        need = ctx.needs_input_grad[0], ctx.needs_input_grad[0 if source is None else 1]
        sums, slopes = cross_entropies(matrix, z, z if source is None else source, weights, *need)
        ctx.matrix, ctx.one_pass, ctx.shift, ctx.width = matrix, source is None, slopes.shift, z.shape[3]
        ctx.save_for_backward(slopes.to_z, slopes.to_propagated)
        return sums

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None, None]:
        to_z, to_propagated = ctx.saved_tensors
        columns = slice(ctx.shift, ctx.shift + ctx.width)
        scaled = None if to_z is None else to_z[..., columns] * grad.view(-1, 1, 1)
        if to_propagated is None:
            return None if scaled is None else scaled.unsqueeze(1), None, None, None
        addend = to_z if ctx.one_pass else None
        matrix: Matrix = ctx.matrix
        back = multiply(matrix.pattern, matrix.column_values, to_propagated, True, addend=addend, scale=grad)
        back = back[..., columns].unsqueeze(1)
        if ctx.one_pass:
            return back, None, None, None
        return None if scaled is None else scaled.unsqueeze(1), back, None, None


class Slopes(NamedTuple):
    """The gradients for an incoming gradient of 1, where needed, [groups, N, members · slot].

    The slot of each member holds the classes from ``shift`` on, and zeros elsewhere.
    """

    to_z: Tensor | None
    to_propagated: Tensor | None
    shift: int


def cross_entropies(
    matrix: Matrix, z: Tensor, source: Tensor, weights: Tensor, need_z: bool = True, need_propagated: bool = True
) -> tuple[Tensor, Slopes]:
    """The value of each replica [groups · members], and its gradients.

    ``z`` and ``source`` [groups, members, N, C] are laid out by :func:`.layout.row_major`. Where other columns precede
    them in memory, these are gathered too and ignored, so that rows are read in whole sectors. The last group may have
    members beyond the replicas, whose values are undefined. Weights are [N] or [R, N].
    """
    work = segments(matrix.pattern, False, WHOLE)  # a softmax needs whole rows
    groups, members, rows, width = z.shape
    columns = slot_width(width)
    wide_z, wide_source, shift = extended_left(z, columns), extended_left(source, columns), 0
    if wide_z is not None and wide_source is not None:
        z, source, shift = wide_z, wide_source, columns - width
    lanes = members * columns
    to_z, to_propagated = (z.new_empty(groups, rows, lanes) if need else None for need in (need_z, need_propagated))
    slopes = Slopes(to_z, to_propagated, shift)
    split = work.num_long
    bands = [band(0, split, lanes, long=True), band(split, len(work), lanes, long=False)]
    blocks = [tiles(last - first, at_once) for first, last, at_once, _, _ in bands]
    parts = z.new_empty(groups * members, sum(blocks))
    packed = pairs(work, matrix.values)
    before = 0
    for (first, last, at_once, entries, warps), count in zip(bands, blocks, strict=True):
        if count and groups:
            _cross_entropies[count, groups](
                z, source, matrix.values if packed is None else packed, work.inner, work.row, work.start, work.stop,
                weights, z if to_z is None else to_z, z if to_propagated is None else to_propagated, parts,
                first, last, before, sum(blocks), work.num_rows, work.num_inner,
                groups * members if weights.dim() == 1 else len(weights),
                WIDTH=width, SHIFT=shift, MEMBERS=members, Z_PITCH=z.stride(2), Z_APART=member_stride(z),
                SOURCE_PITCH=source.stride(2), SOURCE_APART=member_stride(source), SEGMENTS=at_once,
                ENTRIES=entries, COLUMNS=columns, SHARED=weights.dim() == 1, PACKED=packed is not None,
                MASKED=width + shift != columns, NEED_Z=to_z is not None, NEED_PROPAGATED=to_propagated is not None,
                num_warps=warps, **LAUNCH,
            )  # fmt: skip
        before += count
    return parts.sum(1), slopes


def band(first: int, last: int, lanes: int, *, long: bool) -> tuple[int, int, int, int, int]:
    """A range of rows, and the shape of a program for them: rows, entries of each at once, warps.

    Each of the few long rows has its own program with many entries at once; several short ones share a program.
    """
    at_a_time = max(AT_ONCE // lanes, 1)
    if lanes < AT_ONCE:
        return (first, last, 1, 8 * at_a_time, 1) if long else (first, last, at_a_time, 8, 1)
    return (first, last, 1, 32, 4) if long else (first, last, 2, 4, 1)


@jit
def _cross_entropies(
    z, source, values, inner, rows, starts, stops, weights, to_z, to_propagated, parts,
    first, last, before, num_blocks, num_rows, num_inner, num_replicas,
    WIDTH: tl.constexpr, SHIFT: tl.constexpr, MEMBERS: tl.constexpr, Z_PITCH: tl.constexpr, Z_APART: tl.constexpr,
    SOURCE_PITCH: tl.constexpr, SOURCE_APART: tl.constexpr, SEGMENTS: tl.constexpr, ENTRIES: tl.constexpr,
    COLUMNS: tl.constexpr, SHARED: tl.constexpr, PACKED: tl.constexpr, MASKED: tl.constexpr, NEED_Z: tl.constexpr,
    NEED_PROPAGATED: tl.constexpr,
):  # fmt: skip
    group = tl.program_id(1).to(tl.int64)
    begin = first + tl.program_id(0) * SEGMENTS
    segment = begin + tl.arange(0, SEGMENTS)
    lane = tl.arange(0, MEMBERS * COLUMNS)  # the columns of one member after the other
    member, column = lane // COLUMNS, lane % COLUMNS
    real = segment < last
    start, stop = tl.load(starts + segment, real, other=0), tl.load(stops + segment, real, other=0)
    row = tl.load(rows + segment, real, other=0)
    longest = longest_segment(starts, stops, begin, last)
    source += group * num_inner * SOURCE_PITCH
    wanted = column < SHIFT + WIDTH
    offsets = member * SOURCE_APART + column
    if PACKED:
        full = full_entries(starts, stops, begin, last, SEGMENTS, ENTRIES)
        propagated = packed_sums(
            source, offsets, wanted, values, start, stop, full, longest, SOURCE_PITCH, ENTRIES, MASKED
        )
    else:
        propagated = row_sums(
            source, offsets, wanted, values, inner, inner, start, stop, longest, 0, 0, 0, SOURCE_PITCH, ENTRIES, False
        )
    number = group * num_rows + row[:, None]
    mask = real[:, None] & (wanted & (column >= SHIFT))[None, :]
    mine = tl.load(z + number * Z_PITCH + (member * Z_APART + column)[None, :], mask, other=0.0)
    log_q, q = _log_softmax(tl.reshape(propagated, [SEGMENTS, MEMBERS, COLUMNS]), SHIFT, WIDTH)
    _, p = _log_softmax(tl.reshape(mine, [SEGMENTS, MEMBERS, COLUMNS]), SHIFT, WIDTH)
    each = -tl.sum(p * log_q, 2)
    replica = group * MEMBERS + tl.arange(0, MEMBERS)
    if SHARED:
        weight = tl.load(weights + row, real, other=0.0)[:, None]
    else:
        known = real[:, None] & (replica < num_replicas)[None, :]
        weight = tl.load(weights + replica[None, :] * num_rows + row[:, None], known, other=0.0)
    total = tl.sum(tl.where(real[:, None], each * weight, 0.0), 0)
    tl.store(parts + replica * num_blocks + before + tl.program_id(0), total)
    place = number * (MEMBERS * COLUMNS) + lane[None, :]
    if NEED_Z:
        slope = -p * (log_q + each[:, :, None]) * weight[:, :, None]
        tl.store(to_z + place, tl.reshape(slope, [SEGMENTS, MEMBERS * COLUMNS]), real[:, None])
    if NEED_PROPAGATED:
        slope = (q - p) * weight[:, :, None]
        tl.store(to_propagated + place, tl.reshape(slope, [SEGMENTS, MEMBERS * COLUMNS]), real[:, None])


@jit
def _log_softmax(x, SHIFT: tl.constexpr, WIDTH: tl.constexpr):
    """Log-softmax and softmax over the columns that are classes; 0 in the others."""
    column = tl.arange(0, x.shape[2])
    real = ((column >= SHIFT) & (column < SHIFT + WIDTH))[None, None, :]
    low = x - tl.max(tl.where(real, x, float("-inf")), 2)[:, :, None]
    weight = tl.where(real, tl.exp(low), 0.0)
    total = tl.sum(weight, 2)[:, :, None]
    return tl.where(real, low - tl.log(total), 0.0), weight / total


def preg_and_cross_entropy(
    matrix: Matrix, trained: Tensor, weights: Tensor, targets: "Targets"
) -> tuple[Tensor, Tensor]:
    """The twin of ``cross_entropy(z, targets)`` and ``soft_cross_entropy(z, matrix(source), weights)``.

    Args:
        matrix: Â.
        trained: The logits z of one training pass, which are also the source, or of two passes: z, then the source.
            Not copied if their layout is that of :func:`.layout.row_major`.
        weights: How much each node counts for P-reg.
        targets: The training nodes.

    Shape:
        trained [R, N, passes, C] or in groups [groups, members, N, passes, C], weights [N] or [R, N] → [R], [R].
    """
    if trained.dim() == 4:
        trained = trained.unsqueeze(1)
    entropy, term = _PregAndCrossEntropy.apply(trained, weights.contiguous(), targets, matrix)
    return entropy, term


class _PregAndCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, trained: Tensor, weights: Tensor, targets: "Targets", matrix: Matrix
    ) -> tuple[Tensor, Tensor]:
        z, source = row_major(trained[..., 0, :]), row_major(trained[..., -1, :])
        term, slopes = cross_entropies(matrix, z, source, weights)
        replicas, (groups, members) = len(targets.nodes), z.shape[:2]
        nodes = _in_groups(targets.nodes, groups, members).unsqueeze(3).expand(-1, -1, -1, z.shape[3])
        entropy, slope = targets.entropy_and_slopes(z.gather(2, nodes).flatten(0, 1)[:replicas])
        ctx.save_for_backward(slopes.to_z, slopes.to_propagated, slope, nodes)
        ctx.matrix, ctx.passes, ctx.shift = matrix, trained.shape[3], slopes.shift
        return entropy, term[:replicas]

    @staticmethod
    def backward(ctx: Any, by_entropy: Tensor, by_term: Tensor) -> tuple[Tensor, None, None, None]:
        to_z, to_propagated, slope, nodes = ctx.saved_tensors
        pattern, values = ctx.matrix.pattern, ctx.matrix.column_values
        groups, rows, length = to_z.shape
        members, width = nodes.shape[1], nodes.shape[3]
        scale = _in_groups(by_term.unsqueeze(1), groups, members).expand(-1, -1, length // members).flatten(1)
        grad = to_z.new_empty(groups, rows, ctx.passes, length)
        multiply(
            pattern, values, to_propagated, True, addend=to_z, separate=ctx.passes > 1, scale=scale,
            into=grad[:, :, -1], frequent=False,
        )  # fmt: skip
        grad = from_slots(grad, members, ctx.shift, width)
        # A node that pads a short row of targets has slope 0, so duplicates do no harm.
        grad[..., 0, :].scatter_add_(2, nodes, _in_groups(slope * by_entropy.view(-1, 1, 1), groups, members))
        return grad, None, None, None


def _in_groups(x: Tensor, groups: int, members: int) -> Tensor:
    """x [R, …] as [groups, members, …], padded with zeros in the last group."""
    missing = groups * members - len(x)
    filled = pad(x, (0, 0) * (x.dim() - 1) + (0, missing)) if missing else x
    return filled.view(groups, members, *x.shape[1:])
