r"""Attention backward, from the sums that the forward pass left.

With coefficients :math:`\alpha_e` of the edges :math:`e = (j \to i)`, dropout factors :math:`m_e`, scores :math:`u_e`,
the output's gradient :math:`d_i` and :math:`g_e = d_i \cdot h_j`,

.. math:: \partial u_e = \alpha_e (m_e g_e - d_i \cdot out_i) \, \mathrm{leaky}'(u_e).

The score of a target gets the sum of its row, :math:`\sum_e \partial u_e`. Without leaky' that sum is 0, and leaky' is
1 or the slope: so it is (1 − slope) times the sum over positive scores, which the forward pass already knows up to the
factor :math:`d_i`. The score of a source gets the sum of its column, and there too :math:`g_e` enters by a sum: with
:math:`w_e = \alpha_e m_e \mathrm{leaky}'(u_e)` it is :math:`\sum_e w_e g_e = h_j \cdot \sum_e w_e d_i`. So all that is
gathered, in both directions, are the two sums of :mod:`._attention_edges`: over all edges and over positive scores.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls
# ruff: noqa: N803
# Triton compiles its functions from their source: pointers and tiles have no types, constants are in capitals.

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
def score_gradients(
    h, source, target, to_source, to_target, to_h, up, source_parts, target_parts, num_rows, chunks,
    HEADS: tl.constexpr, WIDTH: tl.constexpr, GROUP: tl.constexpr, COLUMNS: tl.constexpr, ROWS: tl.constexpr,
    STEPS: tl.constexpr, SLOPE: tl.constexpr,
):  # fmt: skip
    """The gradient to the source's score, and through :func:`node_scores`: added to that to h, summed for the vectors.

    ``to_h`` comes as the sum over a node's edges and ``up`` as the part of it with positive scores; ``to_source`` holds
    what needed neither. The sums for the vectors are over the nodes of a chunk.
    """
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
        t = tl.load(to_target + base + place, real, other=0.0)[:, :, None]
        spot = base * WIDTH + place[:, :, None] * WIDTH + column[None, :, :]
        inside = real[:, :, None] & there[None, :, :]
        tile, gathered = tl.load(h + spot, inside, other=0.0), tl.load(to_h + spot, inside, other=0.0)
        sloped = SLOPE * gathered + (1 - SLOPE) * tl.load(up + spot, inside, other=0.0)
        s = tl.load(to_source + base + place, real, other=0.0)[:, :, None] + tl.sum(tile * sloped, 2)[:, :, None]
        by_source += s * tile
        by_target += t * tile
        tl.store(to_h + spot, gathered + s * a[None, :, :] + t * b[None, :, :], inside)
    part = (replica * chunks + tl.program_id(0)) * (HEADS * WIDTH) + vector
    tl.store(source_parts + part, tl.sum(by_source, 0), there)
    tl.store(target_parts + part, tl.sum(by_target, 0), there)
