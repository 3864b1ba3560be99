r"""The kernels of graph attention.

Forward, the softmax of a row needs one number per row and head, its log-sum-exp. With it the coefficients are known
without the rest of their row, and long rows can be cut as in any product.

The same two kernels, ``edge_weights`` and ``weighted_sums``, compute the coefficients edge by edge and the sums they
weight, forward and backward. Coefficients are small beside the rows they weight: one number per edge and head, computed
once and written, so that the gathering kernel does nothing else and skips dropped edges. A coefficient carries the sign
of its score: the softmax itself is positive, and the backward pass needs the part of each sum whose score is positive.
Forward, the coefficients of a row lack the softmax's denominator, known only after the last of them: the sum is divided
instead.

Backward, with coefficients :math:`\alpha_e` of the edges :math:`e = (j \to i)`, dropout factors :math:`m_e`, scores
:math:`u_e`, the output's gradient :math:`d_i` and :math:`g_e = d_i \cdot h_j`,

.. math:: \partial u_e = \alpha_e (m_e g_e - d_i \cdot out_i) \, \mathrm{leaky}'(u_e).

The score of a target receives the sum of its row, :math:`\sum_e \partial u_e`. Without leaky' that sum is 0, and
leaky' is 1 or the slope: so it is (1 − slope) times the sum over positive scores, which the forward pass has computed
up to the factor :math:`d_i`. The score of a source receives the sum of its column, and there too :math:`g_e` enters as
a sum: with :math:`w_e = \alpha_e m_e \mathrm{leaky}'(u_e)` it is :math:`\sum_e w_e g_e = h_j \cdot \sum_e w_e d_i`. So
the only gathers, in both directions, are two sums: over all edges and over positive scores.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls
# ruff: noqa: N803, PLR0915
# Triton compiles its functions from their source: pointers and tiles have no types, constants are in capitals.

from propreg.engine.kernels.dropout import is_kept, mask_settings
from propreg.engine.kernels.spmm.rows import longest_segment
from propreg.engine.kernels.triton_names import jit, tl


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
    mask = (head < HEADS)[:, None] & (column < WIDTH)
    vector = (replica * HEADS + head[:, None]) * WIDTH + column
    a, b = tl.load(source + vector, mask, other=0.0), tl.load(target + vector, mask, other=0.0)
    base = replica * num_rows * HEADS
    place = row * HEADS + head[None, :]
    tile = tl.load(
        h + base * WIDTH + place[:, :, None] * WIDTH + column[None, :, :],
        (row < num_rows)[:, :, None] & mask[None, :, :], other=0.0,
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
    longest = longest_segment(starts, stops, first + tl.program_id(0) * SEGMENTS, last)
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
    # Every lane keeps its own maximum; they are combined after the loop. It starts finite, or −∞ − −∞ would be NaN.
    top = tl.full([SEGMENTS, ENTRIES, PADDED], -1e30, source.dtype.element_ty)
    total = tl.zeros([SEGMENTS, ENTRIES, PADDED], source.dtype.element_ty)
    positive = tl.zeros([SEGMENTS, ENTRIES, PADDED], source.dtype.element_ty)
    entry = start[:, None] + tl.arange(0, ENTRIES)[None, :]
    for _ in range(0, longest, ENTRIES):
        inside = entry < stop[:, None]
        other = tl.load(inner + entry, inside, other=0)
        mask = inside[:, :, None] & (head < HEADS)[None, None, :]
        score = tl.load(source + other[:, :, None] * HEADS + head[None, None, :], mask, other=0.0) + own
        leaky = tl.where(mask, tl.where(score > 0, score, SLOPE * score), -1e30)
        higher = tl.maximum(top, leaky)
        shrink, weight = tl.exp(top - higher), tl.where(mask, tl.exp(leaky - higher), 0.0)
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


@jit
def edge_weights(
    own, others, logs, shares, inverses, deltas, inner, place, rows, owners, starts, stops, weights,
    totals, total_parts, keys, leasts, scale, num_segments, num_rows, num_inner, nnz, num_parts,
    HEADS: tl.constexpr, PADDED: tl.constexpr, STRIDE: tl.constexpr, SEGMENTS: tl.constexpr, ENTRIES: tl.constexpr,
    SLOPE: tl.constexpr, DROP: tl.constexpr, ACROSS: tl.constexpr,
):  # fmt: skip
    """The coefficients of each segment's edges and heads, 0 where dropped.

    Along rows ``own`` is the row's score. For a segment that is a whole row the softmax's ``logs`` and ``shares`` are
    computed here too, and its coefficients still lack the factor ``inverses``; for cut rows the logs are read. ACROSS,
    along columns, ``logs`` are those of the other end, and the part of the score's gradient that needs no gather,
    −Σ α leaky' δ over all edges, dropped or not, is summed as well. Gathered numbers are STRIDE apart.
    """
    replica = tl.program_id(1).to(tl.int64)
    first = tl.program_id(0) * SEGMENTS
    segment = first + tl.arange(0, SEGMENTS)
    head = tl.arange(0, PADDED)
    real = segment < num_segments
    start, stop = tl.load(starts + segment, real, other=0), tl.load(stops + segment, real, other=0)
    mask = real[:, None] & (head < HEADS)[None, :]
    mine = tl.load(owners + segment, real, other=0)[:, None] * HEADS + head[None, :]
    at = replica * num_rows * HEADS + mine
    score_own = tl.load(own + at, mask, other=0.0)[:, None, :]
    row = tl.load(rows + segment, real, other=0)[:, None]
    others += replica * num_inner * (HEADS * STRIDE)
    longest = longest_segment(starts, stops, first, num_segments)
    log = tl.zeros([SEGMENTS, ENTRIES, PADDED], own.dtype.element_ty)
    if not ACROSS:
        # Leaky ReLU keeps the order: the highest score is that of the highest neighbor.
        top = tl.full([SEGMENTS, ENTRIES, PADDED], -1e30, own.dtype.element_ty)
        entry = start[:, None] + tl.arange(0, ENTRIES)[None, :]
        for _ in range(0, longest, ENTRIES):
            inside = entry < stop[:, None]
            other = tl.load(inner + entry, inside, other=0)
            within = inside[:, :, None] & (head < HEADS)[None, None, :]
            spot = (other[:, :, None] * HEADS + head[None, None, :]) * STRIDE
            top = tl.maximum(top, tl.load(others + spot, within, other=-1e30))
            entry += ENTRIES
        highest = tl.max(top, 1) + tl.load(own + at, mask, other=0.0)
        highest = tl.where(highest > 0, highest, SLOPE * highest)
        highest = tl.where(row < num_rows, highest, tl.load(logs + at, mask & (row >= num_rows), other=0.0))
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
            weight = tl.where(is_kept(head[None, None, :] * nnz + number[:, :, None], k1, k2, least), weight, 0.0)
        tl.store(weights + entry[:, :, None] * HEADS + head[None, None, :], weight, within)
        entry += ENTRIES
    if not ACROSS:
        total = tl.sum(sums, 1)
        empty = total == 0  # a row without entries
        total = tl.where(empty, 1.0, total)
        found = tl.where(empty, 0.0, highest + tl.log(total))
        whole = mask & (row < num_rows)
        tl.store(logs + at, found, whole)
        tl.store(shares + at, tl.sum(positive, 1) / total, whole)
        tl.store(inverses + at, 1.0 / total, whole)
    if ACROSS:
        total = tl.sum(sums, 1)
        tl.store(totals + replica * num_rows * HEADS + row * HEADS + head[None, :], total, mask & (row < num_rows))
        if num_parts > 0:
            part = replica * num_parts * HEADS + (row - num_rows) * HEADS + head[None, :]
            tl.store(total_parts + part, total, mask & (row >= num_rows))


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
    for _ in range(0, longest_segment(starts, stops, first, num_segments), ENTRIES):
        entry += ENTRIES  # prefetch the next edges while these rows are loaded
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
    """Add the lanes [segments · entries, heads, columns] of each segment, into its row or its partial sum."""
    total = tl.sum(tl.reshape(sums, [SEGMENTS, ENTRIES, GROUP * COLUMNS]), 1)
    segment = first + tl.arange(0, SEGMENTS)
    spread = tl.arange(0, GROUP * COLUMNS)
    head, column = tl.program_id(1) * GROUP + spread // COLUMNS, spread % COLUMNS
    row = tl.load(rows + segment, segment < num_segments, other=0)
    place = row[:, None] * (HEADS * WIDTH) + (head * WIDTH + column)[None, :]
    mask = (segment < num_segments)[:, None] & ((head < HEADS) & (column < WIDTH))[None, :]
    whole = (row < num_rows)[:, None]
    if not ACROSS:
        spot = replica * num_rows * HEADS + row[:, None] * HEADS + head[None, :]
        total *= tl.load(inverses + spot, mask & whole, other=1.0)
    tl.store(out + replica * num_rows * (HEADS * WIDTH) + place, total, mask & whole)
    if num_parts > 0:
        part = place - num_rows * (HEADS * WIDTH)
        tl.store(parts + replica * num_parts * (HEADS * WIDTH) + part, total, mask & (row >= num_rows)[:, None])


@jit
def row_gradients(
    grad, out, up, shares, deltas, to_target, num_places,
    WIDTH: tl.constexpr, COLUMNS: tl.constexpr, ROWS: tl.constexpr, SLOPE: tl.constexpr,
):  # fmt: skip
    """d · out of every node and head, and the gradient to the target's score."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, COLUMNS)[None, :]
    mask = (row < num_places)[:, None] & (column < WIDTH)
    place = row[:, None] * WIDTH + column
    d = tl.load(grad + place, mask, other=0.0)
    delta = tl.sum(d * tl.load(out + place, mask, other=0.0), 1)
    high = tl.sum(d * tl.load(up + place, mask, other=0.0), 1)
    share = tl.load(shares + row, row < num_places, other=0.0)
    tl.store(deltas + row, delta, row < num_places)
    tl.store(to_target + row, (1 - SLOPE) * (high - delta * share), row < num_places)


@jit
def score_gradients(
    h, source, target, to_source, to_target, to_h, up, source_parts, target_parts, num_rows, chunks,
    HEADS: tl.constexpr, WIDTH: tl.constexpr, GROUP: tl.constexpr, COLUMNS: tl.constexpr, ROWS: tl.constexpr,
    STEPS: tl.constexpr, SLOPE: tl.constexpr,
):  # fmt: skip
    """The gradient to the source's score, and through :func:`node_scores`: added to that to h, summed for the vectors.

    ``to_h`` holds the sum over a node's edges, ``up`` its part with positive scores, ``to_source`` the part that needed
    neither. The sums for the vectors are over the nodes of a chunk.
    """
    replica = tl.program_id(2).to(tl.int64)
    head = tl.program_id(1) * GROUP + tl.arange(0, GROUP)
    column = tl.arange(0, COLUMNS)[None, :]
    mask = (head < HEADS)[:, None] & (column < WIDTH)
    vector = head[:, None] * WIDTH + column
    shift = replica * HEADS * WIDTH
    a, b = tl.load(source + shift + vector, mask, other=0.0), tl.load(target + shift + vector, mask, other=0.0)
    base = replica * num_rows * HEADS
    by_source = tl.zeros([ROWS, GROUP, COLUMNS], h.dtype.element_ty)
    by_target = tl.zeros([ROWS, GROUP, COLUMNS], h.dtype.element_ty)
    for step in range(STEPS):
        row = (tl.program_id(0) * STEPS + step) * ROWS + tl.arange(0, ROWS)[:, None]
        place = row * HEADS + head[None, :]
        real = (row < num_rows) & (head < HEADS)[None, :]
        t = tl.load(to_target + base + place, real, other=0.0)[:, :, None]
        spot = base * WIDTH + place[:, :, None] * WIDTH + column[None, :, :]
        inside = real[:, :, None] & mask[None, :, :]
        tile, gathered = tl.load(h + spot, inside, other=0.0), tl.load(to_h + spot, inside, other=0.0)
        sloped = SLOPE * gathered + (1 - SLOPE) * tl.load(up + spot, inside, other=0.0)
        s = tl.load(to_source + base + place, real, other=0.0)[:, :, None] + tl.sum(tile * sloped, 2)[:, :, None]
        by_source += s * tile
        by_target += t * tile
        tl.store(to_h + spot, gathered + s * a[None, :, :] + t * b[None, :, :], inside)
    part = (replica * chunks + tl.program_id(0)) * (HEADS * WIDTH) + vector
    tl.store(source_parts + part, tl.sum(by_source, 0), mask)
    tl.store(target_parts + part, tl.sum(by_target, 0), mask)
