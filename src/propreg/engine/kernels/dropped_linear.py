"""Dropout and a linear map to a few classes as one function, the twin of :func:`propreg.engine.dropout.dropped_linear`.

Neither the mask nor the dropped activations are ever in memory: forward reads h once, backward reads it once and writes
its gradient. Float32 products stay float32: forward each factor is the sum of two that tensor cores take (``tf32x3``),
which is as exact (1.3e-7 against 1.1e-7) and on an H200 takes 7.4 µs of Physics instead of 11; backward it is slower.
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


def elu_linear(h: Tensor, bias: Tensor, w: Tensor, masks: Masks | None) -> Tensor:
    """Dropout of elu(h + bias) for h [R, N, H] and bias [R, H], times w [R, H, C], where :func:`fused` takes them.

    The activations are computed where they are used, forward and backward, and are never in memory.
    """
    z: Tensor = _EluLinear.apply(h.contiguous(), bias.contiguous(), w.contiguous(), masks)
    return z


class _EluLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, h: Tensor, bias: Tensor, w: Tensor, masks: Masks | None) -> Tensor:
        ctx.save_for_backward(h, bias, w)
        ctx.masks = masks
        return forward(h, w, masks, bias=bias)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor | None, Tensor, None]:
        h, bias, w = ctx.saved_tensors
        return *backward(h, w, grad.contiguous(), ctx.masks, False, bias=bias), None


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
) -> Tensor:
    """The product of a narrow w; with ``keys`` [R, passes, 2] one for each pass, side by side; of elu(h + bias).

    ``whole_first`` puts a pass before them in which nothing is dropped: an evaluation.
    """
    rows = 64
    replicas, num_rows, hidden = h.shape
    passes = whole_first + (1 if keys is None else keys.shape[1])
    out = h.new_empty(replicas, num_rows, passes * w.shape[2])
    if out.numel():
        _forward[tiles(num_rows, rows), replicas](
            h, h if bias is None else bias, w, out, *_pointers(masks, h, keys), num_rows,
            PASSES=passes, WHOLE=int(whole_first), HIDDEN=hidden, WIDTH=w.shape[2],
            COLUMNS=power_of_two(w.shape[2], least=8), ROWS=rows, INNER=_inner(hidden, 64 if hidden <= 64 else 32),
            ELU=bias is not None, DROP=masks is not None, PRECISION="ieee" if torch.version.hip else "tf32x3",
            num_warps=4, **LAUNCH,
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
) -> tuple[Tensor, Tensor | None, Tensor]:
    """The gradients to h, the bias (None where there is none) and w, of all passes."""
    passes = 1 if keys is None else keys.shape[1]
    replicas, num_rows, hidden = h.shape
    rows, most, warps = _backward_shape(w.shape[2])
    chunk = 512 if num_rows > 16_384 else 128  # many programs for a small graph, few partial sums for a big one
    chunks = tiles(num_rows, chunk)
    to_h, parts = torch.empty_like(h), w.new_empty(replicas, chunks, hidden, w.shape[2])
    bias_parts = w.new_empty(replicas, 0 if bias is None else chunks, hidden)
    if not h.numel():
        return to_h, None if bias is None else torch.zeros_like(bias), torch.zeros_like(w)
    inner = _inner(hidden, most)
    _backward[chunks, hidden // inner, replicas](
        h, h if bias is None else bias, w, grad, to_h, bias_parts, parts, *_pointers(masks, h, keys), num_rows, chunks,
        PASSES=passes, HIDDEN=hidden, WIDTH=w.shape[2], COLUMNS=power_of_two(w.shape[2], least=8), ROWS=rows,
        STEPS=chunk // rows, INNER=inner, ELU=bias is not None, DROP=masks is not None, RECTIFIED=rectified,
        num_warps=warps, **LAUNCH,
    )  # fmt: skip
    return to_h, None if bias is None else bias_parts.sum(1), parts.sum(1)


def _backward_shape(width: int) -> tuple[int, int, int]:
    """Rows and at most so many hidden units that a program holds at once, and its warps.

    Of eleven shapes the fastest on an H200, or within 9 % of it, in eleven cases: GCN on all datasets but CiteSeer, GAT
    on all but CiteSeer and PubMed.
    """
    if width < 8:
        return 32, 64, 4
    return 32, 32, 2 if width <= 10 else 4


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
    ROWS: tl.constexpr, INNER: tl.constexpr, ELU: tl.constexpr, DROP: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    replica = tl.program_id(1).to(tl.int64)
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, COLUMNS)
    real = (row < num_rows)[:, None]
    there = (column < WIDTH)[None, :]
    h += replica * num_rows * HIDDEN
    w += replica * HIDDEN * WIDTH
    out += replica * num_rows * PASSES * WIDTH
    least, factor = 0, 1.0
    if DROP:
        least = tl.load(leasts + replica).to(tl.int32)
        factor = tl.load(scale + replica).to(h.dtype.element_ty)
    tile = tl.zeros([ROWS, INNER], h.dtype.element_ty)
    if INNER == HIDDEN:
        tile = _activations(h, bias, row, 0, replica, real, HIDDEN, INNER, ELU)
    for number in tl.static_range(PASSES):
        k1, k2 = 0, 0
        if DROP and number >= WHOLE:
            k1, k2 = _keys(keys, replica * (PASSES - WHOLE) + number - WHOLE)
        sums = tl.zeros([ROWS, COLUMNS], h.dtype.element_ty)
        for first in range(0, HIDDEN, INNER):
            seen = tile
            if INNER < HIDDEN:  # another pass finds them in the cache
                seen = _activations(h, bias, row, first, replica, real, HIDDEN, INNER, ELU)
            if DROP and number >= WHOLE:
                seen = tl.where(_kept(row, first, k1, k2, least, HIDDEN, INNER), seen, 0.0)
            inner = first + tl.arange(0, INNER)
            weight = tl.load(w + inner[:, None] * WIDTH + column[None, :], there, other=0.0)
            sums = tl.dot(seen, weight, sums, input_precision=PRECISION, out_dtype=h.dtype.element_ty)
        if number >= WHOLE:
            sums *= factor
        place = row[:, None] * (PASSES * WIDTH) + number * WIDTH + column[None, :]
        tl.store(out + place, sums, real & there)


@jit
def _activations(
    h, bias, row, first, replica, real, HIDDEN: tl.constexpr, INNER: tl.constexpr, ELU: tl.constexpr
):  # fmt: skip
    inner = first + tl.arange(0, INNER)
    tile = tl.load(h + row[:, None] * HIDDEN + inner[None, :], real, other=0.0)
    if ELU:
        tile = _elu(tile + tl.load(bias + replica * HIDDEN + inner)[None, :])
    return tile


@jit
def _backward(
    h, bias, w, grad, to_h, to_bias, to_w, keys, leasts, scale, num_rows, chunks,
    PASSES: tl.constexpr, HIDDEN: tl.constexpr, WIDTH: tl.constexpr, COLUMNS: tl.constexpr, ROWS: tl.constexpr,
    STEPS: tl.constexpr, INNER: tl.constexpr, ELU: tl.constexpr, DROP: tl.constexpr, RECTIFIED: tl.constexpr,
):  # fmt: skip
    replica = tl.program_id(2).to(tl.int64)
    chunk = tl.program_id(0)
    first = tl.program_id(1) * INNER
    inner = first + tl.arange(0, INNER)
    column = tl.arange(0, COLUMNS)
    h += replica * num_rows * HIDDEN
    to_h += replica * num_rows * HIDDEN
    grad += replica * num_rows * PASSES * WIDTH
    w += replica * HIDDEN * WIDTH
    least, factor = 0, 1.0
    if DROP:
        least = tl.load(leasts + replica).to(tl.int32)
        factor = tl.load(scale + replica).to(h.dtype.element_ty)
    sums = tl.zeros([INNER, COLUMNS], h.dtype.element_ty)
    lanes = tl.zeros([ROWS, INNER], h.dtype.element_ty)  # of the gradient to the bias: they meet after the loop
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
            slope = grad + row * (PASSES * WIDTH) + number * WIDTH
            back = tl.zeros([ROWS, INNER], h.dtype.element_ty)
            for c in tl.static_range(WIDTH):  # an outer product a class: no padding, and nothing crosses the lanes
                back += tl.load(slope + c, real, other=0.0)[:, None] * tl.load(w + inner * WIDTH + c)[None, :]
            seen = tile
            if DROP:
                k1, k2 = _keys(keys, replica * PASSES + number)
                kept = _kept(row, first, k1, k2, least, HIDDEN, INNER)
                seen = tl.where(kept, tile, 0.0)
                back = tl.where(kept, back * factor, 0.0)
            total += back
            slopes = tl.load(slope[:, None] + column[None, :], there, other=0.0)
            sums = tl.dot(tl.trans(seen), slopes, sums, input_precision="ieee", out_dtype=h.dtype.element_ty)
        if RECTIFIED:
            total = tl.where(tile > 0, total, 0.0)
        if ELU:
            total = tl.where(tile > 0, total, total * (tile + 1))
            lanes += total
        tl.store(to_h + place, total, real[:, None])
    if ELU:
        tl.store(to_bias + (replica * chunks + chunk) * HIDDEN + inner, tl.sum(lanes, 0))
    to_w += (replica * chunks + chunk) * HIDDEN * WIDTH
    tl.store(to_w + inner[:, None] * WIDTH + column[None, :], sums * factor, (column < WIDTH)[None, :])
