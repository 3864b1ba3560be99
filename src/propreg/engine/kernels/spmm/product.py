"""Sparse products for a batch of replicas, the twin of :meth:`propreg.engine.ops.sparse.Pattern.multiply`.

The cost of a product is gathering rows. A program gathers for a few segments, a slab of columns and one replica or
more: indices are read once for all of them. Programs of the same replicas are launched next to each other, so that the
rows they gather stay in the L2 cache.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls
# ruff: noqa: N803
# Triton compiles its functions from their source: pointers and tiles have no types, constants are in capitals.

from typing import Any, NamedTuple

import torch
from torch import Tensor

from propreg.engine.kernels.dropout import mask_settings
from propreg.engine.kernels.reductions import column_sums
from propreg.engine.kernels.spmm.frequent_columns import FrequentColumns, add_products, find_columns
from propreg.engine.kernels.spmm.rows import full_entries, kept_pairs, longest_segment, packed_sums, row_sums, tree_sum
from propreg.engine.kernels.spmm.segments import Segments, pairs, segments
from propreg.engine.kernels.triton_names import LAUNCH, jit, power_of_two, tiles, tl
from propreg.engine.ops.dropout import Masks
from propreg.engine.ops.sparse import Matrix, Pattern

SHORT, LONG = 24, 80  # entries of a segment, on average
FLAGS = ("BIAS", "RELU", "ADD", "SCALE")


class Tile(NamedTuple):
    """The shape of a program: segments, entries of each at once, columns, warps, replicas."""

    segments: int
    entries: int
    columns: int
    warps: int
    replicas: int = 1


def tile_for(work: Segments, width: int, dropped: bool = False) -> Tile:
    """The tile for a product; ``benchmarks/tile_shapes.py`` measures others."""
    mean = work.nnz / max(len(work), 1)
    if width >= 128 and (dropped or work.num_inner < work.num_rows):
        # X of Physics: 27 µs dropped and 37 whole, against 32 and 39 with tiles of 64 columns.
        return Tile(4, 1, 128, 1) if dropped and mean < LONG else Tile(2, 2, 128, 1)
    columns = min(power_of_two(width, least=4), 64)
    # Measured on an H200, µs per replica and product (Cora / Photo / Physics): wide tiles X 1.0 / – / 20, Â 0.57 / 5.8
    # / 14, Xᵀ 1.4 / 43 / 32. Larger programs, with a slab in L1, take 1.4 to 2.4 times as long. With a queue for each
    # multiprocessor, of which its programs take rows that share columns, Â takes 20 µs and more. The counters of Â of
    # Physics: caches at 73 % of their rate, and warps that wait for them four fifths of the time.
    if columns > 32 and width == columns:
        if work.num_inner < work.num_rows and mean < LONG:
            # A small matrix is in the cache: the indices cost most, and two replicas share them. In programs of four
            # warps X of CS takes 19.3 µs instead of 21.2, of Physics 19.0 instead of 19.3.
            return Tile(8, 2, columns, 4, replicas=2)
        return Tile(4, 2, columns, 1) if mean < SHORT else Tile(2, 4, columns, 1)
    # Four entries at once whatever the width: the logits of one pass have the same bits alone and beside others.
    if columns > 32:
        return Tile(2, 4, columns, 1)
    if columns == 8 and mean >= 8:
        # Two replicas share the indices: Âᵀ of Physics 5.0 µs instead of 6.4, of CS 2.0 instead of 2.2.
        return Tile(8, 4, columns, 1, replicas=2)
    return Tile(16, 4, columns, 1) if columns <= 16 and mean < 8 else Tile(8, 4, columns, 1)


def fixed_order_tile(width: int) -> Tile | None:
    """The tile for logits of several passes or replicas: each row is summed in the same order as for one alone."""
    return Tile(2, 4, 64, 1) if width > 32 else None


def multiply(
    pattern: Pattern,
    values: Tensor,
    x: Tensor,
    transposed: bool,
    *,
    bias: Tensor | None = None,
    relu: bool = False,
    addend: Tensor | None = None,
    separate: bool = False,
    scale: Tensor | None = None,
    masks: Masks | None = None,
    tile: Tile | None = None,
    into: Tensor | None = None,
    frequent: FrequentColumns | bool = True,
) -> Tensor:
    r"""The product :math:`\mathrm{relu}(s_r (A X_r + C_r) + b_r)`; everything but A X is optional.

    Args:
        pattern: The places of A's entries.
        values: Their values in the order of rows (of columns, if transposed), one set or one per replica.
        x: The dense matrices.
        transposed: Multiply by Aᵀ.
        bias: Added to every row.
        relu: Whether negative results become 0.
        addend: Added to the product. With ``separate`` it is not added: scaled, it goes to the columns before ``into``.
        scale: A factor per replica, or one per column of each; not together with ``masks``, which have their own.
        masks: Drop entries of A, a mask per replica; entries are numbered in the order of rows in both directions.
        tile: A tile other than the default.
        into: The output: some columns of a contiguous tensor. None allocates one.
        frequent: Frequent columns of A, whose rows of Aᵀ X are dense products. True finds them, False takes none.

    Shape:
        values [nnz] or [R, nnz], x [R, M, W], bias [R, W], addend and into [R, N, W], scale [R] or [R, W] → [R, N, W].
    """
    if masks is not None:
        if scale is not None:
            raise ValueError("multiply takes a scale or masks, got both: multiply the values by the scale.")
        scale = masks.scale
    if isinstance(frequent, FrequentColumns) and (masks is not None or not transposed):
        raise ValueError("multiply takes frequent columns only for a transposed product without masks.")
    work = segments(pattern, transposed)
    replicas, width = x.shape[0], x.shape[2]
    x, values = x.contiguous(), values.contiguous()
    out = x.new_empty(replicas, work.num_rows, width) if into is None else into
    if not out.numel():
        return out
    tile = tile or tile_for(
        work, width, masks is not None
    )  # of all rows: the others have the same bits beside frequent ones
    if frequent is True:
        frequent = transposed and masks is None and (find_columns(pattern, values, x) or False)
    if frequent:
        work = frequent.work
    alone = masks is not None or values.dim() == 2  # replicas share nothing
    tile = tile._replace(replicas=1 if alone else min(tile.replicas, power_of_two(replicas)))
    packed, stops = pairs(work, values) if x.dtype == values.dtype else None, work.stop
    own = packed is not None and masks is not None
    if packed is not None and masks is not None:
        packed, stops = kept_pairs(work, packed, masks)
    parts = x.new_empty(replicas, work.num_parts, width) if work.num_parts else x
    extras = tuple(x if t is None else t.contiguous() for t in (bias, addend, scale))
    adds, scales = 0 if addend is None else 1 + separate, 0 if scale is None else scale.dim()
    flags: dict[str, int] = dict(zip(FLAGS, (bias is not None, relu, adds, scales), strict=True))
    _product[tiles(len(work), tile.segments), tiles(width, tile.columns), tiles(replicas, tile.replicas)](
        x, values if packed is None else packed, work.inner, work.place, work.row, work.start, stops,
        out, parts, *extras, x if masks is None else masks.keys, x if masks is None else masks.least,
        len(work), work.num_rows, work.num_inner, packed.shape[1] if own and packed is not None else work.nnz,
        work.num_parts, replicas,
        WIDTH=width, PITCH=out.stride(1), SEGMENTS=tile.segments, ENTRIES=tile.entries, COLUMNS=tile.columns,
        REPLICAS=tile.replicas,
        MASKED=replicas % tile.replicas != 0 or width % tile.columns != 0,
        PACKED=packed is not None, SHARED=values.dim() == 1 and not own, DROP=masks is not None and not own, **flags,
        num_warps=tile.warps, **LAUNCH,
    )  # fmt: skip
    if frequent:
        add_products(frequent, x, parts)
    add_parts(work, parts, out, extras, flags)
    return out


def add_parts(
    work: Segments, parts: Tensor, out: Tensor, extras: tuple[Tensor, ...] = (), flags: dict[str, int] | None = None
) -> None:
    """Add the partial sums [R, parts, W] of the cut rows, and finish these rows of out [R, N, W]."""
    if not work.num_parts:
        return
    width = out.shape[2]
    columns = min(power_of_two(width, least=4), 64)
    _combine[len(work.long_row), tiles(width, columns), len(out)](
        parts, work.long_row, work.long_start, out, *(extras or (out, out, out)), work.num_rows, work.num_parts,
        WIDTH=width, PITCH=out.stride(1), ENTRIES=8, COLUMNS=columns, num_warps=1,
        **(flags or dict.fromkeys(FLAGS, 0)), **LAUNCH,
    )  # fmt: skip


@jit
def _product(
    x, values, inner, place, rows, starts, stops, out, parts, bias, addend, scale, keys, leasts,
    num_segments, num_rows, num_inner, nnz, num_parts, num_replicas,
    WIDTH: tl.constexpr, PITCH: tl.constexpr, SEGMENTS: tl.constexpr, ENTRIES: tl.constexpr, COLUMNS: tl.constexpr,
    REPLICAS: tl.constexpr, MASKED: tl.constexpr, PACKED: tl.constexpr, SHARED: tl.constexpr, DROP: tl.constexpr,
    BIAS: tl.constexpr, RELU: tl.constexpr, ADD: tl.constexpr, SCALE: tl.constexpr,
):  # fmt: skip
    first_replica = tl.program_id(2).to(tl.int64) * REPLICAS
    first = tl.program_id(0) * SEGMENTS
    lane = tl.arange(0, REPLICAS * COLUMNS)  # a slab of columns of one replica after the other
    column, other = tl.program_id(1) * COLUMNS + lane % COLUMNS, lane // COLUMNS
    replica = first_replica + other
    wanted = (column < WIDTH) & (replica < num_replicas)
    segment = first + tl.arange(0, SEGMENTS)
    real = segment < num_segments
    if PACKED and not SHARED:
        stops += first_replica * num_segments
    start, stop = tl.load(starts + segment, real, other=0), tl.load(stops + segment, real, other=0)
    row = tl.load(rows + segment, real, other=0)
    offsets = other * (num_inner * WIDTH) + column
    x += first_replica * num_inner * WIDTH
    if not SHARED:
        values += first_replica * nnz
    if PACKED and not SHARED:  # what dropout leaves of a segment can be of any length
        longest, full = tl.max(stop - start, 0), tl.min(stop - start, 0) // ENTRIES * ENTRIES
    else:
        longest = longest_segment(starts, stops, first, num_segments)
        full = full_entries(starts, stops, first, num_segments, SEGMENTS, ENTRIES)
    if PACKED:
        sums = packed_sums(x, offsets, wanted, values, start, stop, full, longest, WIDTH, ENTRIES, MASKED)
    else:
        k1, k2, least = 0, 0, 0
        if DROP:
            k1, k2, least = mask_settings(keys, leasts, first_replica)
        sums = row_sums(
            x, offsets, wanted, values, inner, place, start, stop, longest, k1, k2, least, WIDTH, ENTRIES, DROP
        )
    mask = real[:, None] & wanted[None, :]
    if num_parts > 0:
        part = (row - num_rows)[:, None] * WIDTH + (replica * num_parts * WIDTH + column)[None, :]
        tl.store(parts + part, sums, mask & (row >= num_rows)[:, None])
    at = row[:, None] * WIDTH + (replica * num_rows * WIDTH + column)[None, :]
    to = row[:, None] * PITCH + (replica * num_rows * PITCH + column)[None, :]
    mask = mask & (row < num_rows)[:, None]
    _finish(sums, out + to, bias, addend + at, scale, mask, column, replica, wanted, WIDTH, BIAS, RELU, ADD, SCALE)


@jit
def _combine(
    parts, rows, starts, out, bias, addend, scale, num_rows, num_parts,
    WIDTH: tl.constexpr, PITCH: tl.constexpr, ENTRIES: tl.constexpr, COLUMNS: tl.constexpr,
    BIAS: tl.constexpr, RELU: tl.constexpr, ADD: tl.constexpr, SCALE: tl.constexpr,
):  # fmt: skip
    """Add the partial sums of one cut row."""
    replica = tl.program_id(2).to(tl.int64)
    number = tl.program_id(0)
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    mask = (columns < WIDTH)[None, :]
    stop = tl.load(starts + number + 1)
    parts += replica * num_parts * WIDTH
    sums = tl.zeros([ENTRIES, COLUMNS], out.dtype.element_ty)
    for first in range(tl.load(starts + number), stop, ENTRIES):
        part = first + tl.arange(0, ENTRIES)[:, None]
        sums += tl.load(parts + part * WIDTH + columns[None, :], (part < stop) & mask, other=0.0)
    row = replica * num_rows + tl.load(rows + number)
    at = row * WIDTH + columns[None, :]
    total = tree_sum(sums[None, :, :])
    wanted = columns < WIDTH
    alone = replica + tl.zeros_like(columns)
    to = out + row * PITCH + columns[None, :]
    _finish(total, to, bias, addend + at, scale, mask, columns, alone, wanted, WIDTH, BIAS, RELU, ADD, SCALE)


@jit
def _finish(
    sums, out, bias, addend, scale, mask, column, replica, wanted,
    WIDTH: tl.constexpr, BIAS: tl.constexpr, RELU: tl.constexpr, ADD: tl.constexpr, SCALE: tl.constexpr,
):  # fmt: skip
    """Apply addend, scale, bias and ReLU to the sums, and write them."""
    more = sums
    if ADD > 0:
        more = tl.load(addend, mask, other=0.0)
    if ADD == 1:
        sums += more
    if SCALE > 0:
        place = replica if SCALE == 1 else replica * WIDTH + column  # of the replica, or of its column
        factor = tl.load(scale + place, wanted, other=0.0).to(sums.dtype)[None, :]
        sums *= factor
        more *= factor
    if ADD == 2:
        tl.store(out - WIDTH, more, mask)
    if BIAS:
        sums += tl.load(bias + replica * WIDTH + column, wanted, other=0.0)[None, :]
    if RELU:
        sums = tl.where(sums < 0, 0.0, sums)  # as in torch, NaN stays NaN, so that a failed replica is detected
    tl.store(out, sums, mask, cache_modifier=".cs")  # larger than the cache, which is left to reads


def propagate(matrix: Matrix, x: Tensor, bias: Tensor, *, relu: bool = True, gated: bool = False) -> Tensor:
    """relu(A x + bias) for x [R, M, W] and bias [R, W].

    Args:
        matrix: A.
        x: The input.
        bias: Added to every row.
        relu: Whether the ReLU is applied.
        gated: The incoming gradient is already 0 where the output is (:func:`dropped_linear` with ``rectified``).
    """
    out: Tensor = _Propagate.apply(x, bias, matrix, relu, gated)
    return out


class _Propagate(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, bias: Tensor, matrix: Matrix, relu: bool, gated: bool) -> Tensor:
        ctx.matrix, ctx.open = matrix, not relu or gated
        out = multiply(matrix.pattern, matrix.values, x, False, bias=bias, relu=relu)
        ctx.save_for_backward(None if ctx.open else out)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor, None, None, None]:
        (out,) = ctx.saved_tensors
        passed = grad.contiguous() if ctx.open else torch.ops.aten.threshold_backward(grad, out, 0)
        to_x = None
        if ctx.needs_input_grad[0]:
            to_x = multiply(ctx.matrix.pattern, ctx.matrix.column_values, passed, True)
        return to_x, column_sums(passed), None, None, None
