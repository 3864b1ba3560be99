"""Sparse products for a batch of replicas, the twin of :meth:`propreg.engine.sparse.Pattern.multiply`.

What a product costs is gathering rows. A program does so for a few segments, a slab of columns and one replica or more:
indices are read once for all of them. Programs of the same replicas run next to each other, so that what they gather
stays in the L2 cache.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls
# ruff: noqa: N803
# Triton compiles its functions from their source: pointers and tiles have no types, constants are in capitals.

from typing import NamedTuple

from torch import Tensor

from propreg.engine.dropout import Masks
from propreg.engine.kernels._hash import mask_settings
from propreg.engine.kernels._rows import added, full_of, longest_of, packed_sums, row_sums
from propreg.engine.kernels._triton import LAUNCH, jit, power_of_two, tiles, tl
from propreg.engine.kernels.compact import kept_pairs
from propreg.engine.kernels.hot import Hot, add_up, hot_columns
from propreg.engine.kernels.segments import Segments, pairs, segments
from propreg.engine.sparse import Pattern

SHORT, LONG = 24, 80  # entries of a segment, on average
FLAGS = ("BIAS", "RELU", "ADD", "SCALE")


class Tile(NamedTuple):
    """How a program works: segments, entries of each at once, columns, warps, replicas."""

    segments: int
    entries: int
    columns: int
    warps: int
    replicas: int = 1


def tile_for(work: Segments, width: int, dropped: bool = False) -> Tile:
    """The shape of work for a product; ``benchmarks/tile_shapes.py`` measures others."""
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


def beside_others(width: int) -> Tile | None:
    """The shape for logits of several passes or replicas: rows are added up as they are for one that is alone."""
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
    apart: bool = False,
    scale: Tensor | None = None,
    masks: Masks | None = None,
    tile: Tile | None = None,
    into: Tensor | None = None,
    hot: Hot | bool = True,
) -> Tensor:
    r"""The product :math:`\mathrm{relu}(s_r (A X_r + C_r) + b_r)`, of which everything but A X is optional.

    Args:
        pattern: Where A has entries.
        values: Their values in the order of rows (of columns, if transposed), one set or one per replica.
        x: The dense matrices.
        transposed: Multiply by Aᵀ.
        bias: Added to every row.
        relu: Whether negative results become 0.
        addend: Added to the product. Where it is ``apart`` it is not: scaled, it goes to the columns before ``into``.
        scale: A factor per replica, or one for each of its columns; not together with ``masks``, which have their own.
        masks: Drop entries of A, a mask per replica; numbered in the order of rows either way.
        tile: Another shape of work than the usual.
        into: Where the result goes: some columns of a contiguous tensor. None makes a new one.
        hot: Frequent columns of A, whose rows of Aᵀ X are dense products. True finds them, False takes none.

    Shape:
        values [nnz] or [R, nnz], x [R, M, W], bias [R, W], addend and into [R, N, W], scale [R] or [R, W] → [R, N, W].
    """
    if masks is not None:
        if scale is not None:
            raise ValueError("multiply takes a scale or masks, but both came: put the scale into the values.")
        scale = masks.scale
    if isinstance(hot, Hot) and (masks is not None or not transposed):
        raise ValueError("multiply takes hot columns for a transposed product without masks, but this is another.")
    work = segments(pattern, transposed)
    replicas, width = x.shape[0], x.shape[2]
    x, values = x.contiguous(), values.contiguous()
    out = x.new_empty(replicas, work.num_rows, width) if into is None else into
    if not out.numel():
        return out
    tile = tile or tile_for(work, width, masks is not None)  # of the whole: a row has the same bits beside hot ones
    if hot is True:
        hot = transposed and masks is None and (hot_columns(pattern, values, x) or False)
    if hot:
        work = hot.work
    alone = masks is not None or values.dim() == 2  # there is nothing that replicas share
    tile = tile._replace(replicas=1 if alone else min(tile.replicas, power_of_two(replicas)))
    packed, stops = pairs(work, values) if x.dtype == values.dtype else None, work.stop
    own = packed is not None and masks is not None
    if packed is not None and masks is not None:
        packed, stops = kept_pairs(work, packed, masks)
    parts = x.new_empty(replicas, work.num_parts, width) if work.num_parts else x
    extras = tuple(x if t is None else t.contiguous() for t in (bias, addend, scale))
    adds, scales = 0 if addend is None else 1 + apart, 0 if scale is None else scale.dim()
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
    if hot:
        add_up(hot, x, parts)
    add_parts(work, parts, out, extras, flags)
    return out


def add_parts(
    work: Segments, parts: Tensor, out: Tensor, extras: tuple[Tensor, ...] = (), flags: dict[str, int] | None = None
) -> None:
    """Add up the partial sums [R, parts, W] of the rows that were cut, and finish these rows of out [R, N, W]."""
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
        longest = longest_of(starts, stops, first, num_segments)
        full = full_of(starts, stops, first, num_segments, SEGMENTS, ENTRIES)
    if PACKED:
        sums = packed_sums(x, offsets, wanted, values, start, stop, full, longest, WIDTH, ENTRIES, MASKED)
    else:
        k1, k2, least = 0, 0, 0
        if DROP:
            k1, k2, least = mask_settings(keys, leasts, first_replica)
        sums = row_sums(
            x, offsets, wanted, values, inner, place, start, stop, longest, k1, k2, least, WIDTH, ENTRIES, DROP
        )
    there = real[:, None] & wanted[None, :]
    if num_parts > 0:
        part = (row - num_rows)[:, None] * WIDTH + (replica * num_parts * WIDTH + column)[None, :]
        tl.store(parts + part, sums, there & (row >= num_rows)[:, None])
    at = row[:, None] * WIDTH + (replica * num_rows * WIDTH + column)[None, :]
    to = row[:, None] * PITCH + (replica * num_rows * PITCH + column)[None, :]
    there = there & (row < num_rows)[:, None]
    _finish(sums, out + to, bias, addend + at, scale, there, column, replica, wanted, WIDTH, BIAS, RELU, ADD, SCALE)


@jit
def _combine(
    parts, rows, starts, out, bias, addend, scale, num_rows, num_parts,
    WIDTH: tl.constexpr, PITCH: tl.constexpr, ENTRIES: tl.constexpr, COLUMNS: tl.constexpr,
    BIAS: tl.constexpr, RELU: tl.constexpr, ADD: tl.constexpr, SCALE: tl.constexpr,
):  # fmt: skip
    """Add up the partial sums of one row that was cut."""
    replica = tl.program_id(2).to(tl.int64)
    number = tl.program_id(0)
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    there = (columns < WIDTH)[None, :]
    stop = tl.load(starts + number + 1)
    parts += replica * num_parts * WIDTH
    sums = tl.zeros([ENTRIES, COLUMNS], out.dtype.element_ty)
    for first in range(tl.load(starts + number), stop, ENTRIES):
        part = first + tl.arange(0, ENTRIES)[:, None]
        sums += tl.load(parts + part * WIDTH + columns[None, :], (part < stop) & there, other=0.0)
    row = replica * num_rows + tl.load(rows + number)
    at = row * WIDTH + columns[None, :]
    total = added(sums[None, :, :])
    wanted = columns < WIDTH
    alone = replica + tl.zeros_like(columns)
    to = out + row * PITCH + columns[None, :]
    _finish(total, to, bias, addend + at, scale, there, columns, alone, wanted, WIDTH, BIAS, RELU, ADD, SCALE)


@jit
def _finish(
    sums, out, bias, addend, scale, there, column, replica, wanted,
    WIDTH: tl.constexpr, BIAS: tl.constexpr, RELU: tl.constexpr, ADD: tl.constexpr, SCALE: tl.constexpr,
):  # fmt: skip
    """Write rows that are added up, and what follows."""
    more = sums
    if ADD > 0:
        more = tl.load(addend, there, other=0.0)
    if ADD == 1:
        sums += more
    if SCALE > 0:
        place = replica if SCALE == 1 else replica * WIDTH + column  # of the replica, or of its column
        factor = tl.load(scale + place, wanted, other=0.0).to(sums.dtype)[None, :]
        sums *= factor
        more *= factor
    if ADD == 2:
        tl.store(out - WIDTH, more, there)
    if BIAS:
        sums += tl.load(bias + replica * WIDTH + column, wanted, other=0.0)[None, :]
    if RELU:
        sums = tl.where(sums < 0, 0.0, sums)  # as torch's: NaN stays NaN, so that a broken replica is seen
    tl.store(out, sums, there, cache_modifier=".cs")  # all replicas' are more than the cache holds: leave it to others
