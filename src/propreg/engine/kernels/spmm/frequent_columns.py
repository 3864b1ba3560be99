"""The frequent columns of a sparse matrix as a dense product on tensor cores: a part of Xᵀ G as exact as float32.

Words follow a power law: of Physics' 8,415 a few hundred hold half of the non-zeros. Gathering a row of G for each of
these non-zeros costs more than multiplying the whole columns. Where all non-zeros of a row of X have one value, X is
diag(s) B with B of zeros and ones, which bfloat16 holds exactly. A number g = s · G is the sum of three bfloat16 up to
2⁻²⁴ of itself: so three products with B are as exact. g is split in registers: only B and G are read. Tensor cores
truncate sums instead of rounding them: they add only a stretch of the nodes, and these sums are added with rounding.

The nodes are cut into chunks, to have enough programs. The sums of a chunk are partial sums of a row of the result,
like those of a segment of a cut row, and are added with them. A replica with an infinity or a NaN in its G has no
finite number in any of these rows; other replicas are not affected.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls
# ruff: noqa: N803
# Triton compiles its functions from their source: pointers and tiles have no types, constants are in capitals.

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

from propreg.engine.kernels import interpreted
from propreg.engine.kernels.spmm.segments import Segments, segments_without
from propreg.engine.kernels.triton_names import LAUNCH, jit, tiles, tl
from propreg.engine.ops.sparse import Pattern

PADDING = 128  # nodes are padded to a multiple of it: no load of B needs a mask
WIDTHS = (16, 32, 64, 128)
LEAST = 1024  # nodes; below there is no gain
MOST_FILLED = 2**27  # elements of B, as many as dense features may have
# Columns with fewer non-zeros a node are gathered: on an H200 an entry costs 28 ps, an element of the product 0.87.
SHARE = 1 / 30
CHUNK = 8192  # nodes, at most
# Of a small graph there are few words, and one run would leave most of the chip idle: shorter chunks, more programs.
SMALL, SMALL_CHUNK = 4096, 512


class Tile(NamedTuple):
    """The shape of a program: words, columns of G (of several replicas, if narrow), nodes at once, warps, stages.

    ``ahead``: the next rows of G are prefetched into registers while these are multiplied. Otherwise they are staged in
    shared memory, which the products keep busy.
    """

    words: int
    lanes: int
    nodes: int
    warps: int
    stages: int
    ahead: bool


# Measured on an H200, µs per replica of the whole Xᵀ G: Cora 1.13 (1.32 without), CS 22.1 (29.1), Physics 23.2 (32.1);
# the best of seven other shapes 1.15, 22.7 and 23.4.
TILE = Tile(words=128, lanes=64, nodes=32, warps=4, stages=3, ahead=True)


@dataclass(frozen=True)
class FrequentColumns:
    """The frequent columns of a matrix [N, M].

    Args:
        indicator: B, 1 where they have entries, padded with zeros. bfloat16 [K, N′].
        scale: The value of each row's entries, padded with zeros. float32 [N′ + PADDING].
        columns: Their numbers. int64 [K].
        work: The other rows of the transposed product, with partial sums for these.
        chunks: The number of partial sums of each.
        length: The number of nodes in a chunk.
        tile: The shape of a program; K is a multiple of its words.
    """

    indicator: Tensor
    scale: Tensor
    columns: Tensor
    work: Segments
    chunks: int
    length: int
    tile: Tile

    @property
    def first(self) -> int:
        """The number of their first partial sum; they come last."""
        return self.work.num_parts - len(self.columns) * self.chunks


def find_columns(pattern: Pattern, values: Tensor, x: Tensor) -> FrequentColumns | None:
    """The frequent columns of a matrix for the product of its transpose and x [R, N, W], found once; None if none.

    ``values`` are in the order of columns.
    """
    shared = values.dim() == 1 and pattern.shape[0] >= LEAST
    if not shared or x.dtype != torch.float32 or x.shape[2] not in WIDTHS or not _supports_bfloat16(x.device):
        return None
    known: tuple[int, Pattern, FrequentColumns | None] | None = getattr(values, "_frequent_columns", None)
    if known is None or known[0] != values._version or known[1] is not pattern:
        known = values._version, pattern, find(pattern, values)
        values._frequent_columns = known  # type: ignore[attr-defined]  # it lives as long as the values do
    return known[2]


@cache
def _supports_bfloat16(device: torch.device) -> bool:
    """Whether the device has tensor cores for bfloat16; the interpreter needs none."""
    if device.type != "cuda":
        return True
    return torch.version.hip is None and torch.cuda.get_device_capability(device) >= (8, 0)


def find(
    pattern: Pattern, values: Tensor, *, tile: Tile = TILE, share: float = SHARE, chunk: int | None = None
) -> FrequentColumns | None:
    """The most frequent columns, in whole tiles with ``share`` non-zeros per node on average; or None."""
    nodes = pattern.shape[0]
    chunk = chunk or (SMALL_CHUNK if nodes <= SMALL else CHUNK)
    padded = tiles(nodes, PADDING) * PADDING
    counts = pattern.ccol.diff()
    sums = counts.sort(descending=True).values.double()[: len(counts) // tile.words * tile.words]
    enough = sums.view(-1, tile.words).mean(1) >= max(share * nodes, 1)
    number = min(int(enough.sum()), MOST_FILLED // max(padded, 1) // tile.words) * tile.words
    if not number or values.dtype != torch.float32:
        return None
    row, col = pattern.row32.long(), pattern.col[pattern.column_order]
    scale = values.new_zeros(padded + PADDING)  # beyond the last as many as a program reads ahead
    scale[row] = values
    again = (row.diff() == 0) & (col.diff() == 0)  # a place given twice would be 2 in B
    if not bool(((scale[row] == values) & values.isfinite()).all() & ~again.any()):
        return None
    columns = counts.argsort(descending=True, stable=True)[:number]
    place = torch.full_like(counts, -1, dtype=torch.int64)
    place[columns] = torch.arange(number, device=columns.device)
    inside = place[col] >= 0
    indicator = torch.zeros(number, padded, dtype=torch.bfloat16, device=values.device)
    indicator[place[col[inside]], row[inside]] = 1
    length = tiles(tiles(nodes, tiles(nodes, chunk)), PADDING) * PADDING  # chunks of about the same length
    chunks = tiles(nodes, length)
    return FrequentColumns(
        indicator, scale, columns, segments_without(pattern, True, columns, chunks), chunks, length, tile
    )


def add_products(frequent: FrequentColumns, x: Tensor, parts: Tensor) -> None:
    """Compute the partial sums of the frequent columns' rows of Xᵀ G.

    Shape:
        x (that is G) [R, N, W], parts [R, P, W].
    """
    replicas, nodes, width = x.shape
    tile, columns = frequent.tile, min(width, frequent.tile.lanes)
    # Programs that read the same rows of G are next to each other: all but the first find them in the L2 cache.
    blocks = len(frequent.columns) // tile.words * (width // columns)
    _parts[blocks, frequent.chunks, tiles(replicas, tile.lanes // columns)](
        x, frequent.indicator, frequent.scale, parts, nodes, frequent.indicator.shape[1] // PADDING,
        frequent.length // PADDING, frequent.chunks, parts.shape[1], frequent.first, replicas,
        WIDTH=width, COLUMNS=columns, WORDS=tile.words, LANES=tile.lanes, NODES=tile.nodes, PADDING=PADDING,
        AHEAD=tile.ahead, CORES=not interpreted(),
        num_warps=tile.warps, **LAUNCH | {"num_stages": tile.stages},
    )  # fmt: skip


@jit
def _parts(
    x, indicator, scale, parts, num_nodes, num_blocks, num_in_chunk, num_chunks, num_parts, first, num_replicas,
    WIDTH: tl.constexpr, COLUMNS: tl.constexpr, WORDS: tl.constexpr, LANES: tl.constexpr, NODES: tl.constexpr,
    PADDING: tl.constexpr, AHEAD: tl.constexpr, CORES: tl.constexpr,
):  # fmt: skip
    block, chunk = tl.program_id(0) // (WIDTH // COLUMNS), tl.program_id(1)
    lane = tl.arange(0, LANES)  # some columns of one replica after the other
    column = tl.program_id(0) % (WIDTH // COLUMNS) * COLUMNS + lane % COLUMNS
    replica = tl.program_id(2).to(tl.int64) * (LANES // COLUMNS) + lane // COLUMNS
    wanted = (replica < num_replicas)[None, :]
    word, node = block * WORDS + tl.arange(0, WORDS), tl.arange(0, NODES)
    # Counts in multiples of PADDING: loads are then known to be 16 bytes wide for every matrix.
    begin = chunk * num_in_chunk * PADDING
    end = tl.minimum(begin + num_in_chunk * PADDING, num_blocks * PADDING)
    last = tl.minimum(end, num_nodes)
    indicator += begin + word.to(tl.int64)[:, None] * (num_blocks * PADDING) + node[None, :]
    x += begin.to(tl.int64) * WIDTH + (replica * num_nodes * WIDTH + column)[None, :] + node[:, None] * WIDTH
    scale += node
    sums = tl.zeros([WORDS, LANES], tl.float32)
    if AHEAD:
        g, s = tl.load(x, (begin + node < last)[:, None] & wanted, other=0.0), tl.load(scale + begin)
        for now in range(begin, end, NODES):
            x += NODES * WIDTH
            b, then = (
                tl.load(indicator),
                now + NODES,
            )  # before G: fewer registers, and four programs find room, not three
            next_g, next_s = tl.load(x, (then + node < last)[:, None] & wanted, other=0.0), tl.load(scale + then)
            sums += _indicator_product(b, g * s[:, None], CORES)
            indicator += NODES
            g, s = next_g, next_s
    else:
        for now in range(begin, end, NODES):
            g, s = tl.load(x, (now + node < last)[:, None] & wanted, other=0.0), tl.load(scale + now)
            sums += _indicator_product(tl.load(indicator), g * s[:, None], CORES)
            x += NODES * WIDTH
            indicator += NODES
    part = first + word * num_chunks + chunk
    tl.store(parts + part[:, None] * WIDTH + (replica * num_parts * WIDTH + column)[None, :], sums, wanted)


@jit
def _indicator_product(indicator, g, CORES: tl.constexpr):
    """B g for a few nodes, the smallest parts of g first."""
    high, rest = _truncated(g)
    middle, rest = _truncated(rest)
    low = rest.to(tl.bfloat16)
    if not CORES:  # Triton's interpreter takes bfloat16 for integers where it multiplies
        indicator, low = indicator.to(tl.float32), low.to(tl.float32)
        middle, high = middle.to(tl.float32), high.to(tl.float32)
    sums = tl.dot(indicator, low)
    sums = tl.dot(indicator, middle, sums)
    return tl.dot(indicator, high, sums)


@jit
def _truncated(g):
    """The leading eight bits of a number and the rest; rounding instead would need the slow conversion unit."""
    bits = g.to(tl.int32, bitcast=True)
    high = (bits >> 16).to(tl.int16).to(tl.bfloat16, bitcast=True)
    return high, g - (bits & -65536).to(tl.float32, bitcast=True)
