"""P-reg with cross entropy, propagation included: the twin of ``soft_cross_entropy(z, matrix(source), weights)``.

The propagated logits never reach memory. What the backward pass needs is ready after the forward pass, ∂L/∂z and
∂L/∂z', so that it is one product with Âᵀ, which adds the one to the other and scales both.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls
# ruff: noqa: N803
# Triton compiles its functions from their source: pointers and tiles have no types, constants are in capitals.

from typing import Any, NamedTuple

import torch
from torch import Tensor

from propreg.engine.kernels._rows import full_of, longest_of, packed_sums, row_sums
from propreg.engine.kernels._triton import LAUNCH, jit, tiles, tl
from propreg.engine.kernels.pitch import AT_ONCE, apart, in_rows, slot_for, with_columns_before
from propreg.engine.kernels.segments import WHOLE, pairs, segments
from propreg.engine.kernels.spmm import multiply
from propreg.engine.sparse import Matrix


def agreement(matrix: Matrix, z: Tensor, source: Tensor, weights: Tensor) -> Tensor:
    r"""The weighted cross entropy :math:`-\sum_i w_i \sum_c P_{ic} \log Q_{ic}` of each replica.

    P is the softmax of ``z`` and Q that of A · ``source``, which may be ``z`` itself.

    Shape:
        z, source [R, N, C], weights [N] or [R, N] → [R].
    """
    other = None if source is z else in_rows(source.unsqueeze(1))
    value: Tensor = _Agreement.apply(in_rows(z.unsqueeze(1)), other, weights.contiguous(), matrix)
    return value


class _Agreement(torch.autograd.Function):
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
        back = multiply(matrix.pattern, matrix.values_across, to_propagated, True, addend=addend, scale=grad)
        back = back[..., columns].unsqueeze(1)
        if ctx.one_pass:
            return back, None, None, None
        return None if scaled is None else scaled.unsqueeze(1), back, None, None


class Slopes(NamedTuple):
    """The gradients at 1 where they are wanted, [groups, N, members · slot].

    In the slot of each member are zeros beside the classes, which begin at shift.
    """

    to_z: Tensor | None
    to_propagated: Tensor | None
    shift: int


def cross_entropies(
    matrix: Matrix, z: Tensor, source: Tensor, weights: Tensor, need_z: bool = True, need_propagated: bool = True
) -> tuple[Tensor, Slopes]:
    """The value of each replica [groups · members], and its gradients.

    ``z`` and ``source`` [groups, members, N, C] are as :func:`.pitch.in_rows` has them. Where other columns lie before
    them, these are gathered too, and come to nothing: rows are then read in whole pieces. The last
    group may have members that are no replicas, for which something comes too. Weights are [N] or [R, N].
    """
    work = segments(matrix.pattern, False, WHOLE)  # a softmax needs whole rows
    groups, members, rows, width = z.shape
    columns = slot_for(width)
    wide_z, wide_source, shift = with_columns_before(z, columns), with_columns_before(source, columns), 0
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
            _agree[count, groups](
                z, source, matrix.values if packed is None else packed, work.inner, work.row, work.start, work.stop,
                weights, z if to_z is None else to_z, z if to_propagated is None else to_propagated, parts,
                first, last, before, sum(blocks), work.num_rows, work.num_inner,
                groups * members if weights.dim() == 1 else len(weights),
                WIDTH=width, SHIFT=shift, MEMBERS=members, Z_PITCH=z.stride(2), Z_APART=apart(z),
                SOURCE_PITCH=source.stride(2), SOURCE_APART=apart(source), SEGMENTS=at_once,
                ENTRIES=entries, COLUMNS=columns, SHARED=weights.dim() == 1, PACKED=packed is not None,
                MASKED=width + shift != columns, NEED_Z=to_z is not None, NEED_PROPAGATED=to_propagated is not None,
                num_warps=warps, **LAUNCH,
            )  # fmt: skip
        before += count
    return parts.sum(1), slopes


def band(first: int, last: int, lanes: int, *, long: bool) -> tuple[int, int, int, int, int]:
    """Some rows of the work, and how a program does them: rows, entries of each at once, warps.

    The few long rows get a program each, of many entries at once; the others go several to a program.
    """
    at_a_time = max(AT_ONCE // lanes, 1)
    if lanes < AT_ONCE:
        return (first, last, 1, 8 * at_a_time, 1) if long else (first, last, at_a_time, 8, 1)
    return (first, last, 1, 32, 4) if long else (first, last, 2, 4, 1)


@jit
def _agree(
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
    longest = longest_of(starts, stops, begin, last)
    source += group * num_inner * SOURCE_PITCH
    wanted = column < SHIFT + WIDTH
    offsets = member * SOURCE_APART + column
    if PACKED:
        full = full_of(starts, stops, begin, last, SEGMENTS, ENTRIES)
        propagated = packed_sums(
            source, offsets, wanted, values, start, stop, full, longest, SOURCE_PITCH, ENTRIES, MASKED
        )
    else:
        propagated = row_sums(
            source, offsets, wanted, values, inner, inner, start, stop, longest, 0, 0, 0, SOURCE_PITCH, ENTRIES, False
        )
    number = group * num_rows + row[:, None]
    there = real[:, None] & (wanted & (column >= SHIFT))[None, :]
    mine = tl.load(z + number * Z_PITCH + (member * Z_APART + column)[None, :], there, other=0.0)
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
    """Log-softmax and softmax of the columns that are classes; both are 0 in the others."""
    column = tl.arange(0, x.shape[2])
    real = ((column >= SHIFT) & (column < SHIFT + WIDTH))[None, None, :]
    low = x - tl.max(tl.where(real, x, float("-inf")), 2)[:, :, None]
    weight = tl.where(real, tl.exp(low), 0.0)
    total = tl.sum(weight, 2)[:, :, None]
    return tl.where(real, low - tl.log(total), 0.0), weight / total
