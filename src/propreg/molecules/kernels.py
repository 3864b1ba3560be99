"""The kernels of :mod:`propreg.molecules.ops`. Sums run in a fixed order, without atomics: a run repeats its bits.

To a kernel the passes of a replica are replicas that share its parameters; ``members`` counts them all.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls
# ruff: noqa: N803
# Triton compiles its functions from their source: pointers and tiles have no types, constants are in capitals.

import torch
from torch import Tensor

from propreg.engine.kernels.dropout import is_kept, mask_settings
from propreg.engine.kernels.triton_names import LAUNCH, jit, power_of_two, tiles, tl
from propreg.engine.ops.dropout import Masks
from propreg.molecules.packing import Links

COLUMNS, ROWS = 32, 64  # of batch norm's tiles: a program owns a few columns of a replica and runs down its rows
LINK_COLUMNS, LINK_ROWS = 64, 32


def normalize(
    h: Tensor, scale: Tensor, shift: Tensor, mean: Tensor, variance: Tensor, count: Tensor,
    training: bool, relu: bool, masks: Masks | None,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """The output, and the mean and 1/σ that each replica's passes were made with, [R·P, W]."""
    from propreg.molecules.ops import EPSILON, MOMENTUM

    seeds, members, nodes, width = h.shape
    passes = seeds * members // len(scale)
    out, (used, rstd, unbiased) = torch.empty_like(h), h.new_empty(3, seeds * members, width).unbind()
    _normalize[tiles(width, COLUMNS), seeds * members](
        h, out, scale, shift, mean, variance, used, rstd, unbiased, count, *_mask(masks, scale, count), nodes, members,
        WIDTH=width, PASSES=passes, TRAINING=training, RELU=relu, DROP=masks is not None, EPSILON=EPSILON,
        ROWS=ROWS, COLUMNS=COLUMNS, num_warps=4, **LAUNCH,
    )  # fmt: skip
    if training:
        _follow[tiles(width, COLUMNS), len(scale)](
            mean, variance, used, unbiased,
            WIDTH=width, PASSES=passes, MOMENTUM=MOMENTUM, COLUMNS=COLUMNS, num_warps=1, **LAUNCH,
        )  # fmt: skip
    return out, used, rstd


def normalize_backward(
    grad: Tensor, h: Tensor, scale: Tensor, shift: Tensor, mean: Tensor, rstd: Tensor, count: Tensor,
    relu: bool, masks: Masks | None,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Gradients to h, scale and shift, of a training pass."""
    seeds, members, nodes, width = h.shape
    passes = seeds * members // len(scale)
    to_h, both = torch.empty_like(h), h.new_empty(2, seeds * members, width)
    _normalize_backward[tiles(width, COLUMNS), seeds * members](
        grad, h, to_h, scale, shift, *both.unbind(), mean, rstd, count, *_mask(masks, scale, count), nodes, members,
        WIDTH=width, PASSES=passes, RELU=relu, DROP=masks is not None,
        ROWS=ROWS, COLUMNS=COLUMNS, num_warps=4, **LAUNCH,
    )  # fmt: skip
    to_scale, to_shift = _over_passes(both.flatten(0, 1), passes).view(2, -1, width).unbind()
    return to_h, to_scale, to_shift


def _over_passes(parts: Tensor, passes: int) -> Tensor:
    """The gradient to a parameter from its parts, [R·P, …] → [R, …]."""
    return parts if passes == 1 else parts.unflatten(0, (-1, passes)).sum(1)


def _mask(masks: Masks | None, scale: Tensor, count: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return (count, count, scale) if masks is None else (masks.keys, masks.least, masks.scale)


@jit
def _normalize(
    h, out, scale, shift, mean, variance, used, rstds, unbiased, counts, keys, leasts, factors, nodes, members,
    WIDTH: tl.constexpr, PASSES: tl.constexpr, TRAINING: tl.constexpr, RELU: tl.constexpr, DROP: tl.constexpr,
    EPSILON: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    replica = tl.program_id(1)
    seed = replica // members
    count = tl.load(counts + seed)
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    there = column < WIDTH
    vector, place = replica // PASSES * WIDTH + column, replica * WIDTH + column
    base = replica.to(tl.int64) * nodes * WIDTH
    rows = tl.arange(0, ROWS)
    if TRAINING:
        total = tl.zeros([COLUMNS], h.dtype.element_ty)
        for first in range(0, count, ROWS):
            row = first + rows
            inside = (row < count)[:, None] & there[None, :]
            total += tl.sum(tl.load(h + base + row[:, None] * WIDTH + column[None, :], inside, other=0.0), axis=0)
        center = total / count
        spread = tl.zeros([COLUMNS], h.dtype.element_ty)
        for first in range(0, count, ROWS):
            row = first + rows
            inside = (row < count)[:, None] & there[None, :]
            x = tl.load(h + base + row[:, None] * WIDTH + column[None, :], inside, other=0.0)
            apart = tl.where(inside, x - center[None, :], 0.0)
            spread += tl.sum(apart * apart, axis=0)
        wide = spread / count
        tl.store(unbiased + place, spread / (count - 1), there)
    else:
        center = tl.load(mean + vector, there, other=0.0)
        wide = tl.load(variance + vector, there, other=0.0)
    rstd = 1.0 / tl.sqrt(wide + EPSILON)
    tl.store(used + place, center, there)
    tl.store(rstds + place, rstd, there)
    gamma = tl.load(scale + vector, there, other=0.0) * rstd
    beta = tl.load(shift + vector, there, other=0.0)
    if DROP:
        mask = seed * PASSES + replica % PASSES
        k1, k2, least = mask_settings(keys, leasts, mask)
        factor = tl.load(factors + mask).to(h.dtype.element_ty)
    for first in range(0, nodes, ROWS):
        row = first + rows
        element = row[:, None] * WIDTH + column[None, :]
        inside = (row < nodes)[:, None] & there[None, :]
        x = tl.load(h + base + element, inside, other=0.0)
        y = (x - center[None, :]) * gamma[None, :] + beta[None, :]
        if RELU:
            y = tl.maximum(y, 0.0)
        if DROP:
            y = tl.where(is_kept(element, k1, k2, least), y * factor, 0.0)
        tl.store(out + base + element, y, inside)


@jit
def _follow(
    mean, variance, centers, unbiased,
    WIDTH: tl.constexpr, PASSES: tl.constexpr, MOMENTUM: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """The running statistics after all passes of a replica, one after the other."""
    replica = tl.program_id(1)
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    there = column < WIDTH
    vector = replica * WIDTH + column
    center = tl.load(mean + vector, there, other=0.0)
    wide = tl.load(variance + vector, there, other=0.0)
    for i in range(PASSES):
        place = (replica * PASSES + i) * WIDTH + column
        center += MOMENTUM * (tl.load(centers + place, there, other=0.0) - center)
        wide += MOMENTUM * (tl.load(unbiased + place, there, other=0.0) - wide)
    tl.store(mean + vector, center, there)
    tl.store(variance + vector, wide, there)


@jit
def _normalize_backward(
    grad, h, to_h, scale, shift, to_scale, to_shift, means, rstds, counts, keys, leasts, factors, nodes, members,
    WIDTH: tl.constexpr, PASSES: tl.constexpr, RELU: tl.constexpr, DROP: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    replica = tl.program_id(1)
    seed = replica // members
    count = tl.load(counts + seed)
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    there = column < WIDTH
    vector, place = replica // PASSES * WIDTH + column, replica * WIDTH + column
    base = replica.to(tl.int64) * nodes * WIDTH
    rows = tl.arange(0, ROWS)
    center = tl.load(means + place, there, other=0.0)
    rstd = tl.load(rstds + place, there, other=0.0)
    gamma = tl.load(scale + vector, there, other=0.0)
    beta = tl.load(shift + vector, there, other=0.0)
    k1, k2, least, factor = 0, 0, 0, 1.0
    if DROP:
        mask = seed * PASSES + replica % PASSES
        k1, k2, least = mask_settings(keys, leasts, mask)
        factor = tl.load(factors + mask).to(h.dtype.element_ty)
    sums = tl.zeros([COLUMNS], h.dtype.element_ty)
    products = tl.zeros([COLUMNS], h.dtype.element_ty)
    for first in range(0, count, ROWS):
        row = first + rows
        element = row[:, None] * WIDTH + column[None, :]
        inside = (row < count)[:, None] & there[None, :]
        unit = (tl.load(h + base + element, inside, other=0.0) - center[None, :]) * rstd[None, :]
        g = tl.load(grad + base + element, inside, other=0.0)
        if DROP:
            g = tl.where(is_kept(element, k1, k2, least), g * factor, 0.0)
        if RELU:
            g = tl.where(unit * gamma[None, :] + beta[None, :] > 0, g, 0.0)
        sums += tl.sum(g, axis=0)
        products += tl.sum(g * unit, axis=0)
    tl.store(to_shift + place, sums, there)
    tl.store(to_scale + place, products, there)
    sums, products = sums / count, products / count
    for first in range(0, nodes, ROWS):
        row = first + rows
        element = row[:, None] * WIDTH + column[None, :]
        inside = (row < nodes)[:, None] & there[None, :]
        real = (row < count)[:, None] & there[None, :]
        unit = (tl.load(h + base + element, real, other=0.0) - center[None, :]) * rstd[None, :]
        g = tl.load(grad + base + element, real, other=0.0)
        if DROP:
            g = tl.where(is_kept(element, k1, k2, least), g * factor, 0.0)
        if RELU:
            g = tl.where(unit * gamma[None, :] + beta[None, :] > 0, g, 0.0)
        g = (gamma * rstd)[None, :] * (g - sums[None, :] - unit * products[None, :])
        tl.store(to_h + base + element, tl.where(real, g, 0.0), inside)


def messages(h: Tensor, table: Tensor | None, own: Tensor | None, links: Links) -> Tensor:
    """The forward pass."""
    seeds, members, nodes, width = h.shape
    out = torch.empty_like(h)
    _messages[tiles(nodes, LINK_ROWS), tiles(width, LINK_COLUMNS), seeds * members](
        h, h, h if table is None else table, h if own is None else own, out, out,
        links.first, links.source, links.code, links.weight, nodes, members, links.source.shape[1],
        0 if table is None else table.shape[1],
        WIDTH=width, PASSES=_passes(seeds * members, table, own), TABLE=table is not None, OWN=own is not None,
        BACKWARD=False, ROWS=LINK_ROWS, COLUMNS=LINK_COLUMNS, num_warps=4, **LAUNCH,
    )  # fmt: skip
    return out


def messages_backward(
    grad: Tensor, h: Tensor, table: Tensor | None, own: Tensor | None, links: Links
) -> tuple[Tensor, Tensor | None]:
    """Gradients to h and to the factors of own rows: each link's reverse has the same code."""
    seeds, members, nodes, width = h.shape
    blocks, strips, replicas = tiles(nodes, LINK_ROWS), tiles(width, LINK_COLUMNS), seeds * members
    out, parts, passes = torch.empty_like(h), h.new_empty(replicas, blocks * strips), _passes(replicas, table, own)
    _messages[blocks, strips, replicas](
        grad, h, h if table is None else table, h if own is None else own, out, parts,
        links.first, links.source, links.code, links.weight_back, nodes, members, links.source.shape[1],
        0 if table is None else table.shape[1],
        WIDTH=width, PASSES=passes, TABLE=table is not None, OWN=own is not None,
        BACKWARD=True, ROWS=LINK_ROWS, COLUMNS=LINK_COLUMNS, num_warps=4, **LAUNCH,
    )  # fmt: skip
    return out, None if own is None else parts.view(len(own), -1).sum(1)


def _passes(rows: int, table: Tensor | None, own: Tensor | None) -> int:
    """How many passes share a row of the table and of the factors."""
    shared = own if table is None else table
    return 1 if shared is None else rows // len(shared)


@jit
def _messages(
    given, h, table, own, out, parts, firsts, sources, codes, weights, nodes, members, links, num_codes,
    WIDTH: tl.constexpr, PASSES: tl.constexpr, TABLE: tl.constexpr, OWN: tl.constexpr, BACKWARD: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Adds up, over a row's links, what is given in the other row: h forward, the gradient backward."""
    replica = tl.program_id(2)
    seed = replica // members
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    there, live = column < WIDTH, row < nodes
    inside = live[:, None] & there[None, :]
    base = replica.to(tl.int64) * nodes * WIDTH
    element = row[:, None] * WIDTH + column[None, :]
    first = tl.load(firsts + seed * (nodes + 1) + row, live, other=0)
    number = tl.load(firsts + seed * (nodes + 1) + row + 1, live, other=0) - first
    total = tl.zeros([ROWS, COLUMNS], given.dtype.element_ty)
    if BACKWARD:
        mine = tl.load(h + base + element, inside, other=0.0)
    for k in range(0, tl.max(number, axis=0)):
        linked = k < number
        at = seed * links + first + k
        source = tl.load(sources + at, linked, other=0)
        weight = tl.load(weights + at, linked, other=0.0)
        mask = linked[:, None] & there[None, :]
        value = tl.load(given + base + source[:, None] * WIDTH + column[None, :], mask, other=0.0)
        if TABLE:
            code = tl.load(codes + at, linked, other=0)
            place = (replica // PASSES * num_codes + code).to(tl.int64)[:, None] * WIDTH + column[None, :]
            bond = tl.load(table + place, mask, other=0.0)
            if BACKWARD:  # noqa: SIM108  (a choice of the compiler's)
                value = tl.where(mine + bond > 0, value, 0.0)
            else:
                value = tl.maximum(value + bond, 0.0)
        total += weight[:, None] * value
    if OWN:
        factor = tl.load(own + replica // PASSES)
        this = tl.load(given + base + element, inside, other=0.0)
        total += factor * this
        if BACKWARD:
            part = tl.sum(tl.sum(this * mine, axis=1), axis=0)
            blocks = tl.num_programs(0) * tl.num_programs(1)
            tl.store(parts + replica * blocks + tl.program_id(0) * tl.num_programs(1) + tl.program_id(1), part)
    tl.store(out + base + element, total, inside)


def table_gradient(grad: Tensor, h: Tensor, table: Tensor, links: Links) -> Tensor:
    """The gradient to the links' embeddings: a sum over the links of each code."""
    seeds, members, nodes, width = h.shape
    passes, codes = seeds * members // len(table), table.shape[1]
    out = table.new_empty(seeds * members, codes, width)
    _table_gradient[codes, tiles(width, LINK_COLUMNS), seeds * members](
        grad, h, table, out, links.code_first, links.by_code, links.source, links.target, links.weight,
        nodes, members, links.source.shape[1], codes,
        WIDTH=width, PASSES=passes, ROWS=LINK_ROWS, COLUMNS=LINK_COLUMNS, num_warps=4, **LAUNCH,
    )  # fmt: skip
    return _over_passes(out, passes)


@jit
def _table_gradient(
    grad, h, table, out, firsts, by_code, sources, targets, weights, nodes, members, links, num_codes,
    WIDTH: tl.constexpr, PASSES: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    code, replica = tl.program_id(0), tl.program_id(2)
    seed = replica // members
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    there = column < WIDTH
    base = replica.to(tl.int64) * nodes * WIDTH
    place = (replica * num_codes + code).to(tl.int64) * WIDTH + column
    shared = (replica // PASSES * num_codes + code).to(tl.int64) * WIDTH + column
    bond = tl.load(table + shared, there, other=0.0)
    first = tl.load(firsts + seed * (num_codes + 1) + code)
    last = tl.load(firsts + seed * (num_codes + 1) + code + 1)
    total = tl.zeros([COLUMNS], grad.dtype.element_ty)
    for start in range(first, last, ROWS):
        at = start + tl.arange(0, ROWS)
        live = at < last
        link = seed * links + tl.load(by_code + seed * links + at, live, other=0)
        source = tl.load(sources + link, live, other=0)
        target = tl.load(targets + link, live, other=0)
        weight = tl.load(weights + link, live, other=0.0)
        mask = live[:, None] & there[None, :]
        x = tl.load(h + base + source[:, None] * WIDTH + column[None, :], mask, other=0.0)
        g = tl.load(grad + base + target[:, None] * WIDTH + column[None, :], mask, other=0.0)
        total += tl.sum(tl.where((x + bond[None, :] > 0) & mask, weight[:, None] * g, 0.0), axis=0)
    tl.store(out + place, total, there)


def agreement(z: Tensor, propagated: Tensor, weights: Tensor) -> Tensor:
    """The forward pass, [S, M]."""
    seeds, members, nodes, width = z.shape
    each = z.new_empty(seeds, members, nodes)
    _agreement[nodes, seeds * members](
        z, propagated, weights, z, each, z, z, nodes, members,
        WIDTH=width, BACKWARD=False, COLUMNS=power_of_two(width), num_warps=2, **LAUNCH,
    )  # fmt: skip
    return each.sum(2)


def agreement_backward(grad: Tensor, z: Tensor, propagated: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients to z and to what was propagated."""
    seeds, members, nodes, width = z.shape
    to_z, to_propagated = torch.empty_like(z), torch.empty_like(z)
    _agreement[nodes, seeds * members](
        z, propagated, weights, grad, z, to_z, to_propagated, nodes, members,
        WIDTH=width, BACKWARD=True, COLUMNS=power_of_two(width), num_warps=2, **LAUNCH,
    )  # fmt: skip
    return to_z, to_propagated


@jit
def _agreement(
    z, propagated, weights, grad, each, to_z, to_propagated, nodes, members,
    WIDTH: tl.constexpr, BACKWARD: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    node, replica = tl.program_id(0), tl.program_id(1)
    column = tl.arange(0, COLUMNS)
    there = column < WIDTH
    place = (replica.to(tl.int64) * nodes + node) * WIDTH + column
    weight = tl.load(weights + replica // members * nodes + node)
    x = tl.load(z + place, there, other=-float("inf"))
    y = tl.load(propagated + place, there, other=-float("inf"))
    p = tl.exp(x - tl.max(x, axis=0))
    p = p / tl.sum(p, axis=0)
    y = y - tl.max(y, axis=0)
    e = tl.exp(y)
    total = tl.sum(e, axis=0)
    log_q = tl.where(there, y - tl.log(total), 0.0)
    value = -tl.sum(p * log_q, axis=0)
    if BACKWARD:
        factor = weight * tl.load(grad + replica)
        tl.store(to_z + place, -factor * p * (log_q + value), there)
        tl.store(to_propagated + place, factor * (e / total - p), there)
    else:
        tl.store(each + replica * nodes + node, weight * value)
