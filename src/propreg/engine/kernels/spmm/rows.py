"""The inner loop of every sparse product: the weighted sums of the rows that a few segments name.

With dropout, ``kept_pairs`` first moves each replica's kept entries to the front of their segment, eight bytes an
entry: a masked-out gather costs its slot in the program all the same, and with six entries in ten dropped a product
then reads four instead of ten.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls
# ruff: noqa: N803, N806
# Triton compiles its functions from their source: pointers and tiles have no types, constants are in capitals.

from torch import Tensor

from propreg.engine.kernels.dropout import is_kept, mask_settings
from propreg.engine.kernels.spmm.segments import Segments
from propreg.engine.kernels.triton_names import LAUNCH, jit, tiles, tl
from propreg.engine.ops.dropout import Masks


@jit
def row_sums(
    x, offsets, wanted, values, inner, place, start, stop, longest, k1, k2, least,
    WIDTH: tl.constexpr, ENTRIES: tl.constexpr, DROP: tl.constexpr,
):  # fmt: skip
    """Σ values · x[inner] over the entries start … stop of each segment: [segments, offsets].

    ``offsets`` point from the first number of a row to those that are ``wanted``, possibly of several replicas.
    ``longest`` is at least the length of each segment.
    """
    lanes = tl.arange(0, ENTRIES)[None, :]
    sums = tl.zeros([start.shape[0], ENTRIES, offsets.shape[0]], x.dtype.element_ty)
    entry = start[:, None] + lanes
    inside = entry < stop[:, None]
    row = tl.load(inner + entry, inside, other=0)
    value = tl.load(values + entry, inside, other=0.0)
    for _ in range(0, longest, ENTRIES):
        # Prefetch the next indices while these rows are loaded: this hides half of the latency.
        next_entry = entry + ENTRIES
        next_inside = next_entry < stop[:, None]
        next_row = tl.load(inner + next_entry, next_inside, other=0)
        next_value = tl.load(values + next_entry, next_inside, other=0.0)
        if DROP:
            kept = is_kept(tl.load(place + entry, inside, other=0), k1, k2, least)
            value = tl.where(kept, value, 0.0)
            inside = inside & kept
        mask = inside[:, :, None] & wanted[None, None, :]
        sums += value[:, :, None] * tl.load(x + row[:, :, None] * WIDTH + offsets[None, None, :], mask, other=0.0)
        entry, inside, row, value = next_entry, next_inside, next_row, next_value
    return tree_sum(sums)


@jit
def packed_sums(
    x, offsets, wanted, pairs, start, stop, full, longest,
    WIDTH: tl.constexpr, ENTRIES: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """The same from packed pairs (index, value) of 32 bits each, with half the instructions, which bound the speed.

    The first ``full`` entries of every segment need no mask. Without MASKED all offsets are wanted.
    """
    sums = tl.zeros([start.shape[0], ENTRIES, offsets.shape[0]], x.dtype.element_ty)
    entry = start[:, None] + tl.arange(0, ENTRIES)[None, :]
    pair = tl.load(pairs + entry)  # the pairs are padded beyond the last
    for _ in range(0, full, ENTRIES):
        next_pair = tl.load(pairs + entry + ENTRIES)
        place = x + pair.to(tl.int32)[:, :, None] * WIDTH + offsets[None, None, :]
        value = (pair >> 32).to(tl.int32).to(tl.float32, bitcast=True)[:, :, None]
        if MASKED:
            sums += value * tl.load(place, wanted[None, None, :], other=0.0)
        else:
            sums += value * tl.load(place)
        entry, pair = entry + ENTRIES, next_pair
    for _ in range(full, longest, ENTRIES):
        next_pair = tl.load(pairs + entry + ENTRIES)
        inside = entry < stop[:, None]
        place = x + pair.to(tl.int32)[:, :, None] * WIDTH + offsets[None, None, :]
        value = tl.where(inside, (pair >> 32).to(tl.int32).to(tl.float32, bitcast=True), 0.0)[:, :, None]
        mask = inside[:, :, None]
        if MASKED:
            mask = mask & wanted[None, None, :]
        sums += value * tl.load(place, mask, other=0.0)
        entry, pair = entry + ENTRIES, next_pair
    return tree_sum(sums)


@jit
def tree_sum(sums):
    """The sums [segments, columns] over the entries of [segments, entries, columns], as a tree from neighbors up.

    The order does not depend on the number of columns, unlike ``tl.sum``, which adds in the layout of the threads.
    """
    SEGMENTS: tl.constexpr = sums.shape[0]
    ENTRIES: tl.constexpr = sums.shape[1]
    COLUMNS: tl.constexpr = sums.shape[2]
    pairs = tl.permute(sums, (0, 2, 1))
    for level in tl.static_range(10):
        if ENTRIES >> level > 1:
            even, odd = tl.split(tl.reshape(pairs, [SEGMENTS, COLUMNS, ENTRIES >> (level + 1), 2]))
            pairs = even + odd
    return tl.reshape(pairs, [SEGMENTS, COLUMNS])


@jit
def longest_segment(starts, stops, first, last):
    """The length of the longest segment from ``first`` on, rounded up: the first is in the longest bucket (of 4)."""
    first = tl.minimum(first, last - 1)
    return (tl.load(stops + first) - tl.load(starts + first) + 3) // 4 * 4


@jit
def full_entries(starts, stops, first, last, SEGMENTS: tl.constexpr, ENTRIES: tl.constexpr):
    """The entries that all SEGMENTS from ``first`` on have, in whole tiles: the last is in the shortest bucket."""
    final = tl.minimum(first + SEGMENTS, last) - 1
    shortest = (tl.load(stops + final) - tl.load(starts + final) + 3) // 4 * 4 - 4
    return tl.maximum(shortest, 0) // ENTRIES * ENTRIES


def kept_pairs(work: Segments, pairs: Tensor, masks: Masks) -> tuple[Tensor, Tensor]:
    """The kept pairs of each replica and segment, from the start of the segment, and where they end.

    Entries between that end and the end of the segment are undefined.

    Shape:
        pairs [nnz + padding] → [R, nnz + padding], int32 [R, S].
    """
    replicas, segments, entries = len(masks), 4, 32
    kept = pairs.new_empty(replicas, len(pairs))
    stops = work.stop.new_empty(replicas, len(work))
    _compact[tiles(len(work), segments), replicas](
        pairs, work.place, work.start, work.stop, kept, stops, masks.keys, masks.least, len(work), len(pairs),
        SEGMENTS=segments, ENTRIES=entries, num_warps=1, **LAUNCH,
    )  # fmt: skip
    return kept, stops


@jit
def _compact(
    pairs, place, starts, stops, kept, kept_stops, keys, leasts, num_segments, num_pairs,
    SEGMENTS: tl.constexpr, ENTRIES: tl.constexpr,
):  # fmt: skip
    replica = tl.program_id(1).to(tl.int64)
    first = tl.program_id(0) * SEGMENTS
    segment = first + tl.arange(0, SEGMENTS)
    real = segment < num_segments
    start, stop = tl.load(starts + segment, real, other=0), tl.load(stops + segment, real, other=0)
    k1, k2, least = mask_settings(keys, leasts, replica)
    kept += replica * num_pairs
    entry = start[:, None] + tl.arange(0, ENTRIES)[None, :]
    end = start
    for _ in range(0, longest_segment(starts, stops, first, num_segments), ENTRIES):
        inside = entry < stop[:, None]
        stays = inside & is_kept(tl.load(place + entry, inside, other=0), k1, k2, least)
        number = stays.to(tl.int32)
        to = end[:, None] + tl.cumsum(number, 1) - 1
        tl.store(kept + to, tl.load(pairs + entry, stays, other=0), stays)
        end += tl.sum(number, 1)
        entry += ENTRIES
    tl.store(kept_stops + replica * num_segments + segment, end, real)
