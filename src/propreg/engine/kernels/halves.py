"""Dense float32 products on tensor cores, as exact as float32 on ordinary ones: the twin of X W + b and its ReLU.

Tensor cores multiply float16 and add in float32. A number is a sum of two float16, ``high + low / 2¹¹``, up to 2⁻²² of
itself; of the product of two such sums three terms count, and the fourth is below float32's rounding. With its largest
number scaled to 2¹⁵, a matrix keeps that precision for numbers down to 2⁻²⁹ of it. Tensor cores cut sums off instead of
rounding them: they only add up a stretch of the inner dimension, and those sums are added with rounding.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls
# ruff: noqa: N803
# Triton compiles its functions from their source: pointers and tiles have no types, constants are in capitals.

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from propreg.engine.kernels._triton import LAUNCH, jit, tiles, tl

PADDING = 128  # rows and inner dimension come in multiples of it: no load needs a mask
WIDTHS = (16, 32, 64, 128)
SHIFT = 11  # the bits of float16, by which a low half is scaled up: it is then as large as its high half


class Tile(NamedTuple):
    """How a program works: rows, inner dimension at once, warps, stages of loads that are under way."""

    rows: int
    inner: int
    warps: int
    stages: int


# Measured on an H200, µs per replica forward and backward: Photo 4.3 + 3.8 (cuBLAS in float32: 16.0 + 15.6), Computers
# 8.3 + 6.9 (30.1 + 31.5); splitting what changes takes 0.4 + 1.5 and 0.9 + 2.7. Largest error of Photo 1.5e-7 (4.5e-7).
TILE = Tile(rows=128, inner=64, warps=8, stages=3)


@dataclass(frozen=True)
class Halves:
    """Matrices as high and low float16, filled up with zeros: data [B, 2, N′, M′], scale [B], shape (N, M)."""

    data: Tensor
    scale: Tensor
    shape: tuple[int, int]


@dataclass(frozen=True)
class Fixed:
    """A matrix that many products share, along its rows and along its columns."""

    along: Halves
    across: Halves


def fixed(x: Tensor) -> Fixed:
    """Split a float32 matrix [N, M] once and for all."""
    return Fixed(split(x.unsqueeze(0), pad_columns=True), split(x.t().contiguous().unsqueeze(0), pad_columns=True))


def fits(weight: Tensor) -> bool:
    """Whether :func:`layer` takes these weights."""
    return weight.dtype == torch.float32 and weight.shape[2] in WIDTHS


def layer(x: Fixed, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """X W, or relu(X W + b), whose gradient must come as 0 where the output is.

    Shape:
        x [N, M], weight [R, M, H], bias [R, H] → [R, N, H].
    """
    out: Tensor = _Layer.apply(weight, bias, x)
    return out


class _Layer(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight: Tensor, bias: Tensor | None, x: Fixed) -> Tensor:
        ctx.x, ctx.biased = x, bias is not None
        return multiply(x.along, split(weight), bias)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor | None, None]:
        grad = grad.contiguous()
        return multiply(ctx.x.across, split(grad)), grad.sum(1) if ctx.biased else None, None


def split(x: Tensor, pad_columns: bool = False) -> Halves:
    """Float32 matrices [B, N, M] as :class:`Halves`."""
    x = x.contiguous()
    batch, rows, columns = x.shape
    wide = tiles(columns, PADDING) * PADDING if pad_columns else columns
    data = x.new_empty(batch, 2, tiles(rows, PADDING) * PADDING, wide, dtype=torch.float16)
    scale = torch.linalg.vector_norm(x.view(batch, -1), torch.inf, dim=1)
    at_once = 2048
    _split[tiles(data[0, 0].numel(), at_once), batch](
        x, scale, data, rows * columns, columns, wide, data[0, 0].numel(),
        ELEMENTS=at_once, SHIFT=SHIFT, num_warps=4, **LAUNCH,
    )  # fmt: skip
    return Halves(data, scale, (rows, columns))


def multiply(x: Halves, y: Halves, bias: Tensor | None = None, tile: Tile = TILE) -> Tensor:
    """X Y for one X [N, M] and a batch of Y [R, M, H]; with a bias [R, H] relu(X Y + b)."""
    replicas, width = len(y.data), y.data.shape[3]
    rows, inner = x.data.shape[2:]
    at_once = max(128 // width, 1)
    out = bias_or_scale = y.scale.new_empty(replicas, x.shape[0], width)
    if bias is not None:
        bias_or_scale = bias.contiguous()
    _multiply[tiles(x.shape[0], tile.rows), tiles(replicas, at_once)](
        x.data, y.data, x.scale, y.scale, bias_or_scale, out, x.shape[0], replicas,
        PADDED=rows, LENGTH=inner, WIDTH=width, REPLICAS=at_once, ROWS=tile.rows, INNER=tile.inner,
        SHIFT=SHIFT, BIAS=bias is not None, num_warps=tile.warps, **LAUNCH | {"num_stages": tile.stages},
    )  # fmt: skip
    return out


@jit
def _factor(largest, SIGN: tl.constexpr):
    """The power of two that brings ``largest`` to [2¹⁴, 2¹⁵), or (SIGN −1) its inverse."""
    exponent = tl.maximum((largest.to(tl.int32, bitcast=True) >> 23) & 255, 15)
    return ((127 + SIGN * (141 - exponent)) << 23).to(tl.float32, bitcast=True)


@jit
def _split(x, scale, data, size, columns, wide, padded, ELEMENTS: tl.constexpr, SHIFT: tl.constexpr):
    batch = tl.program_id(1).to(tl.int64)
    element = tl.program_id(0) * ELEMENTS + tl.arange(0, ELEMENTS)
    row, column = element // wide, element % wide
    place = row * columns + column
    value = tl.load(x + batch * size + place, (column < columns) & (place < size), other=0.0)
    value *= _factor(tl.load(scale + batch), 1)
    high = value.to(tl.float16)
    low = ((value - high.to(tl.float32)) * (1 << SHIFT)).to(tl.float16)
    data += batch * 2 * padded
    tl.store(data + element, high, element < padded)
    tl.store(data + padded + element, low, element < padded)


@jit
def _multiply(
    x, y, x_scale, y_scale, bias, out, num_rows, num_replicas,
    PADDED: tl.constexpr, LENGTH: tl.constexpr, WIDTH: tl.constexpr, REPLICAS: tl.constexpr, ROWS: tl.constexpr,
    INNER: tl.constexpr, SHIFT: tl.constexpr, BIAS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    lane = tl.arange(0, REPLICAS * WIDTH)
    column, wanted = lane % WIDTH, tl.program_id(1) * REPLICAS + lane // WIDTH
    replica = tl.minimum(wanted, num_replicas - 1).to(tl.int64)
    inner = tl.arange(0, INNER)
    x_place = x + row[:, None] * LENGTH + inner[None, :]
    y_place = y + (replica * (2 * LENGTH * WIDTH) + column)[None, :] + inner[:, None] * WIDTH
    sums = tl.zeros([ROWS, REPLICAS * WIDTH], tl.float32)
    for _ in range(0, LENGTH, INNER):
        x_high, x_low = tl.load(x_place), tl.load(x_place + PADDED * LENGTH)
        y_high, y_low = tl.load(y_place), tl.load(y_place + LENGTH * WIDTH)
        stretch = tl.dot(x_low, y_high)
        stretch = tl.dot(x_high, y_low, stretch) * (1 / (1 << SHIFT))
        sums += tl.dot(x_high, y_high, stretch)
        x_place += INNER
        y_place += INNER * WIDTH
    factor = _factor(tl.load(x_scale), -1) * _factor(tl.load(y_scale + replica), -1)
    sums *= factor[None, :]
    if BIAS:
        sums += tl.load(bias + replica * WIDTH + column)[None, :]
        sums = tl.where(sums < 0, 0.0, sums)  # NaN stays NaN
    at = out + row[:, None].to(tl.int64) * WIDTH + (replica * num_rows * WIDTH + column)[None, :]
    tl.store(at, sums, (row < num_rows)[:, None] & (wanted < num_replicas)[None, :])
