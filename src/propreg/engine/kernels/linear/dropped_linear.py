"""Dropout and a linear map to a few classes as one function: the twin of :mod:`propreg.engine.ops.dropout`'s.

Neither the mask nor the dropped activations are ever in memory: forward reads h once, backward reads it once and writes
its gradient. Float32 products stay float32: forward, each factor is split into two for the tensor cores, whose error
(6e-8) is below float32's rounding (1e-7); on an H200 that takes 6.5 µs of Physics instead of 11. Backward it is slower.
"""

from typing import Any

import torch
from torch import Tensor

from propreg.engine.kernels.dropout import drop
from propreg.engine.kernels.linear.dropped_kernels import backward_few, backward_many
from propreg.engine.kernels.linear.dropped_kernels import forward as forward_kernel
from propreg.engine.kernels.reductions import attach_column_sums
from propreg.engine.kernels.triton_names import LAUNCH, power_of_two, tiles
from propreg.engine.ops.dropout import Masks

NARROW = 16  # columns; for wider products cuBLAS is faster
FEW = 8  # classes up to which a thread keeps all sums of a backward pass


def dropped_linear(h: Tensor, w: Tensor, masks: Masks | None, *, rectified: bool = False) -> Tensor:
    """Dropout of h [R, N, H] with each replica's own mask and rate, times w [R, H, C].

    Args:
        h: The activations.
        w: The weights.
        masks: The dropout masks; None drops nothing.
        rectified: h is the output of a ReLU. Its gradient is then set to 0 where h is 0, which is the ReLU's backward
            pass at no cost.
    """
    z: Tensor = _DroppedLinear.apply(h.contiguous(), w.contiguous(), masks, rectified)  # type: ignore[no-untyped-call]
    return z


def elu_linear(h: Tensor, bias: Tensor, w: Tensor, masks: Masks | None, pitch: int | None = None) -> Tensor:
    """Dropout of elu(h + bias) for h [R, N, H] and bias [R, H], times w [R, H, C], where :func:`fused` supports them.

    The activations are recomputed where they are used, forward and backward, and are never in memory. Rows of length
    ``pitch`` are padded with zeros in front.
    """
    args = h.contiguous(), bias.contiguous(), w.contiguous(), masks, pitch or w.shape[2]
    z: Tensor = _EluLinear.apply(*args)  # type: ignore[no-untyped-call]
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
    """Whether the fused kernels support this product; others drop in one pass and use cuBLAS."""
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
    last: Tensor | None = None,
    whole_first: bool = False,
    pitch: int | None = None,
    members: int = 1,
) -> Tensor:
    """h w for a narrow w; with ``keys`` [R, passes, 2] one per pass, side by side; with a bias elu(h + bias) w.

    ``whole_first`` adds a pass without dropout before them, an evaluation. Rows of length ``pitch`` are padded with
    zeros in front. ``last`` [R, C] is added to each pass. The rows of a group's members are adjacent,
    [groups, N, members · pitch]; members beyond the replicas are zeros.
    """
    rows = 32
    replicas, num_rows, hidden = h.shape
    passes = whole_first + (1 if keys is None else keys.shape[1])
    pitch = pitch or passes * w.shape[2]
    out = h.new_empty(tiles(replicas, members), num_rows, members * pitch)
    if out.numel() and len(out) * members > replicas:
        out[-1].zero_()
    if out.numel():
        forward_kernel[tiles(num_rows, rows) * members, len(out)](
            h.view(torch.int64), h if bias is None else bias, w, h if last is None else last.contiguous(), out,
            *_pointers(masks, h, keys), num_rows, replicas,
            MEMBERS=members, ADD=last is not None, PASSES=passes, WHOLE=int(whole_first), HIDDEN=hidden,
            WIDTH=w.shape[2], COLUMNS=power_of_two(w.shape[2], least=8), PITCH=pitch, ROWS=rows,
            INNER=32, ELU=bias is not None, DROP=masks is not None,
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
    members: int = 1,
) -> tuple[Tensor, Tensor | None, Tensor]:
    """The gradients to h, the bias (or None) and w, of all passes.

    The gradient of a pass is stored in slots of its row, one for each member of a group, from ``shift`` on.
    """
    passes = 1 if keys is None else keys.shape[1]
    replicas, num_rows, hidden = h.shape
    few = w.shape[2] <= FEW
    inner, rows, warps = _few_shape(hidden) if few else _many_shape(hidden, rectified)
    chunk = 512 if num_rows > 16_384 else 128  # many programs for a small graph, few partial sums for a large one
    chunks = tiles(num_rows, chunk)
    to_h, parts = torch.empty_like(h), w.new_empty(replicas, chunks, hidden, w.shape[2])
    summed = rectified or bias is not None
    sum_parts = w.new_empty(replicas, chunks if summed else 0, hidden)
    if not h.numel():
        return to_h, None if bias is None else torch.zeros_like(bias), torch.zeros_like(w)
    if grad.data_ptr() % 8:  # numbers are loaded in pairs
        grad = grad.clone()
    kernel, kind, more = (backward_few, torch.int64, {}) if few else (backward_many, h.dtype, {"COLUMNS": NARROW})
    kernel[chunks * members, hidden // inner, tiles(replicas, members)](
        h.view(kind), h if bias is None else bias, w, grad, to_h.view(kind), sum_parts, parts,
        *_pointers(masks, h, keys), num_rows, chunks, replicas, tiles(min(num_rows, chunk), rows),
        MEMBERS=members, PASSES=passes, HIDDEN=hidden, WIDTH=w.shape[2], ROWS=rows, INNER=inner,
        SLOT=slot or w.shape[2], SHIFT=shift, ELU=bias is not None, DROP=masks is not None, RECTIFIED=rectified,
        num_warps=warps, **more, **LAUNCH,
    )  # fmt: skip
    sums = sum_parts.sum(1) if summed else None
    if sums is not None:
        attach_column_sums(to_h, sums)
    return to_h, None if bias is None else sums, parts.sum(1)


def _few_shape(hidden: int) -> tuple[int, int, int]:
    """Hidden units, rows and warps of a program: a row and four units per thread."""
    inner = _inner(hidden, 64)
    return inner, 8, inner // 16


def _many_shape(hidden: int, rectified: bool) -> tuple[int, int, int]:
    """The same for more classes; of five shapes the fastest on an H200 for Computers and CS, or within 9 % of it."""
    return (_inner(hidden, 64), 32, 4) if rectified else (_inner(hidden, 32), 32, 2)


def _inner(hidden: int, most: int) -> int:
    return max(n for n in (16, 32, 64) if hidden % n == 0 and n <= most)


def _pointers(masks: Masks | None, unused: Tensor, keys: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    if masks is None:
        return unused, unused, unused
    return masks.keys if keys is None else keys, masks.least, masks.scale
