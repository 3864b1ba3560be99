"""Dropout inside kernels: the masks of :mod:`propreg.engine.ops.dropout` bit for bit, and dropout in one pass.

No mask is ever in memory: :func:`drop` is the twin of a product with :meth:`Masks.factors`.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls
# ruff: noqa: N803
# Triton compiles its functions from their source: pointers and tiles have no types, constants are in capitals.

import torch
from torch import Tensor

from propreg.engine.kernels.triton_names import LAUNCH, jit, power_of_two, tiles, tl
from propreg.engine.ops.dropout import Masks


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
    low, high = is_kept_pair(first // 2 + tl.arange(0, WORDS), k1, k2, least)
    kept = tl.reshape(tl.join(low.to(tl.int8), high.to(tl.int8)), [2 * WORDS]) != 0
    element = first + tl.arange(0, 2 * WORDS)
    base = replica.to(tl.int64) * size
    value = tl.load(x + base + element, element < size, other=0.0)
    tl.store(out + base + element, tl.where(kept, value * factor, 0.0), element < size)


@jit
def mask_settings(keys, least, replica):
    """A replica's two keys, and the smallest signed 16-bit number that is kept."""
    k1, k2 = keys_of(keys, replica)
    return k1, k2, tl.load(least + replica).to(tl.int32)


@jit
def keys_of(keys, number):
    """The two keys of a mask."""
    k1 = tl.load(keys + 2 * number).to(tl.uint32, bitcast=True)
    return k1, tl.load(keys + 2 * number + 1).to(tl.uint32, bitcast=True)


@jit
def random_word(word, k1, k2):
    """Wellons' lowbias32 of the word's index: 32 bits shared by two neighboring elements."""
    x = word.to(tl.uint32) * k1 + k2
    x = (x ^ (x >> 16)) * 0x7FEB352D
    x = (x ^ (x >> 15)) * 0x846CA68B
    return (x ^ (x >> 16)).to(tl.int32, bitcast=True)


@jit
def is_kept_pair(word, k1, k2, least):
    """Whether elements 2 · word and 2 · word + 1 are kept."""
    x, least = random_word(word, k1, k2), least << 16
    return (x << 16) >= least, x >= least


@jit
def is_kept(element, k1, k2, least):
    """Whether single elements are kept."""
    x = random_word(element >> 1, k1, k2)
    return (x << (16 - 16 * (element & 1))) >= (least << 16)
