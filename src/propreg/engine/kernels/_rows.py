"""The inner loop of every sparse product: the weighted sums of the rows that a few segments name."""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls
# ruff: noqa: N803, N806
# Triton compiles its functions from their source: pointers and tiles have no types, constants are in capitals.

from propreg.engine.kernels._hash import keep
from propreg.engine.kernels._triton import jit, tl


@jit
def row_sums(
    x, offsets, wanted, values, inner, place, start, stop, longest, k1, k2, least,
    WIDTH: tl.constexpr, ENTRIES: tl.constexpr, DROP: tl.constexpr,
):  # fmt: skip
    """Σ values · x[inner] over the entries start … stop of each segment: [segments, offsets].

    ``offsets`` lead from the first number of a row to those that are ``wanted``, which may be other replicas' too.
    ``longest`` is at least the length of each segment.
    """
    lanes = tl.arange(0, ENTRIES)[None, :]
    sums = tl.zeros([start.shape[0], ENTRIES, offsets.shape[0]], x.dtype.element_ty)
    entry = start[:, None] + lanes
    inside = entry < stop[:, None]
    row = tl.load(inner + entry, inside, other=0)
    value = tl.load(values + entry, inside, other=0.0)
    for _ in range(0, longest, ENTRIES):
        # The next indices are under way while these rows are: half of the latency otherwise.
        next_entry = entry + ENTRIES
        next_inside = next_entry < stop[:, None]
        next_row = tl.load(inner + next_entry, next_inside, other=0)
        next_value = tl.load(values + next_entry, next_inside, other=0.0)
        if DROP:
            kept = keep(tl.load(place + entry, inside, other=0), k1, k2, least)
            value = tl.where(kept, value, 0.0)
            inside = inside & kept
        there = inside[:, :, None] & wanted[None, None, :]
        sums += value[:, :, None] * tl.load(x + row[:, :, None] * WIDTH + offsets[None, None, :], there, other=0.0)
        entry, inside, row, value = next_entry, next_inside, next_row, next_value
    return added(sums)


@jit
def packed_sums(
    x, offsets, wanted, pairs, start, stop, full, longest,
    WIDTH: tl.constexpr, ENTRIES: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """The same from pairs (index, value) of 32 bits each, with half of the instructions: they are what a row costs.

    In the first ``full`` entries of every segment nothing is masked. Not MASKED: all offsets are wanted.
    """
    sums = tl.zeros([start.shape[0], ENTRIES, offsets.shape[0]], x.dtype.element_ty)
    entry = start[:, None] + tl.arange(0, ENTRIES)[None, :]
    pair = tl.load(pairs + entry)  # there are pairs beyond the last
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
        there = inside[:, :, None]
        if MASKED:
            there = there & wanted[None, None, :]
        sums += value * tl.load(place, there, other=0.0)
        entry, pair = entry + ENTRIES, next_pair
    return added(sums)


@jit
def added(sums):
    """The sums [segments, columns] over the entries of [segments, entries, columns], neighbours first.

    In this order whatever the number of columns: ``tl.sum`` adds in the order in which threads happen to hold them.
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
def longest_of(starts, stops, first, last):
    """The most entries of the segments from ``first`` on, rounded up: the first is in the longest bucket (of 4)."""
    first = tl.minimum(first, last - 1)
    return (tl.load(stops + first) - tl.load(starts + first) + 3) // 4 * 4


@jit
def full_of(starts, stops, first, last, SEGMENTS: tl.constexpr, ENTRIES: tl.constexpr):
    """How many entries all SEGMENTS from ``first`` on have, in whole tiles: the last is in the shortest bucket."""
    final = tl.minimum(first + SEGMENTS, last) - 1
    shortest = (tl.load(stops + final) - tl.load(starts + final) + 3) // 4 * 4 - 4
    return tl.maximum(shortest, 0) // ENTRIES * ENTRIES
