"""The kernels of :mod:`.dropped_linear`: forward, backward for a few classes, and backward for more."""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls, disable-error-code="assignment"
# ruff: noqa: N803, RUF005
# Triton compiles its functions from their source: pointers and tiles have no types, constants are in capitals.

from propreg.engine.kernels.dropout import is_kept_pair, keys_of
from propreg.engine.kernels.triton_names import jit, tl


@jit
def forward(
    h, bias, w, last, out, keys, leasts, scale, num_rows, num_replicas,
    MEMBERS: tl.constexpr, ADD: tl.constexpr, PASSES: tl.constexpr, WHOLE: tl.constexpr, HIDDEN: tl.constexpr,
    WIDTH: tl.constexpr, COLUMNS: tl.constexpr, PITCH: tl.constexpr, ROWS: tl.constexpr, INNER: tl.constexpr,
    ELU: tl.constexpr, DROP: tl.constexpr, IN_TWO: tl.constexpr,
):  # fmt: skip
    """``h`` is read as pairs of neighboring hidden units, 64 bits each, whose masks share a hash.

    With one product over the even and one over the odd units no mask moves between threads.
    """
    # Members of a group are adjacent programs: the sectors they write fill up in the cache before eviction.
    group, member = tl.program_id(1).to(tl.int64), tl.program_id(0) % MEMBERS
    replica = group * MEMBERS + member
    if replica >= num_replicas:
        return
    row = tl.program_id(0) // MEMBERS * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, COLUMNS)
    real = (row < num_rows)[:, None]
    mask = (column < WIDTH)[None, :]
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
        inside = mask
        if HIDDEN % INNER > 0:  # products take at least 32 units, and there may be only 16
            inside = mask & (word < HIDDEN // 2)[:, None]
        w_even, w_odd = tl.load(weight, inside, other=0.0), tl.load(weight + WIDTH, inside, other=0.0)
        sums = ()
        for number in tl.static_range(PASSES):
            a, b = even, odd
            if DROP and number >= WHOLE:
                k1, k2 = keys_of(keys, replica * (PASSES - WHOLE) + number - WHOLE)
                low, high = is_kept_pair(row[:, None] * (HIDDEN // 2) + word[None, :], k1, k2, least)
                a, b = tl.where(low, even, 0.0), tl.where(high, odd, 0.0)
            sums = sums + (_times(b, w_odd, _times(a, w_even, every[number], IN_TWO), IN_TWO),)
        every = sums
    for number in tl.static_range(PASSES):
        added = 0.0
        if ADD:
            added = tl.load(last + replica * WIDTH + column, column < WIDTH, other=0.0)[None, :]
        place = row[:, None] * (MEMBERS * PITCH) + (PITCH - (PASSES - number) * WIDTH) + column[None, :]
        tl.store(out + place, every[number] * (factor if number >= WHOLE else 1.0) + added, real & mask)
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
    even, odd = unpacked(pair)
    if ELU:
        bias += replica * HIDDEN + 2 * word
        unit = word < HIDDEN // 2
        even = elu(even + tl.load(bias, unit, other=0.0)[None, :])
        odd = elu(odd + tl.load(bias + 1, unit, other=0.0)[None, :])
    return even, odd


@jit
def _high(x):
    """A float32 rounded to the bits that tensor cores use."""
    return ((x.to(tl.int32, bitcast=True) + 4096) & -8192).to(tl.float32, bitcast=True)


@jit
def _times(x, y, sums, IN_TWO: tl.constexpr):
    """sums + x y in float32: on tensor cores each factor is a sum of two, without the product of the two rests."""
    if IN_TWO:
        x_high, y_high = _high(x), _high(y)
        sums = tl.dot(x - x_high, y_high, sums, input_precision="tf32")
        sums = tl.dot(x_high, y - y_high, sums, input_precision="tf32")
        sums = tl.dot(x_high, y_high, sums, input_precision="tf32")
    else:
        sums = tl.dot(x, y, sums, input_precision="ieee")
    return sums


@jit
def backward_few(  # noqa: PLR0915  (even and odd units, each line twice)
    h, bias, w, grad, to_h, to_sums, to_w, keys, leasts, scale, num_rows, chunks, num_replicas, num_steps,
    MEMBERS: tl.constexpr, PASSES: tl.constexpr, HIDDEN: tl.constexpr, WIDTH: tl.constexpr, ROWS: tl.constexpr,
    INNER: tl.constexpr, SLOT: tl.constexpr, SHIFT: tl.constexpr, ELU: tl.constexpr,
    DROP: tl.constexpr, RECTIFIED: tl.constexpr,
):  # fmt: skip
    """``h`` and its gradient are pairs of neighboring hidden units, as in :func:`.forward`.

    A thread keeps the weights of its units and the sums of their gradients, a number per class, in registers, and so
    all that it adds to them: nothing goes through shared memory before the last row.
    """
    group, member = tl.program_id(2).to(tl.int64), tl.program_id(0) % MEMBERS
    replica = group * MEMBERS + member
    if replica >= num_replicas:
        return
    chunk = tl.program_id(0) // MEMBERS
    word = tl.program_id(1) * (INNER // 2) + tl.arange(0, INNER // 2)
    unit = 2 * word
    h += replica * num_rows * (HIDDEN // 2)
    to_h += replica * num_rows * (HIDDEN // 2)
    grad += group * num_rows * (PASSES * MEMBERS * SLOT) + member * SLOT
    w += replica * HIDDEN * WIDTH
    bias += replica * HIDDEN
    least, factor = 0, 1.0
    if DROP:
        least = tl.load(leasts + replica).to(tl.int32)
        factor = tl.load(scale + replica).to(tl.float32)
    zero = tl.zeros([ROWS, INNER // 2], tl.float32)
    w_even, w_odd, to_even, to_odd = (), (), (), ()
    for c in tl.static_range(WIDTH):
        w_even = w_even + (tl.load(w + unit * WIDTH + c)[None, :],)
        w_odd = w_odd + (tl.load(w + (unit + 1) * WIDTH + c)[None, :],)
        to_even = to_even + (zero,)
        to_odd = to_odd + (zero,)
    all_even, all_odd = zero, zero
    row = chunk * num_steps * ROWS + tl.arange(0, ROWS)
    place = row[:, None] * (HIDDEN // 2) + word[None, :]
    pair = tl.load(h + place, (row < num_rows)[:, None], other=0)
    slopes = _slopes(grad, row, num_rows, MEMBERS, PASSES, SLOT, SHIFT, WIDTH)
    for _ in range(num_steps):
        real = row < num_rows
        even, odd = unpacked(pair)
        # Prefetch the next rows while these are used: on an H200 Physics takes 6.8 µs instead of 7.4.
        row += ROWS
        pair = tl.load(h + place + ROWS * (HIDDEN // 2), (row < num_rows)[:, None], other=0)
        next_slopes = _slopes(grad, row, num_rows, MEMBERS, PASSES, SLOT, SHIFT, WIDTH)
        if ELU:
            even = tl.where(real[:, None], elu(even + tl.load(bias + unit)[None, :]), 0.0)
            odd = tl.where(real[:, None], elu(odd + tl.load(bias + unit + 1)[None, :]), 0.0)
        total_even, total_odd = zero, zero
        for number in tl.static_range(PASSES):
            back_even, back_odd = zero, zero
            for c in tl.static_range(WIDTH):
                back_even += slopes[number * WIDTH + c][:, None] * w_even[c]
                back_odd += slopes[number * WIDTH + c][:, None] * w_odd[c]
            seen_even, seen_odd = even, odd
            if DROP:
                k1, k2 = keys_of(keys, replica * PASSES + number)
                low, high = is_kept_pair(place, k1, k2, least)
                seen_even, seen_odd = tl.where(low, even, 0.0), tl.where(high, odd, 0.0)
                back_even, back_odd = tl.where(low, back_even, 0.0), tl.where(high, back_odd, 0.0)
            total_even += back_even
            total_odd += back_odd
            to_even = _each_plus(to_even, seen_even, slopes, number)
            to_odd = _each_plus(to_odd, seen_odd, slopes, number)
        total_even = _gated(total_even * factor, even, ELU, RECTIFIED)
        total_odd = _gated(total_odd * factor, odd, ELU, RECTIFIED)
        all_even += total_even
        all_odd += total_odd
        tl.store(to_h + place, packed(total_even, total_odd), real[:, None])
        slopes = next_slopes
        place += ROWS * (HIDDEN // 2)
    if ELU or RECTIFIED:
        to_sums += (replica * chunks + chunk) * HIDDEN
        tl.store(to_sums + unit, tl.sum(all_even, 0))
        tl.store(to_sums + unit + 1, tl.sum(all_odd, 0))
    to_w += (replica * chunks + chunk) * HIDDEN * WIDTH
    for c in tl.static_range(WIDTH):
        tl.store(to_w + unit * WIDTH + c, tl.sum(to_even[c], 0) * factor)
        tl.store(to_w + (unit + 1) * WIDTH + c, tl.sum(to_odd[c], 0) * factor)


@jit
def _slopes(
    grad, row, num_rows,
    MEMBERS: tl.constexpr, PASSES: tl.constexpr, SLOT: tl.constexpr, SHIFT: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """The gradients of each class [rows], one pass after the other; two per load in slots of even length."""
    real = row < num_rows
    found = ()
    for number in tl.static_range(PASSES):
        slot = grad + (row * PASSES + number) * (MEMBERS * SLOT)
        if SLOT % 2 == 0:
            for two in tl.static_range(SHIFT // 2, (SHIFT + WIDTH + 1) // 2):
                low, high = unpacked(tl.load(slot.to(tl.pointer_type(tl.int64), bitcast=True) + two, real, other=0))
                if 2 * two >= SHIFT:
                    found = found + (low,)
                if 2 * two + 1 < SHIFT + WIDTH:
                    found = found + (high,)
        else:
            for c in tl.static_range(WIDTH):
                found = found + (tl.load(slot + SHIFT + c, real, other=0.0),)
    return found


@jit
def _each_plus(sums, seen, slopes, number: tl.constexpr):
    """The sums of each class, plus the contribution of some rows in one pass."""
    found = ()
    for c in tl.static_range(len(sums)):
        found = found + (sums[c] + seen * slopes[number * len(sums) + c][:, None],)
    return found


@jit
def _gated(total, tile, ELU: tl.constexpr, RECTIFIED: tl.constexpr):
    """The gradient before the activation whose output is the tile."""
    if RECTIFIED:
        total = tl.where(tile > 0, total, 0.0)
    if ELU:
        total = tl.where(tile > 0, total, total * (tile + 1))
    return total


@jit
def backward_many(
    h, bias, w, grad, to_h, to_sums, to_w, keys, leasts, scale, num_rows, chunks, num_replicas, num_steps,
    MEMBERS: tl.constexpr, PASSES: tl.constexpr, HIDDEN: tl.constexpr, WIDTH: tl.constexpr, COLUMNS: tl.constexpr,
    ROWS: tl.constexpr, INNER: tl.constexpr, SLOT: tl.constexpr, SHIFT: tl.constexpr,
    ELU: tl.constexpr, DROP: tl.constexpr, RECTIFIED: tl.constexpr,
):  # fmt: skip
    group, member = tl.program_id(2).to(tl.int64), tl.program_id(0) % MEMBERS
    replica = group * MEMBERS + member
    if replica >= num_replicas:
        return
    chunk = tl.program_id(0) // MEMBERS
    first = tl.program_id(1) * INNER
    inner = first + tl.arange(0, INNER)
    column = tl.arange(0, COLUMNS)
    h += replica * num_rows * HIDDEN
    to_h += replica * num_rows * HIDDEN
    grad += group * num_rows * (PASSES * MEMBERS * SLOT) + member * SLOT + SHIFT
    w += replica * HIDDEN * WIDTH
    least, factor = 0, 1.0
    if DROP:
        least = tl.load(leasts + replica).to(tl.int32)
        factor = tl.load(scale + replica).to(h.dtype.element_ty)
    sums = tl.zeros([INNER, COLUMNS], h.dtype.element_ty)
    lanes = tl.zeros([ROWS, INNER], h.dtype.element_ty)  # of the column sums, added after the loop
    for step in range(num_steps):
        row = (chunk * num_steps + step) * ROWS + tl.arange(0, ROWS)
        real = row < num_rows
        mask = real[:, None] & (column < WIDTH)[None, :]
        place = row[:, None] * HIDDEN + inner[None, :]
        tile = tl.load(h + place, real[:, None], other=0.0)
        if ELU:
            tile = tl.where(real[:, None], elu(tile + tl.load(bias + replica * HIDDEN + inner)[None, :]), 0.0)
        total = tl.zeros([ROWS, INNER], h.dtype.element_ty)
        for number in tl.static_range(PASSES):
            slope = grad + row * (PASSES * MEMBERS * SLOT) + number * (MEMBERS * SLOT)
            slopes = tl.load(slope[:, None] + column[None, :], mask, other=0.0)  # prefetched while the others are used
            back = tl.zeros([ROWS, INNER], h.dtype.element_ty)
            for c in tl.static_range(WIDTH):  # an outer product per class: no padding, no exchange between lanes
                back += tl.load(slope + c, real, other=0.0)[:, None] * tl.load(w + inner * WIDTH + c)[None, :]
            seen = tile
            if DROP:
                k1, k2 = keys_of(keys, replica * PASSES + number)
                kept = _kept(row, first, k1, k2, least, HIDDEN, INNER)
                seen = tl.where(kept, tile, 0.0)
                back = tl.where(kept, back, 0.0)
            total += back
            sums = tl.dot(tl.trans(seen), slopes, sums, input_precision="ieee", out_dtype=h.dtype.element_ty)
        total = _gated(total * factor, tile, ELU, RECTIFIED)
        if ELU or RECTIFIED:
            lanes += total
        tl.store(to_h + place, total, real[:, None])
    if ELU or RECTIFIED:
        tl.store(to_sums + (replica * chunks + chunk) * HIDDEN + inner, tl.sum(lanes, 0))
    to_w += (replica * chunks + chunk) * HIDDEN * WIDTH
    tl.store(to_w + inner[:, None] * WIDTH + column[None, :], sums * factor, (column < WIDTH)[None, :])


@jit
def _kept(row, first, k1, k2, least, HIDDEN: tl.constexpr, INNER: tl.constexpr):
    """Which elements of the tile [rows, INNER] at hidden unit ``first`` are kept: one hash for two of them."""
    word = row[:, None] * (HIDDEN // 2) + first // 2 + tl.arange(0, INNER // 2)[None, :]
    low, high = is_kept_pair(word, k1, k2, least)
    return tl.reshape(tl.join(low.to(tl.int8), high.to(tl.int8)), [row.shape[0], INNER]) != 0


@jit
def unpacked(pair):
    """The even and the odd unit."""
    return pair.to(tl.int32).to(tl.float32, bitcast=True), (pair >> 32).to(tl.int32).to(tl.float32, bitcast=True)


@jit
def packed(even, odd):
    """Both as one number again."""
    high = odd.to(tl.uint32, bitcast=True).to(tl.int64) << 32
    return high | even.to(tl.uint32, bitcast=True).to(tl.int64)


@jit
def elu(x):
    """exp(x) − 1 where x is negative."""
    return tl.where(x > 0, x, tl.exp(x) - 1)  # NaN stays NaN
