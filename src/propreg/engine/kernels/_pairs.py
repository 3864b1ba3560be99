"""Two neighbouring hidden units as one number of 64 bits, and an activation."""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls
# Triton compiles its functions from their source: pointers and tiles have no types, constants are in capitals.

from propreg.engine.kernels._triton import jit, tl


@jit
def apart(pair):
    """The even and the odd unit."""
    return pair.to(tl.int32).to(tl.float32, bitcast=True), (pair >> 32).to(tl.int32).to(tl.float32, bitcast=True)


@jit
def joined(even, odd):
    """Both as one number again."""
    high = odd.to(tl.uint32, bitcast=True).to(tl.int64) << 32
    return high | even.to(tl.uint32, bitcast=True).to(tl.int64)


@jit
def elu(x):
    """exp(x) − 1 where x is negative."""
    return tl.where(x > 0, x, tl.exp(x) - 1)  # NaN stays NaN
