"""The forward kernel of :mod:`.dropped_linear`."""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls, disable-error-code="assignment"
# ruff: noqa: N803, RUF005
# Triton compiles its functions from their source: pointers and tiles have no types, constants are in capitals.

from propreg.engine.kernels._hash import keep_pair, keys_of
from propreg.engine.kernels._pairs import apart, elu
from propreg.engine.kernels._triton import jit, tl


@jit
def forward(
    h, bias, w, last, out, keys, leasts, scale, num_rows, num_replicas,
    MEMBERS: tl.constexpr, ADD: tl.constexpr, PASSES: tl.constexpr, WHOLE: tl.constexpr, HIDDEN: tl.constexpr,
    WIDTH: tl.constexpr, COLUMNS: tl.constexpr, PITCH: tl.constexpr, ROWS: tl.constexpr, INNER: tl.constexpr,
    ELU: tl.constexpr, DROP: tl.constexpr, IN_TWO: tl.constexpr,
):  # fmt: skip
    """``h`` comes as pairs of neighbouring hidden units, 64 bits each: the two whose masks share a hash.

    A product over the even units and one over the odd ones then need no mask to be moved between threads.
    """
    # The members of a group are next to each other: what they write is whole in the cache before memory gets it.
    group, member = tl.program_id(1).to(tl.int64), tl.program_id(0) % MEMBERS
    replica = group * MEMBERS + member
    if replica >= num_replicas:
        return
    row = tl.program_id(0) // MEMBERS * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, COLUMNS)
    real = (row < num_rows)[:, None]
    there = (column < WIDTH)[None, :]
    h += replica * num_rows * (HIDDEN // 2)
    w += replica * HIDDEN * WIDTH
    out += group * num_rows * (MEMBERS * PITCH) + member * PITCH
    least, factor = 0, 1.0
    if DROP:
        least = tl.load(leasts + replica).to(tl.int32)
        factor = tl.load(scale + replica).to(tl.float32)
    every = ()
    for _ in tl.static_range(PASSES):
        every = every + (tl.zeros([ROWS, COLUMNS], tl.float32),)
    for first in range(0, HIDDEN, INNER):
        even, odd = _activations(h, bias, row, first, replica, real, HIDDEN, INNER, ELU)
        word = first // 2 + tl.arange(0, INNER // 2)
        weight = w + 2 * word[:, None] * WIDTH + column[None, :]
        inside = there
        if HIDDEN % INNER > 0:  # products are of 32 units at least, and 16 may be all there are
            inside = there & (word < HIDDEN // 2)[:, None]
        w_even, w_odd = tl.load(weight, inside, other=0.0), tl.load(weight + WIDTH, inside, other=0.0)
        sums = ()
        for number in tl.static_range(PASSES):
            a, b = even, odd
            if DROP and number >= WHOLE:
                k1, k2 = keys_of(keys, replica * (PASSES - WHOLE) + number - WHOLE)
                low, high = keep_pair(row[:, None] * (HIDDEN // 2) + word[None, :], k1, k2, least)
                a, b = tl.where(low, even, 0.0), tl.where(high, odd, 0.0)
            sums = sums + (_times(b, w_odd, _times(a, w_even, every[number], IN_TWO), IN_TWO),)
        every = sums
    for number in tl.static_range(PASSES):
        added = 0.0
        if ADD:
            added = tl.load(last + replica * WIDTH + column, column < WIDTH, other=0.0)[None, :]
        place = row[:, None] * (MEMBERS * PITCH) + (PITCH - (PASSES - number) * WIDTH) + column[None, :]
        tl.store(out + place, every[number] * (factor if number >= WHOLE else 1.0) + added, real & there)
    if PITCH > PASSES * WIDTH:
        front = tl.arange(0, 8)[None, :]
        zeros = tl.zeros([ROWS, 8], tl.float32)
        tl.store(out + row[:, None] * (MEMBERS * PITCH) + front, zeros, real & (front < PITCH - PASSES * WIDTH))


@jit
def _activations(
    h, bias, row, first, replica, real, HIDDEN: tl.constexpr, INNER: tl.constexpr, ELU: tl.constexpr
):  # fmt: skip
    """The even and the odd units of a tile."""
    word = first // 2 + tl.arange(0, INNER // 2)
    if HIDDEN % INNER > 0:
        real = real & (word < HIDDEN // 2)[None, :]
    pair = tl.load(h + row[:, None] * (HIDDEN // 2) + word[None, :], real, other=0)
    even, odd = apart(pair)
    if ELU:
        bias += replica * HIDDEN + 2 * word
        unit = word < HIDDEN // 2
        even = elu(even + tl.load(bias, unit, other=0.0)[None, :])
        odd = elu(odd + tl.load(bias + 1, unit, other=0.0)[None, :])
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
