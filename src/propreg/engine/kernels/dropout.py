"""Dropout in one pass, without a mask in memory: the twin of a product with :meth:`Masks.factors`."""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls
# ruff: noqa: N803
# Triton compiles its functions from their source: pointers and tiles have no types, constants are in capitals.

import torch
from torch import Tensor

from propreg.engine.dropout import Masks
from propreg.engine.kernels._hash import keep_pair, mask_settings
from propreg.engine.kernels._triton import LAUNCH, jit, power_of_two, tiles, tl


def drop(x: Tensor, masks: Masks, *, in_place: bool = False) -> Tensor:
    """Dropout of x [R, …], contiguous, with each replica's own mask and rate; ``in_place`` overwrites x."""
    out = x if in_place else torch.empty_like(x)
    if x.numel():
        size = x[0].numel()
        words = min(power_of_two((size + 1) // 2), 512)
        _drop[tiles(size, 2 * words), len(x)](
            x, out, masks.keys, masks.least, masks.scale, size, WORDS=words, num_warps=4, **LAUNCH
        )
    return out


@jit
def _drop(x, out, keys, leasts, scale, size, WORDS: tl.constexpr):
    replica = tl.program_id(1)
    k1, k2, least = mask_settings(keys, leasts, replica)
    factor = tl.load(scale + replica).to(x.dtype.element_ty)
    first = tl.program_id(0) * 2 * WORDS
    low, high = keep_pair(first // 2 + tl.arange(0, WORDS), k1, k2, least)
    kept = tl.reshape(tl.join(low.to(tl.int8), high.to(tl.int8)), [2 * WORDS]) != 0
    element = first + tl.arange(0, 2 * WORDS)
    base = replica.to(tl.int64) * size
    value = tl.load(x + base + element, element < size, other=0.0)
    tl.store(out + base + element, tl.where(kept, value * factor, 0.0), element < size)
