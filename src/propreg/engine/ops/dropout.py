"""Dropout whose mask is a function of (run, epoch, site), not of a generator's state.

Element e of a replica's tensor is dropped by half of the 32-bit word ``hash(e // 2 · k1 + k2)``: the mask is the same
for a run alone, in any batch and after compaction, and the backward pass can recompute it instead of storing it.
"""

import copy
import functools
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import elu

from propreg.engine import kernels
from propreg.engine.ops.random import mask_keys

LEVELS = 65536  # rates are rounded to 1/65536, and kept values are scaled by the rounded rate
KEY_BLOCK = 64  # epochs whose mask keys are transferred at a time

# Wellons' lowbias32: the best known two-multiplication mixer of 32 bits, as (shift, mask of the shifted, multiplier).
ROUNDS = ((16, 0xFFFF, 0x7FEB352D), (15, 0x1FFFF, 0x846CA68B - 2**32), (16, 0xFFFF, 0))


class Rates:
    """The dropout rate of each replica at one kind of site, as thresholds and scales. [R]."""

    def __init__(self, rate: Tensor) -> None:
        dropped = (rate.double() * LEVELS).round().clamp(max=LEVELS - 1)  # 16 bits do not hold a rate of 1
        self.rate = rate
        self.least = (dropped - LEVELS // 2).to(torch.int16)  # of a kept element's signed 16 bits
        self.scale = torch.where(rate.double() < 1, LEVELS / (LEVELS - dropped), 0.0)  # a rate of 1 keeps nothing

    def keep(self, kept: Tensor) -> "Rates":
        """Compact to these replicas."""
        return Rates(self.rate[kept])


class MaskKeys:
    """The keys of all replicas' masks, int32 [R, 2] per site, for the current epoch.

    A block of epochs is transferred to the device at a time, and the current keys stay at a fixed address.
    """

    def __init__(self, streams: NDArray[np.uint64], device: torch.device, epoch: int = 1) -> None:
        self.streams, self.device, self.epoch = streams, device, epoch
        self._current: dict[int, Tensor] = {}  # written in place, so that a captured graph sees every epoch's keys
        self._blocks: dict[int, tuple[int, Tensor]] = {}

    def advance(self, epoch: int) -> None:
        """Move all sites to this epoch."""
        self.epoch = epoch
        for site, keys in self._current.items():
            keys.copy_(self._lookup(site))

    def __call__(self, site: int) -> Tensor:
        if site not in self._current:
            self._current[site] = self._lookup(site).clone()
        return self._current[site]

    def keep(self, kept: NDArray[np.int64]) -> "MaskKeys":
        """Compact to these replicas."""
        return MaskKeys(self.streams[kept], self.device, self.epoch)

    def _lookup(self, site: int) -> Tensor:
        number, offset = divmod(self.epoch, KEY_BLOCK)
        if site not in self._blocks or self._blocks[site][0] != number:
            keys = np.stack([mask_keys(self.streams, number * KEY_BLOCK + i, site) for i in range(KEY_BLOCK)])
            self._blocks[site] = (number, torch.from_numpy(keys).to(self.device))
        return self._blocks[site][1][offset]


class Masks:
    """The masks of one site and epoch: keys int32 [R, 2], and the rate of each replica [R].

    ``streams`` are the random streams of the replicas on the host: those with equal ones have equal masks at the same
    rate, which a network may compute once.
    """

    def __init__(self, keys: Tensor, rates: Rates | Tensor, streams: NDArray[np.uint64] | None = None) -> None:
        rates = Rates(rates) if isinstance(rates, Tensor) else rates
        self.keys, self.least, self.scale, self.streams = keys, rates.least, rates.scale, streams

    def __len__(self) -> int:
        return len(self.keys)

    def of(self, rows: Tensor) -> "Masks":
        """The masks of these replicas."""
        some = copy.copy(self)
        some.keys, some.least, some.scale, some.streams = self.keys[rows], self.least[rows], self.scale[rows], None
        return some

    def kept(self, size: int, dtype: torch.dtype) -> Tensor:
        """1 for each of ``size`` elements that is kept, else 0. [R, size]."""
        x = hashed((size + 1) // 2, self.keys)
        kept = torch.empty(len(x), size, dtype=dtype, device=x.device)
        return torch.ge(
            x.view(torch.int16)[:, :size], self.least.unsqueeze(-1), out=kept
        )  # without an intermediate bool

    def factors(self, size: int, dtype: torch.dtype) -> Tensor:
        """The factor of each of ``size`` elements, 0 or 1/(1 − rate). [R, size]."""
        if kernels.usable(self.keys):
            return drop_(torch.ones(len(self), size, dtype=dtype, device=self.keys.device), self)
        return self.kept(size, dtype).mul_(self.scale.to(dtype).unsqueeze(-1))


def hashed(count: int, keys: Tensor) -> Tensor:
    """So many random words for each of the keys int32 [R, 2]. int32 [R, count]."""
    x = _words(count, keys.device) * keys[:, :1]
    x += keys[:, 1:]
    scratch = torch.empty_like(x)
    for shift, low, multiplier in ROUNDS:
        torch.bitwise_right_shift(x, shift, out=scratch)  # arithmetic: the copies of the sign are masked out
        x.bitwise_xor_(scratch.bitwise_and_(low))
        if multiplier:
            x.mul_(multiplier)
    return x


@functools.cache  # a recorded CUDA graph holds on to what it read: nothing may be let go of
def _words(count: int, device: torch.device) -> Tensor:
    return torch.arange(count, dtype=torch.int32, device=device)


def dropped_linear(h: Tensor, w: Tensor, masks: Masks | None, *, rectified: bool = False) -> Tensor:
    """Dropout of h [R, N, H] with each replica's own mask and rate, times w [R, H, C].

    With ``rectified`` h comes from :func:`.activation.propagate_relu`, which leaves the ReLU's backward pass to this
    function.
    """
    if kernels.usable(h, w):
        from propreg.engine.kernels.linear import dropped_linear as kernel

        return kernel.dropped_linear(h, w, masks, rectified=rectified)
    z: Tensor = _DroppedLinear.apply(h, w, masks, rectified)  # type: ignore[no-untyped-call]
    return z


def dropped(h: Tensor, masks: Masks | None) -> Tensor:
    """Dropout of h [R, N, H] with each replica's own mask and rate."""
    if masks is None:
        return h
    out: Tensor = _Dropout.apply(h, masks)  # type: ignore[no-untyped-call]
    return out


def drop_(h: Tensor, masks: Masks) -> Tensor:
    """Dropout of h [R, …], contiguous, in place and without a gradient."""
    if kernels.usable(h):
        from propreg.engine.kernels.dropout import drop

        return drop(h, masks, in_place=True)
    return h.mul_(masks.factors(h[0].numel(), h.dtype).view(h.shape))


class _Dropout(torch.autograd.Function):
    """On a GPU the backward pass computes the mask again: stored, those of a deep network are half of its memory."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, masks: Masks) -> Tensor:
        ctx.masks, ctx.factors = masks, None
        if kernels.usable(h):
            return _drop(h, masks)
        factors = masks.factors(h[0].numel(), h.dtype).view(h.shape)
        if not h.is_cuda:
            ctx.factors = factors
        return h * factors

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        if kernels.usable(grad):
            return _drop(grad, ctx.masks), None
        factors = ctx.factors
        if factors is None:
            factors = ctx.masks.factors(grad[0].numel(), grad.dtype).view(grad.shape)
        return grad * factors, None


def _drop(x: Tensor, masks: Masks) -> Tensor:
    from propreg.engine.kernels.dropout import drop

    return drop(x.contiguous(), masks)


def elu_linear(h: Tensor, bias: Tensor, w: Tensor, masks: Masks | None, row: int | None = None) -> Tensor:
    """Dropout of elu(h + bias) for h [R, N, H] and bias [R, H], times w [R, H, C].

    ``row`` is the length of the output's rows, padded with zeros in front: the result of :func:`row_for`, or None.
    """
    if kernels.usable(h, bias, w):
        from propreg.engine.kernels.linear import dropped_linear as kernel

        if kernel.fused(h, w):
            return kernel.elu_linear(h, bias, w, masks, row)
    if row is not None:
        raise ValueError("only the kernels pad rows: pass the result of row_for.")
    return dropped_linear(elu(h + bias.unsqueeze(1)), w, masks)


def row_for(h: Tensor, w: Tensor) -> int | None:
    """The length of rows of h w that is fast to gather, where kernels support it; else None."""
    if not kernels.usable(h, w):
        return None
    from propreg.engine.kernels.layout import slot_width
    from propreg.engine.kernels.linear.dropped_linear import fused

    return slot_width(w.shape[2]) if fused(h, w) else None


class _DroppedLinear(torch.autograd.Function):
    """One function, to save only what the backward pass needs. The scale is applied to the small factor."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, w: Tensor, masks: Masks | None, rectified: bool) -> Tensor:
        kept = None
        if masks is not None:
            kept = masks.kept(h[0].numel(), h.dtype).view(h.shape)
            # After a ReLU neither dropped elements nor zeros receive a gradient: the product marks both.
            h, kept = (kept.mul_(h), None) if rectified else (h * kept, kept)
            ctx.scale = masks.scale.to(w.dtype).view(-1, 1, 1)
            w = w * ctx.scale
        ctx.rectified, ctx.dropped = rectified, masks is not None
        ctx.save_for_backward(h, w, kept)
        return times(h, w)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None, None]:
        h, w, kept = ctx.saved_tensors
        to_w = transposed_times(h, grad)
        to_h = torch.bmm(grad, w.transpose(1, 2))
        if ctx.dropped:
            to_w *= ctx.scale
        if ctx.rectified:
            torch.ops.aten.threshold_backward.grad_input(to_h, h, 0, grad_input=to_h)
        elif kept is not None:
            to_h *= kept
        return to_h, to_w, None, None


# On a CPU, products with fewer columns than a vector has lanes are several times faster with the columns outermost.
NARROW = 16


def times(h: Tensor, w: Tensor) -> Tensor:
    """h [R, N, H] times w [R, H, C]."""
    if w.shape[2] >= NARROW or h.is_cuda:
        return torch.bmm(h, w)
    return torch.bmm(w.transpose(1, 2).contiguous(), h.transpose(1, 2)).transpose(1, 2).contiguous()


def transposed_times(h: Tensor, grad: Tensor) -> Tensor:
    """hᵀ [R, H, N] times grad [R, N, C]."""
    if grad.shape[2] >= NARROW or h.is_cuda:
        return torch.bmm(h.transpose(1, 2), grad)
    return torch.bmm(grad.transpose(1, 2).contiguous(), h).transpose(1, 2).contiguous()
