"""Dropout and a linear map to a few classes as one function, the twin of :func:`propreg.engine.dropout.dropped_linear`.

Neither the mask nor the dropped activations are ever in memory: forward reads h once, backward reads it once and writes
its gradient. Float32 products stay float32: forward each factor is the sum of two that tensor cores take, which leaves
out less (6e-8) than float32 rounds (1e-7), and on an H200 takes 6.5 µs of Physics instead of 11; backward it is slower.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls
# ruff: noqa: N803
# Triton compiles its functions from their source: pointers and tiles have no types, constants are in capitals.

from typing import Any

import torch
from torch import Tensor

from propreg.engine.dropout import Masks
from propreg.engine.kernels._hash import keep_pair
from propreg.engine.kernels._triton import LAUNCH, jit, power_of_two, tiles, tl
from propreg.engine.kernels.column_sums import leave
from propreg.engine.kernels.dropout import drop

NARROW = 16  # more columns than this are a real matrix product: cuBLAS is better at those


def dropped_linear(h: Tensor, w: Tensor, masks: Masks | None, *, rectified: bool = False) -> Tensor:
    """Dropout of h [R, N, H] with each replica's own mask and rate, times w [R, H, C].

    Args:
        h: The activations.
        w: The weights.
        masks: What is dropped; None drops nothing.
        rectified: h is the output of a ReLU. Its gradient is then already 0 where h is: ReLU's own backward pass, here
            free of charge.
    """
    z: Tensor = _DroppedLinear.apply(h.contiguous(), w.contiguous(), masks, rectified)
    return z


def elu_linear(h: Tensor, bias: Tensor, w: Tensor, masks: Masks | None, pitch: int | None = None) -> Tensor:
    """Dropout of elu(h + bias) for h [R, N, H] and bias [R, H], times w [R, H, C], where :func:`fused` takes them.

    The activations are computed where they are used, forward and backward, and are never in memory. Rows of length
    ``pitch`` are filled up with zeros in front.
    """
    z: Tensor = _EluLinear.apply(h.contiguous(), bias.contiguous(), w.contiguous(), masks, pitch or w.shape[2])
    return z


class _EluLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, h: Tensor, bias: Tensor, w: Tensor, masks: Masks | None, pitch: int) -> Tensor:
        ctx.save_for_backward(h, bias, w)
        ctx.masks = masks
        return forward(h, w, masks, bias=bias, pitch=pitch)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor | None, Tensor, None, None]:
        h, bias, w = ctx.saved_tensors
        slot, shift = grad.shape[2], grad.shape[2] - w.shape[2]
        gradients = backward(h, w, grad.contiguous(), ctx.masks, False, bias=bias, slot=slot, shift=shift)
        return *gradients, None, None


def fused(h: Tensor, w: Tensor) -> bool:
    """Whether the fused kernels take this product; the others drop in one pass and leave the product to cuBLAS."""
    return w.shape[2] <= NARROW and h.shape[2] % 16 == 0 and h.dtype == torch.float32


class _DroppedLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, h: Tensor, w: Tensor, masks: Masks | None, rectified: bool) -> Tensor:
        ctx.save_for_backward(h, w)
        ctx.masks, ctx.rectified = masks, rectified
        if fused(h, w):
            return forward(h, w, masks)
        return torch.bmm(h if masks is None else drop(h, masks), w)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None, None]:
        h, w = ctx.saved_tensors
        grad = grad.contiguous()
        if fused(h, w):
            to_h, _, to_w = backward(h, w, grad, ctx.masks, ctx.rectified)
            return to_h, to_w, None, None
        to_w = torch.bmm((h if ctx.masks is None else drop(h, ctx.masks)).transpose(1, 2), grad)
        to_h = torch.bmm(grad, w.transpose(1, 2))
        if ctx.masks is not None:
            drop(to_h, ctx.masks, in_place=True)
        if ctx.rectified:
            to_h = torch.ops.aten.threshold_backward(to_h, h, 0)
        return to_h, to_w, None, None


def forward(
    h: Tensor,
    w: Tensor,
    masks: Masks | None,
    keys: Tensor | None = None,
    bias: Tensor | None = None,
    *,
    whole_first: bool = False,
    pitch: int | None = None,
) -> Tensor:
    """The product of a narrow w; with ``keys`` [R, passes, 2] one for each pass, side by side; of elu(h + bias).

    ``whole_first`` puts a pass before them in which nothing is dropped: an evaluation. Rows of length ``pitch`` are
    filled up with zeros in front.
    """
    rows = 32
    replicas, num_rows, hidden = h.shape
    passes = whole_first + (1 if keys is None else keys.shape[1])
    pitch = pitch or passes * w.shape[2]
    out = h.new_empty(replicas, num_rows, pitch)
    if out.numel():
        _forward[tiles(num_rows, rows), replicas](
            h.view(torch.int64), h if bias is None else bias, w, out, *_pointers(masks, h, keys), num_rows,
            PASSES=passes, WHOLE=int(whole_first), HIDDEN=hidden, WIDTH=w.shape[2],
            COLUMNS=power_of_two(w.shape[2], least=8), PITCH=pitch, ROWS=rows,
            INNER=64 if hidden == 64 else 32, ELU=bias is not None, DROP=masks is not None,
            IN_TWO=not torch.version.hip, num_warps=2, **LAUNCH,
        )  # fmt: skip
    return out


def backward(
    h: Tensor,
    w: Tensor,
    grad: Tensor,
    masks: Masks | None,
    rectified: bool,
    keys: Tensor | None = None,
    bias: Tensor | None = None,
    *,
    slot: int | None = None,
    shift: int = 0,
) -> tuple[Tensor, Tensor | None, Tensor]:
    """The gradients to h, the bias (None where there is none) and w, of all passes.

    The gradient of a pass lies in a ``slot`` of its row, from ``shift`` on.
    """
    passes = 1 if keys is None else keys.shape[1]
    replicas, num_rows, hidden = h.shape
    rows, most, warps = _backward_shape(w.shape[2], rectified)
    chunk = 512 if num_rows > 16_384 else 128  # many programs for a small graph, few partial sums for a big one
    chunks = tiles(num_rows, chunk)
    to_h, parts = torch.empty_like(h), w.new_empty(replicas, chunks, hidden, w.shape[2])
    summed = rectified or bias is not None
    sum_parts = w.new_empty(replicas, chunks if summed else 0, hidden)
    if not h.numel():
        return to_h, None if bias is None else torch.zeros_like(bias), torch.zeros_like(w)
    inner = _inner(hidden, most)
    _backward[chunks, hidden // inner, replicas](
        h, h if bias is None else bias, w, grad, to_h, sum_parts, parts, *_pointers(masks, h, keys), num_rows, chunks,
        PASSES=passes, HIDDEN=hidden, WIDTH=w.shape[2], COLUMNS=power_of_two(w.shape[2], least=8), ROWS=rows,
        STEPS=chunk // rows, INNER=inner, SLOT=slot or w.shape[2], SHIFT=shift, ELU=bias is not None,
        DROP=masks is not None, RECTIFIED=rectified, num_warps=warps, **LAUNCH,
    )  # fmt: skip
    sums = sum_parts.sum(1) if summed else None
    if sums is not None:
        leave(to_h, sums)
    return to_h, None if bias is None else sums, parts.sum(1)


def _backward_shape(width: int, rectified: bool) -> tuple[int, int, int]:
    """Rows and at most so many hidden units that a program holds at once, and its warps.

    Of five shapes the fastest on an H200, or within 9 % of it but for GAT on Cora (17 %), in nine cases: GCN on Cora,
    Photo, Computers, CS and Physics, and GAT on all of these but Computers.
    """
    if width < 8 or (width > 8 and rectified):
        return 32, 64, 4
    return 32, 32, 2


def _inner(hidden: int, most: int) -> int:
    return max(n for n in (16, 32, 64) if hidden % n == 0 and n <= most)


def _pointers(masks: Masks | None, unused: Tensor, keys: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    if masks is None:
        return unused, unused, unused
    return masks.keys if keys is None else keys, masks.least, masks.scale


@jit
def _kept(row, first, k1, k2, least, HIDDEN: tl.constexpr, INNER: tl.constexpr):
    """Which elements of the tile [rows, INNER] at hidden unit ``first`` are kept: one hash for two of them."""
    word = row[:, None] * (HIDDEN // 2) + first // 2 + tl.arange(0, INNER // 2)[None, :]
    low, high = keep_pair(word, k1, k2, least)
    return tl.reshape(tl.join(low.to(tl.int8), high.to(tl.int8)), [row.shape[0], INNER]) != 0


@jit
def _elu(x):
    return tl.where(x > 0, x, tl.exp(x) - 1)  # NaN stays NaN


@jit
def _keys(keys, number):
    """The two keys of a mask."""
    k1 = tl.load(keys + 2 * number).to(tl.uint32, bitcast=True)
    return k1, tl.load(keys + 2 * number + 1).to(tl.uint32, bitcast=True)


@jit
def _forward(
    h, bias, w, out, keys, leasts, scale, num_rows,
    PASSES: tl.constexpr, WHOLE: tl.constexpr, HIDDEN: tl.constexpr, WIDTH: tl.constexpr, COLUMNS: tl.constexpr,
    PITCH: tl.constexpr, ROWS: tl.constexpr, INNER: tl.constexpr, ELU: tl.constexpr, DROP: tl.constexpr,
    IN_TWO: tl.constexpr,
):  # fmt: skip
    """``h`` comes as pairs of neighbouring hidden units, 64 bits each: the two whose masks share a hash.

    A product over the even units and one over the odd ones then need no mask to be moved between threads.
    """
    replica = tl.program_id(1).to(tl.int64)
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, COLUMNS)
    real = (row < num_rows)[:, None]
    there = (column < WIDTH)[None, :]
    h += replica * num_rows * (HIDDEN // 2)
    w += replica * HIDDEN * WIDTH
    out += replica * num_rows * PITCH
    least, factor = 0, 1.0
    if DROP:
        least = tl.load(leasts + replica).to(tl.int32)
        factor = tl.load(scale + replica).to(tl.float32)
    even = tl.zeros([ROWS, INNER // 2], tl.float32)
    odd = even
    if INNER >= HIDDEN:
        even, odd = _activations(h, bias, row, 0, replica, real, HIDDEN, INNER, ELU)
    for number in tl.static_range(PASSES):
        k1, k2 = 0, 0
        if DROP and number >= WHOLE:
            k1, k2 = _keys(keys, replica * (PASSES - WHOLE) + number - WHOLE)
        sums = tl.zeros([ROWS, COLUMNS], tl.float32)
        for first in range(0, HIDDEN, INNER):
            a, b = even, odd
            if INNER < HIDDEN:  # another pass finds them in the cache
                a, b = _activations(h, bias, row, first, replica, real, HIDDEN, INNER, ELU)
            word = first // 2 + tl.arange(0, INNER // 2)
            if DROP and number >= WHOLE:
                low, high = keep_pair(row[:, None] * (HIDDEN // 2) + word[None, :], k1, k2, least)
                a, b = tl.where(low, a, 0.0), tl.where(high, b, 0.0)
            weight = w + 2 * word[:, None] * WIDTH + column[None, :]
            inside = there
            if HIDDEN % INNER > 0:  # products are of 32 units at least, and 16 may be all there are
                inside = there & (word < HIDDEN // 2)[:, None]
            sums = _times(a, tl.load(weight, inside, other=0.0), sums, IN_TWO)
            sums = _times(b, tl.load(weight + WIDTH, inside, other=0.0), sums, IN_TWO)
        if number >= WHOLE:
            sums *= factor
        place = row[:, None] * PITCH + (PITCH - (PASSES - number) * WIDTH) + column[None, :]
        tl.store(out + place, sums, real & there)
    if PITCH > PASSES * WIDTH:
        front = tl.arange(0, 8)[None, :]
        zeros = tl.zeros([ROWS, 8], tl.float32)
        tl.store(out + row[:, None] * PITCH + front, zeros, real & (front < PITCH - PASSES * WIDTH))


@jit
def _activations(
    h, bias, row, first, replica, real, HIDDEN: tl.constexpr, INNER: tl.constexpr, ELU: tl.constexpr
):  # fmt: skip
    """The even and the odd units of a tile."""
    word = first // 2 + tl.arange(0, INNER // 2)
    if HIDDEN % INNER > 0:
        real = real & (word < HIDDEN // 2)[None, :]
    pair = tl.load(h + row[:, None] * (HIDDEN // 2) + word[None, :], real, other=0)
    even = pair.to(tl.int32).to(tl.float32, bitcast=True)
    odd = (pair >> 32).to(tl.int32).to(tl.float32, bitcast=True)
    if ELU:
        bias += replica * HIDDEN + 2 * word
        unit = word < HIDDEN // 2
        even = _elu(even + tl.load(bias, unit, other=0.0)[None, :])
        odd = _elu(odd + tl.load(bias + 1, unit, other=0.0)[None, :])
    return even, odd


@jit
def _high(x):
    """A float32 rounded to the bits that tensor cores see."""
    return ((x.to(tl.int32, bitcast=True) + 4096) & -8192).to(tl.float32, bitcast=True)


@jit
def _times(x, y, sums, IN_TWO: tl.constexpr):
    """sums + x y in float32: on tensor cores each factor as a sum of two, and the product of both rests left out."""
    if IN_TWO:
        x_high, y_high = _high(x), _high(y)
        sums = tl.dot(x - x_high, y_high, sums, input_precision="tf32")
        sums = tl.dot(x_high, y - y_high, sums, input_precision="tf32")
        sums = tl.dot(x_high, y_high, sums, input_precision="tf32")
    else:
        sums = tl.dot(x, y, sums, input_precision="ieee")
    return sums


@jit
def _backward(
    h, bias, w, grad, to_h, to_sums, to_w, keys, leasts, scale, num_rows, chunks,
    PASSES: tl.constexpr, HIDDEN: tl.constexpr, WIDTH: tl.constexpr, COLUMNS: tl.constexpr, ROWS: tl.constexpr,
    STEPS: tl.constexpr, INNER: tl.constexpr, SLOT: tl.constexpr, SHIFT: tl.constexpr, ELU: tl.constexpr,
    DROP: tl.constexpr, RECTIFIED: tl.constexpr,
):  # fmt: skip
    replica = tl.program_id(2).to(tl.int64)
    chunk = tl.program_id(0)
    first = tl.program_id(1) * INNER
    inner = first + tl.arange(0, INNER)
    column = tl.arange(0, COLUMNS)
    h += replica * num_rows * HIDDEN
    to_h += replica * num_rows * HIDDEN
    grad += replica * num_rows * PASSES * SLOT + SHIFT
    w += replica * HIDDEN * WIDTH
    least, factor = 0, 1.0
    if DROP:
        least = tl.load(leasts + replica).to(tl.int32)
        factor = tl.load(scale + replica).to(h.dtype.element_ty)
    sums = tl.zeros([INNER, COLUMNS], h.dtype.element_ty)
    lanes = tl.zeros([ROWS, INNER], h.dtype.element_ty)  # of the column sums: they meet after the loop
    for step in range(STEPS):
        row = (chunk * STEPS + step) * ROWS + tl.arange(0, ROWS)
        real = row < num_rows
        there = real[:, None] & (column < WIDTH)[None, :]
        place = row[:, None] * HIDDEN + inner[None, :]
        tile = tl.load(h + place, real[:, None], other=0.0)
        if ELU:
            tile = tl.where(real[:, None], _elu(tile + tl.load(bias + replica * HIDDEN + inner)[None, :]), 0.0)
        total = tl.zeros([ROWS, INNER], h.dtype.element_ty)
        for number in tl.static_range(PASSES):
            slope = grad + row * (PASSES * SLOT) + number * SLOT
            slopes = tl.load(slope[:, None] + column[None, :], there, other=0.0)  # on its way while the others are used
            back = tl.zeros([ROWS, INNER], h.dtype.element_ty)
            for c in tl.static_range(WIDTH):  # an outer product a class: no padding, and nothing crosses the lanes
                back += tl.load(slope + c, real, other=0.0)[:, None] * tl.load(w + inner * WIDTH + c)[None, :]
            seen = tile
            if DROP:
                k1, k2 = _keys(keys, replica * PASSES + number)
                kept = _kept(row, first, k1, k2, least, HIDDEN, INNER)
                seen = tl.where(kept, tile, 0.0)
                back = tl.where(kept, back, 0.0)
            total += back
            sums = tl.dot(tl.trans(seen), slopes, sums, input_precision="ieee", out_dtype=h.dtype.element_ty)
        if DROP:
            total *= factor
        if RECTIFIED:
            total = tl.where(tile > 0, total, 0.0)
        if ELU:
            total = tl.where(tile > 0, total, total * (tile + 1))
        if ELU or RECTIFIED:
            lanes += total
        tl.store(to_h + place, total, real[:, None])
    if ELU or RECTIFIED:
        tl.store(to_sums + (replica * chunks + chunk) * HIDDEN + inner, tl.sum(lanes, 0))
    to_w += (replica * chunks + chunk) * HIDDEN * WIDTH
    tl.store(to_w + inner[:, None] * WIDTH + column[None, :], sums * factor, (column < WIDTH)[None, :])
