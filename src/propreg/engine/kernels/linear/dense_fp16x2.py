"""Dense float32 products on tensor cores, about as exact as float32 on ordinary ones: the twin of X W + b and its ReLU.

Tensor cores multiply float16 and add in float32. A number is a sum of two float16, ``high + low / 2¹¹``, up to 2⁻²² of
itself. Of the product of two such sums three terms are computed; the fourth is at most 2⁻²² of it, and on average the
total error is that of float32. With the largest number of a row (of a replica's weights) scaled to between 2¹⁴ and 2¹⁵,
this precision holds down to 2⁻²⁸ of it. Tensor cores truncate sums instead of rounding them: they add only a stretch of
the inner dimension, and these sums are added with rounding. A replica with an infinity or a NaN in its weights has no
finite number in its result.

Dropout of X costs a hash per element, computed beside the tensor cores' work: for features with many non-zeros far less
than gathering a row of W for each kept one.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls
# ruff: noqa: N803
# Triton compiles its functions from their source: pointers and tiles have no types, constants are in capitals.

from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from propreg.engine.kernels.dropout import is_kept, mask_settings
from propreg.engine.kernels.reductions import column_sums
from propreg.engine.kernels.triton_names import LAUNCH, jit, tiles, tl
from propreg.engine.ops.dropout import Masks

PADDING = 128  # rows and inner dimension are padded to a multiple of it: no load needs a mask
WIDTHS = (16, 32, 64, 128)
LEAST = 32  # inner dimension; below, padding costs more than it saves
SHIFT = 11  # the bits of float16, by which the low half is scaled up to the magnitude of the high half


class Tile(NamedTuple):
    """The shape of a program: rows, inner dimension at once, warps, stages of prefetched loads."""

    rows: int
    inner: int
    warps: int
    stages: int


# Measured on an H200, µs per replica forward and backward: Photo 4.3 + 3.8 (cuBLAS in float32: 16.0 + 15.6), Computers
# 8.3 + 6.9 (30.1 + 31.5); splitting what changes takes 0.4 + 1.5 and 0.9 + 2.7. Largest error of Photo 1.5e-7 (4.5e-7).
# That was with one scale for all of X; with one for each row an epoch's two products of Photo take 7.9 in all.
TILE = Tile(rows=128, inner=64, warps=8, stages=3)
SMALL = Tile(rows=128, inner=64, warps=8, stages=2)
# 128 columns, elements of X dropped: Photo 15.6 + 19.8 (as sparse products: 35.6 + 47.4), Computers 27.6 + 35.5 (71.1 +
# 96.6). Of twelve shapes those of 128 rows take 1.1 to 2.0 times as long.
DROPPING = Tile(rows=64, inner=32, warps=4, stages=2)
MIN_SHARED_MEMORY = 160_000  # bytes per program for TILE; most GPUs outside data centers have 101,376


def tile_for(shared_memory: int) -> Tile:
    """The tile for a GPU with this much shared memory per program."""
    return TILE if shared_memory >= MIN_SHARED_MEMORY else SMALL


@cache
def _tile_on(device: torch.device) -> Tile:
    if device.type != "cuda":  # the interpreter
        return TILE
    found = torch.cuda.get_device_properties(device)
    return tile_for(int(getattr(found, "shared_memory_per_block_optin", 0)))  # older torch lacks it


@dataclass(frozen=True)
class Fp16x2:
    """Matrices as high and low float16, padded with zeros: data [B, 2, N′, M′], shape (N, M).

    ``largest`` is the largest absolute value of each matrix [B], or of each row of a single one [N]. ``numbers`` are
    the indices of a single one's elements in dropout masks, int32 [N′, M′].
    """

    data: Tensor
    largest: Tensor
    shape: tuple[int, int]
    numbers: Tensor | None = None


@dataclass(frozen=True)
class FixedMatrix:
    """A matrix that many products share, split by rows and, transposed, by columns."""

    by_rows: Fp16x2
    by_columns: Fp16x2


def fixed_matrix(x: Tensor) -> FixedMatrix:
    """Split a float32 matrix [N, M] for all its products."""
    return FixedMatrix(*(split(one.unsqueeze(0), by_rows=True) for one in (x, x.t())))


def with_numbers(x: FixedMatrix, numbers: Tensor) -> FixedMatrix:
    """The same with the index of each element in dropout masks, int32 [N, M]."""
    return FixedMatrix(_with_numbers(x.by_rows, numbers), _with_numbers(x.by_columns, numbers.t()))


def _with_numbers(x: Fp16x2, numbers: Tensor) -> Fp16x2:
    rows, columns = (wide - narrow for wide, narrow in zip(x.data.shape[2:], x.shape, strict=True))
    return replace(x, numbers=torch.nn.functional.pad(numbers, (0, columns, 0, rows)).contiguous())


def supports(inner: int, width: int) -> bool:
    """Whether :func:`linear` supports float32 weights [R, inner, width]."""
    return width in WIDTHS and inner >= LEAST


def linear(x: FixedMatrix, weight: Tensor, bias: Tensor | None = None, masks: Masks | None = None) -> Tensor:
    """X W, or relu(X W + b), whose incoming gradient must be 0 where the output is; with masks, X is dropped out.

    Shape:
        x [N, M], weight [R, M, H], bias [R, H] → [R, N, H].
    """
    out: Tensor = _Layer.apply(weight, bias, x, masks)
    return out


class _Layer(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight: Tensor, bias: Tensor | None, x: FixedMatrix, masks: Masks | None) -> Tensor:
        ctx.x, ctx.biased, ctx.masks = x, bias is not None, masks
        return multiply(x.by_rows, split(weight), bias, masks)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor | None, None, None]:
        grad = grad.contiguous()
        to_weight = multiply(ctx.x.by_columns, split(grad), None, ctx.masks)
        return to_weight, column_sums(grad) if ctx.biased else None, None, None


def split(x: Tensor, by_rows: bool = False) -> Fp16x2:
    """Float32 matrices [B, N, M] as :class:`Fp16x2`; ``by_rows`` a single one, each row with its own scale.

    A single one is the left factor of a product: its columns are filled up too.
    """
    x = x.contiguous()
    batch, rows, columns = x.shape
    wide = tiles(columns, PADDING) * PADDING if by_rows else columns
    data = x.new_empty(batch, 2, tiles(rows, PADDING) * PADDING, wide, dtype=torch.float16)
    largest = torch.linalg.vector_norm(x[0] if by_rows else x.view(batch, -1), torch.inf, dim=1)
    at_once = min(wide, PADDING)  # columns; rows so that a program has 2,048 elements, a divisor of what is filled up
    _split[data.shape[2] * at_once // 2048, wide // at_once, batch](
        x, largest, data, rows, columns, data[0, 0].numel(),
        WIDE=wide, ROWS=2048 // at_once, COLUMNS=at_once, SHIFT=SHIFT, BY_ROWS=by_rows, num_warps=4, **LAUNCH,
    )  # fmt: skip
    return Fp16x2(data, largest, (rows, columns))


def multiply(
    x: Fp16x2, y: Fp16x2, bias: Tensor | None = None, masks: Masks | None = None, tile: Tile | None = None
) -> Tensor:
    """X Y for one X [N, M], split by rows, and a batch of Y [R, M, H]; with a bias [R, H] relu(X Y + b).

    ``masks`` drop elements of X, which needs ``numbers`` for them.
    """
    if masks is not None and x.numbers is None:
        raise ValueError("multiply drops elements of X only if it has their numbers: call with_numbers first.")
    tile = tile or (_tile_on(y.data.device) if masks is None else DROPPING)
    replicas, width = len(y.data), y.data.shape[3]
    rows, inner = x.data.shape[2:]
    at_once = max(128 // width, 1) if masks is None else 1
    out = y.largest.new_empty(replicas, x.shape[0], width)
    blocks = tiles(x.shape[0], tile.rows), tiles(replicas, at_once)
    dropping = (out, out, out) if masks is None else (masks.keys, masks.least, masks.scale)
    # Sizes are compile-time constants: the width of a load depends on the known divisors of a row's length.
    _multiply[blocks if masks is None else blocks[::-1]](
        x.data, y.data, x.largest, y.largest, out if bias is None else bias.contiguous(), out,
        out if x.numbers is None else x.numbers, *dropping, x.shape[0], replicas,
        PADDED=rows, LENGTH=inner, WIDTH=width, REPLICAS=at_once, ROWS=tile.rows, INNER=tile.inner,
        SHIFT=SHIFT, BIAS=bias is not None, DROP=masks is not None,
        num_warps=tile.warps, **LAUNCH | {"num_stages": tile.stages},
    )  # fmt: skip
    return out


@jit
def _exponent(largest):
    """The exponent bits of a number, clamped so that 2¹⁴ over its power of two is a float32 too."""
    return tl.maximum((largest.to(tl.int32, bitcast=True) >> 23) & 255, 15)


@jit
def _power(bits):
    return (bits << 23).to(tl.float32, bitcast=True)


@jit
def _split(
    x, largest, data, rows, columns, padded,
    WIDE: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, SHIFT: tl.constexpr, BY_ROWS: tl.constexpr,
):  # fmt: skip
    batch = tl.program_id(2).to(tl.int64)
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    mask = (row < rows) & (column < columns)
    value = tl.load(x + batch * rows * columns + row * columns + column, mask, other=0.0)
    scale = tl.load(largest + row, row < rows, other=0.0) if BY_ROWS else tl.load(largest + batch)
    value = tl.where(mask, value * _power(268 - _exponent(scale)), 0.0)
    high = value.to(tl.float16)
    low = ((value - high.to(tl.float32)) * (1 << SHIFT)).to(tl.float16)
    place = data + batch * 2 * padded + row * WIDE + column
    tl.store(place, high)
    tl.store(place + padded, low)


@jit
def _multiply(
    x, y, x_largest, y_largest, bias, out, numbers, keys, leasts, scale, num_rows, num_replicas,
    PADDED: tl.constexpr, LENGTH: tl.constexpr, WIDTH: tl.constexpr, REPLICAS: tl.constexpr, ROWS: tl.constexpr,
    INNER: tl.constexpr, SHIFT: tl.constexpr, BIAS: tl.constexpr, DROP: tl.constexpr,
):  # fmt: skip
    if DROP:  # adjacent programs take different replicas: what they share, X and its numbers, is larger
        block, group = tl.program_id(1), tl.program_id(0)
    else:
        block, group = tl.program_id(0), tl.program_id(1)
    row = block.to(tl.int64) * ROWS + tl.arange(0, ROWS)
    lane = tl.arange(0, REPLICAS * WIDTH)
    column, wanted = lane % WIDTH, group * REPLICAS + lane // WIDTH
    replica = tl.minimum(wanted, num_replicas - 1).to(tl.int64)
    inner = tl.arange(0, INNER)
    x_place = row[:, None] * LENGTH + inner[None, :]
    y_place = y + (replica * (2 * LENGTH * WIDTH) + column)[None, :] + inner[:, None] * WIDTH
    k1, k2, least = 0, 0, 0
    if DROP:
        k1, k2, least = mask_settings(keys, leasts, group)
    sums = tl.zeros([ROWS, REPLICAS * WIDTH], tl.float32)
    for _ in range(0, LENGTH, INNER):
        x_high, x_low = tl.load(x + x_place), tl.load(x + x_place + PADDED * LENGTH)
        if DROP:
            kept = is_kept(tl.load(numbers + x_place), k1, k2, least)
            x_high, x_low = tl.where(kept, x_high, 0.0), tl.where(kept, x_low, 0.0)
        y_high, y_low = tl.load(y_place), tl.load(y_place + LENGTH * WIDTH)
        stretch = tl.dot(x_low, y_high)
        stretch = tl.dot(x_high, y_low, stretch) * (1 / (1 << SHIFT))
        sums += tl.dot(x_high, y_high, stretch)
        x_place += INNER
        y_place += INNER * WIDTH
    # Both powers of two at once, near the size of the result: one after the other they could be too small or large.
    x_power = _power(_exponent(tl.load(x_largest + row, row < num_rows, other=1.0)))
    y_power = _power(_exponent(tl.load(y_largest + replica)))
    sums = sums * 2.0**-28 * (x_power[:, None] * y_power[None, :])
    if DROP:
        sums *= tl.load(scale + group).to(tl.float32)
    if BIAS:
        sums += tl.load(bias + replica * WIDTH + column)[None, :]
        sums = tl.where(sums < 0, 0.0, sums)  # NaN stays NaN
    at = out + row[:, None] * WIDTH + (replica * num_rows * WIDTH + column)[None, :]
    tl.store(at, sums, (row < num_rows)[:, None] & (wanted < num_replicas)[None, :])
