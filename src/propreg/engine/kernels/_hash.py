"""The dropout masks of :mod:`propreg.engine.dropout` inside a kernel, bit for bit."""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls
# Triton compiles its functions from their source: pointers and tiles have no types, constants are in capitals.

from propreg.engine.kernels._triton import jit, tl


@jit
def mask_settings(keys, least, replica):
    """A replica's two keys, and the least signed 16-bit number that is kept."""
    k1, k2 = keys_of(keys, replica)
    return k1, k2, tl.load(least + replica).to(tl.int32)


@jit
def keys_of(keys, number):
    """The two keys of a mask."""
    k1 = tl.load(keys + 2 * number).to(tl.uint32, bitcast=True)
    return k1, tl.load(keys + 2 * number + 1).to(tl.uint32, bitcast=True)


@jit
def random_word(word, k1, k2):
    """Wellons' lowbias32 of the word's number: 32 bits that two neighbouring elements share."""
    x = word.to(tl.uint32) * k1 + k2
    x = (x ^ (x >> 16)) * 0x7FEB352D
    x = (x ^ (x >> 15)) * 0x846CA68B
    return (x ^ (x >> 16)).to(tl.int32, bitcast=True)


@jit
def keep_pair(word, k1, k2, least):
    """Whether elements 2 · word and 2 · word + 1 are kept."""
    x, least = random_word(word, k1, k2), least << 16
    return (x << 16) >= least, x >= least


@jit
def keep(element, k1, k2, least):
    """Whether single elements are kept."""
    x = random_word(element >> 1, k1, k2)
    return (x << (16 - 16 * (element & 1))) >= (least << 16)
