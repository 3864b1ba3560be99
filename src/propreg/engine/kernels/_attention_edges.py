"""Attention's coefficients, edge by edge, and the sums that they weigh: the same two kernels forward and backward.

The coefficients are small beside what they weigh: one number an edge and head, computed once and written, so that the
kernel that gathers does nothing else, and gathers nothing that was dropped. A coefficient has the sign of its score:
the softmax itself is positive, and the backward pass wants the part of each sum whose score is positive. Forward the
coefficients of a row lack its softmax's denominator, which is known after the last of them: the sum is divided instead.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls
# ruff: noqa: N803, PLR0915
# Triton compiles its functions from their source: pointers and tiles have no types, constants are in capitals.

from propreg.engine.kernels._hash import keep, mask_settings
from propreg.engine.kernels._rows import longest_of
from propreg.engine.kernels._triton import jit, tl


@jit
def edge_weights(
    own, others, logs, shares, inverses, deltas, inner, place, rows, owners, starts, stops, weights,
    totals, total_parts, keys, leasts, scale, num_segments, num_rows, num_inner, nnz, num_parts,
    HEADS: tl.constexpr, PADDED: tl.constexpr, STRIDE: tl.constexpr, SEGMENTS: tl.constexpr, ENTRIES: tl.constexpr,
    SLOPE: tl.constexpr, DROP: tl.constexpr, ACROSS: tl.constexpr,
):  # fmt: skip
    """The coefficients of each segment's edges and heads, 0 where dropped.

    Along rows ``own`` is the row's score, and where a segment is a whole row, its softmax's ``logs`` and ``shares`` are
    computed here too, and by its ``inverses`` the coefficients are still to be multiplied; of rows that were cut the
    logs are read. ACROSS, along columns, ``logs`` are the other end's, and the gradient to the score that needs no
    gather, −Σ α leaky' δ over all edges, dropped or not, is summed beside it. What is gathered lies STRIDE numbers
    apart.
    """
    replica = tl.program_id(1).to(tl.int64)
    first = tl.program_id(0) * SEGMENTS
    segment = first + tl.arange(0, SEGMENTS)
    head = tl.arange(0, PADDED)
    real = segment < num_segments
    start, stop = tl.load(starts + segment, real, other=0), tl.load(stops + segment, real, other=0)
    there = real[:, None] & (head < HEADS)[None, :]
    mine = tl.load(owners + segment, real, other=0)[:, None] * HEADS + head[None, :]
    at = replica * num_rows * HEADS + mine
    score_own = tl.load(own + at, there, other=0.0)[:, None, :]
    row = tl.load(rows + segment, real, other=0)[:, None]
    others += replica * num_inner * (HEADS * STRIDE)
    longest = longest_of(starts, stops, first, num_segments)
    log = tl.zeros([SEGMENTS, ENTRIES, PADDED], own.dtype.element_ty)
    if not ACROSS:
        # Leaky ReLU keeps the order: the highest score is that of the highest neighbour.
        top = tl.full([SEGMENTS, ENTRIES, PADDED], -1e30, own.dtype.element_ty)
        entry = start[:, None] + tl.arange(0, ENTRIES)[None, :]
        for _ in range(0, longest, ENTRIES):
            inside = entry < stop[:, None]
            other = tl.load(inner + entry, inside, other=0)
            within = inside[:, :, None] & (head < HEADS)[None, None, :]
            spot = (other[:, :, None] * HEADS + head[None, None, :]) * STRIDE
            top = tl.maximum(top, tl.load(others + spot, within, other=-1e30))
            entry += ENTRIES
        highest = tl.max(top, 1) + tl.load(own + at, there, other=0.0)
        highest = tl.where(highest > 0, highest, SLOPE * highest)
        highest = tl.where(row < num_rows, highest, tl.load(logs + at, there & (row >= num_rows), other=0.0))
        log += highest[:, None, :]
    k1, k2, least, factor = 0, 0, 0, 1.0
    if DROP:
        k1, k2, least = mask_settings(keys, leasts, replica)
        factor = tl.load(scale + replica).to(own.dtype.element_ty)
    weights += replica * nnz * HEADS
    far = replica * num_inner * (HEADS * STRIDE)
    sums = tl.zeros([SEGMENTS, ENTRIES, PADDED], own.dtype.element_ty)
    positive = tl.zeros([SEGMENTS, ENTRIES, PADDED], own.dtype.element_ty)
    entry = start[:, None] + tl.arange(0, ENTRIES)[None, :]
    for _ in range(0, longest, ENTRIES):
        inside = entry < stop[:, None]
        other = tl.load(inner + entry, inside, other=0)
        spot = (other[:, :, None] * HEADS + head[None, None, :]) * STRIDE
        within = inside[:, :, None] & (head < HEADS)[None, None, :]
        score = score_own + tl.load(others + spot, within, other=0.0)
        if ACROSS:
            log = tl.load(logs + far + spot, within, other=0.0)
        weight = tl.exp(tl.where(within, tl.where(score > 0, score, SLOPE * score) - log, float("-inf")))
        if ACROSS:
            passed = weight * tl.load(deltas + far + spot, within, other=0.0)
            sums -= tl.where(score > 0, passed, SLOPE * passed)
        else:
            sums += weight
            positive += tl.where(score > 0, weight, 0.0)
        weight = tl.where(score > 0, weight, -weight) * factor
        if DROP:
            number = tl.load(place + entry, inside, other=0)
            weight = tl.where(keep(head[None, None, :] * nnz + number[:, :, None], k1, k2, least), weight, 0.0)
        tl.store(weights + entry[:, :, None] * HEADS + head[None, None, :], weight, within)
        entry += ENTRIES
    if not ACROSS:
        total = tl.sum(sums, 1)
        empty = total == 0  # a row without entries
        total = tl.where(empty, 1.0, total)
        found = tl.where(empty, 0.0, highest + tl.log(total))
        whole = there & (row < num_rows)
        tl.store(logs + at, found, whole)
        tl.store(shares + at, tl.sum(positive, 1) / total, whole)
        tl.store(inverses + at, 1.0 / total, whole)
    if ACROSS:
        total = tl.sum(sums, 1)
        tl.store(totals + replica * num_rows * HEADS + row * HEADS + head[None, :], total, there & (row < num_rows))
        if num_parts > 0:
            part = replica * num_parts * HEADS + (row - num_rows) * HEADS + head[None, :]
            tl.store(total_parts + part, total, there & (row >= num_rows))


@jit
def weighted_sums(
    x, weights, inverses, inner, rows, starts, stops, out, out_parts, up, up_parts,
    num_segments, num_rows, num_inner, nnz, num_parts,
    HEADS: tl.constexpr, WIDTH: tl.constexpr, GROUP: tl.constexpr, COLUMNS: tl.constexpr,
    SEGMENTS: tl.constexpr, ENTRIES: tl.constexpr, NEED: tl.constexpr, ACROSS: tl.constexpr,
):  # fmt: skip
    """Σ |weight| x over the edges of each segment, and the part of it with positive scores (NEED).

    Sums of whole rows are multiplied by the rows' ``inverses``, but not ACROSS.
    """
    replica = tl.program_id(2).to(tl.int64)
    first = tl.program_id(0) * SEGMENTS
    lane = tl.arange(0, SEGMENTS * ENTRIES)
    segment = first + lane // ENTRIES
    head = tl.program_id(1) * GROUP + tl.arange(0, GROUP)[None, :]
    column = tl.arange(0, COLUMNS)[None, None, :]
    real = segment < num_segments
    entry = tl.load(starts + segment, real, other=0) + lane % ENTRIES
    stop = tl.load(stops + segment, real, other=0)
    x += replica * num_inner * (HEADS * WIDTH)
    weights += replica * nnz * HEADS
    sums = tl.zeros([SEGMENTS * ENTRIES, GROUP, COLUMNS], x.dtype.element_ty)
    ups = tl.zeros([SEGMENTS * ENTRIES, GROUP, COLUMNS], x.dtype.element_ty)
    inside = entry < stop
    other = tl.load(inner + entry, inside, other=0)
    weight = tl.load(weights + entry[:, None] * HEADS + head, inside[:, None] & (head < HEADS), other=0.0)
    for _ in range(0, longest_of(starts, stops, first, num_segments), ENTRIES):
        entry += ENTRIES  # the next edges are under way while these rows are
        inside = entry < stop
        next_other = tl.load(inner + entry, inside, other=0)
        next_weight = tl.load(weights + entry[:, None] * HEADS + head, inside[:, None] & (head < HEADS), other=0.0)
        spot = (other[:, None] * HEADS + head)[:, :, None] * WIDTH + column
        tile = tl.load(x + spot, (weight != 0)[:, :, None] & (column < WIDTH), other=0.0)
        sums += tl.abs(weight)[:, :, None] * tile
        if NEED:
            ups += tl.maximum(weight, 0.0)[:, :, None] * tile
        other, weight = next_other, next_weight
    store_rows(
        sums, inverses, rows, out, out_parts, first, num_segments, num_rows, num_parts, replica,
        HEADS, WIDTH, GROUP, COLUMNS, SEGMENTS, ENTRIES, ACROSS,
    )  # fmt: skip
    if NEED:
        store_rows(
            ups, inverses, rows, up, up_parts, first, num_segments, num_rows, num_parts, replica,
            HEADS, WIDTH, GROUP, COLUMNS, SEGMENTS, ENTRIES, ACROSS,
        )  # fmt: skip


@jit
def store_rows(
    sums, inverses, rows, out, parts, first, num_segments, num_rows, num_parts, replica,
    HEADS: tl.constexpr, WIDTH: tl.constexpr, GROUP: tl.constexpr, COLUMNS: tl.constexpr,
    SEGMENTS: tl.constexpr, ENTRIES: tl.constexpr, ACROSS: tl.constexpr,
):  # fmt: skip
    """Add up the lanes [segments · entries, heads, columns] of each segment, into its row or its partial sum."""
    total = tl.sum(tl.reshape(sums, [SEGMENTS, ENTRIES, GROUP * COLUMNS]), 1)
    segment = first + tl.arange(0, SEGMENTS)
    spread = tl.arange(0, GROUP * COLUMNS)
    head, column = tl.program_id(1) * GROUP + spread // COLUMNS, spread % COLUMNS
    row = tl.load(rows + segment, segment < num_segments, other=0)
    place = row[:, None] * (HEADS * WIDTH) + (head * WIDTH + column)[None, :]
    there = (segment < num_segments)[:, None] & ((head < HEADS) & (column < WIDTH))[None, :]
    whole = (row < num_rows)[:, None]
    if not ACROSS:
        spot = replica * num_rows * HEADS + row[:, None] * HEADS + head[None, :]
        total *= tl.load(inverses + spot, there & whole, other=1.0)
    tl.store(out + replica * num_rows * (HEADS * WIDTH) + place, total, there & whole)
    if num_parts > 0:
        part = place - num_rows * (HEADS * WIDTH)
        tl.store(parts + replica * num_parts * (HEADS * WIDTH) + part, total, there & (row >= num_rows)[:, None])
