"""Attention's scores of nodes, and the softmax's sum of each row.

That sum is one number a row and head. With it the coefficients are known without their row, and long rows can be cut
like those of any product.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls
# ruff: noqa: N803
# Triton compiles its functions from their source: pointers and tiles have no types, constants are in capitals.

from propreg.engine.kernels._rows import longest_of
from propreg.engine.kernels._triton import jit, tl


@jit
def node_scores(
    h, source, target, to_source, to_target, num_rows,
    HEADS: tl.constexpr, WIDTH: tl.constexpr, GROUP: tl.constexpr, COLUMNS: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """h · source and h · target of every node and head."""
    replica = tl.program_id(2).to(tl.int64)
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    head = tl.program_id(1) * GROUP + tl.arange(0, GROUP)
    column = tl.arange(0, COLUMNS)[None, :]
    there = (head < HEADS)[:, None] & (column < WIDTH)
    vector = (replica * HEADS + head[:, None]) * WIDTH + column
    a, b = tl.load(source + vector, there, other=0.0), tl.load(target + vector, there, other=0.0)
    base = replica * num_rows * HEADS
    place = row * HEADS + head[None, :]
    tile = tl.load(
        h + base * WIDTH + place[:, :, None] * WIDTH + column[None, :, :],
        (row < num_rows)[:, :, None] & there[None, :, :], other=0.0,
    )  # fmt: skip
    real = (row < num_rows) & (head < HEADS)[None, :]
    tl.store(to_source + base + place, tl.sum(tile * a[None, :, :], 2), real)
    tl.store(to_target + base + place, tl.sum(tile * b[None, :, :], 2), real)


@jit
def row_totals(
    source, target, inner, rows, starts, stops, logs, shares, first, last, num_rows, num_inner,
    HEADS: tl.constexpr, PADDED: tl.constexpr, SEGMENTS: tl.constexpr, ENTRIES: tl.constexpr, SLOPE: tl.constexpr,
):  # fmt: skip
    """log Σ exp of each row's scores, and the share of the coefficients whose score is positive."""
    replica = tl.program_id(1).to(tl.int64)
    segment = first + tl.program_id(0) * SEGMENTS + tl.arange(0, SEGMENTS)
    head = tl.arange(0, PADDED)
    real = segment < last
    start, stop = tl.load(starts + segment, real, other=0), tl.load(stops + segment, real, other=0)
    place = tl.load(rows + segment, real, other=0)[:, None] * HEADS + head[None, :]
    real = real[:, None] & (head < HEADS)[None, :]
    base = replica * num_rows * HEADS
    own = tl.load(target + base + place, real, other=0.0)[:, None, :]
    longest = longest_of(starts, stops, first + tl.program_id(0) * SEGMENTS, last)
    source += replica * num_inner * HEADS
    log, share = softmax_totals(source, inner, own, start, stop, longest, head, HEADS, SEGMENTS, ENTRIES, PADDED, SLOPE)
    tl.store(logs + base + place, log, real)
    tl.store(shares + base + place, share, real)


@jit
def softmax_totals(
    source, inner, own, start, stop, longest, head,
    HEADS: tl.constexpr, SEGMENTS: tl.constexpr, ENTRIES: tl.constexpr, PADDED: tl.constexpr, SLOPE: tl.constexpr,
):  # fmt: skip
    """Both numbers of each segment and head, over its entries start … stop: [segments, heads]."""
    # Every lane keeps its own maximum: lanes meet after the loop. The start is finite, or −∞ − −∞ would be NaN.
    top = tl.full([SEGMENTS, ENTRIES, PADDED], -1e30, source.dtype.element_ty)
    total = tl.zeros([SEGMENTS, ENTRIES, PADDED], source.dtype.element_ty)
    positive = tl.zeros([SEGMENTS, ENTRIES, PADDED], source.dtype.element_ty)
    entry = start[:, None] + tl.arange(0, ENTRIES)[None, :]
    for _ in range(0, longest, ENTRIES):
        inside = entry < stop[:, None]
        other = tl.load(inner + entry, inside, other=0)
        there = inside[:, :, None] & (head < HEADS)[None, None, :]
        score = tl.load(source + other[:, :, None] * HEADS + head[None, None, :], there, other=0.0) + own
        leaky = tl.where(there, tl.where(score > 0, score, SLOPE * score), -1e30)
        higher = tl.maximum(top, leaky)
        shrink, weight = tl.exp(top - higher), tl.where(there, tl.exp(leaky - higher), 0.0)
        total = total * shrink + weight
        positive = positive * shrink + tl.where(score > 0, weight, 0.0)
        top = higher
        entry += ENTRIES
    highest = tl.max(top, 1)
    shrink = tl.exp(top - highest[:, None, :])
    total, positive = tl.sum(total * shrink, 1), tl.sum(positive * shrink, 1)
    empty = total == 0  # a row without entries
    total = tl.where(empty, 1.0, total)
    return tl.where(empty, 0.0, highest + tl.log(total)), positive / total
