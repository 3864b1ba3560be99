r"""Attention backward, from the sums that the forward pass left.

With coefficients :math:`\alpha_e` of the edges :math:`e = (j \to i)`, dropout factors :math:`m_e`, scores :math:`u_e`,
the output's gradient :math:`d_i` and :math:`g_e = d_i \cdot h_j`,

.. math:: \partial u_e = \alpha_e (m_e g_e - d_i \cdot out_i) \, \mathrm{leaky}'(u_e).

The score of a target gets the sum of its row, :math:`\sum_e \partial u_e`. Without leaky' that sum is 0, and leaky' is
1 or the slope: so it is (1 − slope) times the sum over positive scores, which the forward pass already knows up to the
factor :math:`d_i`. No second look at the neighbours is needed.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls
# ruff: noqa: N803
# Triton compiles its functions from their source: pointers and tiles have no types, constants are in capitals.

from propreg.engine.kernels._attention_forward import store_rows
from propreg.engine.kernels._hash import keep, mask_settings
from propreg.engine.kernels._rows import longest_of
from propreg.engine.kernels._triton import jit, tl


@jit
def row_gradients(
    grad, out, up, shares, deltas, to_target, num_places,
    WIDTH: tl.constexpr, COLUMNS: tl.constexpr, ROWS: tl.constexpr, SLOPE: tl.constexpr,
):  # fmt: skip
    """d · out of every node and head, and the gradient to the target's score."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, COLUMNS)[None, :]
    there = (row < num_places)[:, None] & (column < WIDTH)
    place = row[:, None] * WIDTH + column
    d = tl.load(grad + place, there, other=0.0)
    delta = tl.sum(d * tl.load(out + place, there, other=0.0), 1)
    high = tl.sum(d * tl.load(up + place, there, other=0.0), 1)
    share = tl.load(shares + row, row < num_places, other=0.0)
    tl.store(deltas + row, delta, row < num_places)
    tl.store(to_target + row, (1 - SLOPE) * (high - delta * share), row < num_places)


@jit
def column_gradients(
    h, grad, source, target, logs, deltas, inner, place, rows, owners, starts, stops,
    to_h, to_h_parts, to_source, to_source_parts,
    keys, leasts, scale, num_segments, num_rows, num_inner, nnz, num_parts,
    HEADS: tl.constexpr, WIDTH: tl.constexpr, GROUP: tl.constexpr, COLUMNS: tl.constexpr,
    SEGMENTS: tl.constexpr, ENTRIES: tl.constexpr, SLOPE: tl.constexpr, DROP: tl.constexpr,
):  # fmt: skip
    """Along the columns of the pattern, the edges that leave a node: the gradients to h and to the source's score."""
    replica = tl.program_id(2).to(tl.int64)
    lane = tl.arange(0, SEGMENTS * ENTRIES)
    segment = tl.program_id(0) * SEGMENTS + lane // ENTRIES
    head = tl.program_id(1) * GROUP + tl.arange(0, GROUP)
    column = tl.arange(0, COLUMNS)[None, None, :]
    real = segment < num_segments
    entry = tl.load(starts + segment, real, other=0) + lane % ENTRIES
    stop = tl.load(stops + segment, real, other=0)
    mine = real[:, None] & (head < HEADS)[None, :]
    own = replica * num_rows * HEADS + tl.load(owners + segment, real, other=0)[:, None] * HEADS + head[None, :]
    own_source = tl.load(source + own, mine, other=0.0)
    own_h = tl.load(h + own[:, :, None] * WIDTH + column, mine[:, :, None] & (column < WIDTH), other=0.0)
    k1, k2, least, factor = 0, 0, 0, 1.0
    if DROP:
        k1, k2, least = mask_settings(keys, leasts, replica)
        factor = tl.load(scale + replica).to(h.dtype.element_ty)
    base = replica * num_inner * HEADS
    target, logs, deltas, grad = target + base, logs + base, deltas + base, grad + base * WIDTH
    sums = tl.zeros([SEGMENTS * ENTRIES, GROUP, COLUMNS], h.dtype.element_ty)
    scores = tl.zeros([SEGMENTS * ENTRIES, GROUP], h.dtype.element_ty)
    inside = entry < stop
    other = tl.load(inner + entry, inside, other=0)
    first = tl.program_id(0) * SEGMENTS
    for _ in range(0, longest_of(starts, stops, first, num_segments), ENTRIES):
        next_inside = entry + ENTRIES < stop
        next_other = tl.load(inner + entry + ENTRIES, next_inside, other=0)
        there = inside[:, None] & (head < HEADS)[None, :]
        spot = other[:, None] * HEADS + head[None, :]
        score = own_source + tl.load(target + spot, there, other=0.0)
        log, delta = tl.load(logs + spot, there, other=0.0), tl.load(deltas + spot, there, other=0.0)
        leaky = tl.where(score > 0, score, SLOPE * score)
        weight = tl.exp(tl.where(there, leaky - log, float("-inf")))
        passed = weight
        if DROP:
            number = tl.load(place + entry, inside, other=0)
            kept = keep(head[None, :] * nnz + number[:, None], k1, k2, least)
            there = there & kept
            passed = tl.where(kept, weight * factor, 0.0)
        tile = tl.load(grad + spot[:, :, None] * WIDTH + column, there[:, :, None] & (column < WIDTH), other=0.0)
        sums += passed[:, :, None] * tile
        slope = passed * tl.sum(tile * own_h, 2) - weight * delta
        scores += tl.where(score > 0, slope, SLOPE * slope)
        entry, inside, other = entry + ENTRIES, next_inside, next_other
    store_rows(
        sums, rows, to_h, to_h_parts, first, num_segments, num_rows, num_parts, replica,
        HEADS, WIDTH, GROUP, COLUMNS, SEGMENTS, ENTRIES,
    )  # fmt: skip
    store_rows(
        scores[:, :, None], rows, to_source, to_source_parts, first, num_segments, num_rows, num_parts, replica,
        HEADS, 1, GROUP, 1, SEGMENTS, ENTRIES,
    )  # fmt: skip


@jit
def score_gradients(
    h, source, target, to_source, to_target, to_h, source_parts, target_parts, num_rows, chunks,
    HEADS: tl.constexpr, WIDTH: tl.constexpr, GROUP: tl.constexpr, COLUMNS: tl.constexpr, ROWS: tl.constexpr,
    STEPS: tl.constexpr,
):  # fmt: skip
    """Through :func:`node_scores`: added to the gradient to h, and summed over the nodes of a chunk for the vectors."""
    replica = tl.program_id(2).to(tl.int64)
    head = tl.program_id(1) * GROUP + tl.arange(0, GROUP)
    column = tl.arange(0, COLUMNS)[None, :]
    there = (head < HEADS)[:, None] & (column < WIDTH)
    vector = head[:, None] * WIDTH + column
    shift = replica * HEADS * WIDTH
    a, b = tl.load(source + shift + vector, there, other=0.0), tl.load(target + shift + vector, there, other=0.0)
    base = replica * num_rows * HEADS
    by_source = tl.zeros([ROWS, GROUP, COLUMNS], h.dtype.element_ty)
    by_target = tl.zeros([ROWS, GROUP, COLUMNS], h.dtype.element_ty)
    for step in range(STEPS):
        row = (tl.program_id(0) * STEPS + step) * ROWS + tl.arange(0, ROWS)[:, None]
        place = row * HEADS + head[None, :]
        real = (row < num_rows) & (head < HEADS)[None, :]
        s = tl.load(to_source + base + place, real, other=0.0)[:, :, None]
        t = tl.load(to_target + base + place, real, other=0.0)[:, :, None]
        spot = base * WIDTH + place[:, :, None] * WIDTH + column[None, :, :]
        inside = real[:, :, None] & there[None, :, :]
        tile = tl.load(h + spot, inside, other=0.0)
        by_source += s * tile
        by_target += t * tile
        tl.store(to_h + spot, tl.load(to_h + spot, inside, other=0.0) + s * a[None, :, :] + t * b[None, :, :], inside)
    part = (replica * chunks + tl.program_id(0)) * (HEADS * WIDTH) + vector
    tl.store(source_parts + part, tl.sum(by_source, 0), there)
    tl.store(target_parts + part, tl.sum(by_target, 0), there)
