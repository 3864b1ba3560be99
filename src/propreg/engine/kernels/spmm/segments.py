"""The rows of a sparse pattern as units of work for a GPU: long rows are cut, rows of similar length are adjacent.

A program processes a few segments at once and takes as long as the longest. A few rows of a power-law graph have
thousands of entries: cut into segments, they are distributed over the chip, and their partial sums are added in a fixed
order afterward, so that results are bit-identical every time.

The rows of a large graph come in the order of :mod:`.row_order`, sorted by length within windows. Measured on an
H200, µs per replica and product: Physics 14.2 instead of 15.7, and 3.9 instead of 4.4 for the logits; CS 5.5 instead
of 5.8, and 1.65 instead of 1.97; Photo 5.7 instead of 6.1.
"""

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from propreg.engine.kernels.spmm.row_order import HUGE, LARGE, locality_order
from propreg.engine.kernels.triton_names import tiles
from propreg.engine.ops.sparse import Pattern

CUT = 256  # entries of a segment; the partial sums of longer rows then cost under 1 % of the traffic
# A program gathers a segment's entries a few at a time and waits for each few: in a small graph a row of 170 would take
# as long as all others together. Below so many entries, segments have a few times the mean's, and at least so many.
SMALL, TIMES_MEAN, SHORTEST_CUT = 50_000, 4, 32
WHOLE = 2**31 - 1
TILE = 128  # the most entries that a program reads at once
WINDOW, WHOLE_TILES = 256, 64  # segments sorted at a time; the first window starts at a multiple of any tile's rows
BUCKET = 4  # rows this close in length count as equal: within a bucket they keep their order, and its locality


@dataclass(frozen=True)
class Segments:
    """The segments of a pattern's rows (of its columns, if transposed); all tensors int32.

    Args:
        row: The row of a segment that is a whole row, else ``num_rows`` + the number of its partial sum. [S].
        owner: The row that a segment belongs to, cut or not. [S].
        start, stop: The entries of a segment. [S].
        inner: The column of each entry. [nnz].
        place: The number of each entry in the order of rows, by which dropout masks are indexed. [nnz].
        long_row: The cut rows; then the rows without segments, whose partial sums are computed elsewhere. [L].
        long_start: Where the partial sums of each such row begin, and where the last ends. [L + 1].
        num_rows, num_inner: The shape of the matrix.
        num_parts: The number of partial sums.
        num_long: The number of leading segments sorted by length alone; they include all with more than 64 entries.
        num_cut: The number of leading segments that contain all rows longer than CUT.
        longest: The length of the longest row, with or without segments.
    """

    row: Tensor
    owner: Tensor
    start: Tensor
    stop: Tensor
    inner: Tensor
    place: Tensor
    long_row: Tensor
    long_start: Tensor
    num_rows: int
    num_inner: int
    num_parts: int
    num_long: int
    num_cut: int
    longest: int

    def __len__(self) -> int:
        return len(self.row)

    @property
    def nnz(self) -> int:
        """The number of entries."""
        return len(self.inner)


_KNOWN: WeakKeyDictionary[Pattern, dict[tuple[bool, int], Segments]] = WeakKeyDictionary()


def segments(pattern: Pattern, transposed: bool, cut: int | None = None) -> Segments:
    """The segments of a pattern, computed once; ``cut`` is the most entries of one, WHOLE to cut nothing."""
    known = _KNOWN.setdefault(pattern, {})
    cut = cut or cut_of(pattern, transposed)
    if (transposed, cut) not in known:
        known[transposed, cut] = _make(pattern, transposed, cut)
    return known[transposed, cut]


def segments_without(pattern: Pattern, transposed: bool, rows: Tensor, parts: int) -> Segments:
    """The segments without some rows [K], each the sum of ``parts`` partial sums computed elsewhere, numbered last."""
    return _make(pattern, transposed, cut_of(pattern, transposed), rows, parts)


def cut_of(pattern: Pattern, transposed: bool) -> int:
    """The most entries of a segment."""
    if pattern.nnz >= SMALL:
        return CUT
    few = tiles(TIMES_MEAN * pattern.nnz, max(pattern.shape[int(transposed)], 1))
    return min(CUT, max(SHORTEST_CUT, tiles(few, BUCKET) * BUCKET))


def _make(pattern: Pattern, transposed: bool, cut: int, left_out: Tensor | None = None, parts: int = 0) -> Segments:
    pointers = (pattern.ccol if transposed else pattern.crow).long()
    num_rows, num_inner = pattern.shape[::-1] if transposed else pattern.shape
    lengths = pointers.diff()
    pieces = ((lengths + cut - 1) // cut).clamp_(min=1)
    if left_out is not None:
        pieces[left_out] = 0
    first = pieces.cumsum(0) - pieces  # the first segment of each row
    row = torch.repeat_interleave(torch.arange(num_rows, device=pointers.device), pieces)
    start = pointers[row] + (torch.arange(len(row), device=row.device) - first[row]) * cut
    stop = torch.minimum(start + cut, pointers[row + 1])
    is_part = pieces[row] > 1
    part = is_part.cumsum(0) - 1
    target = torch.where(is_part, num_rows + part, row)
    long_row = (pieces > 1).nonzero().squeeze(1)
    long_pieces = pieces[long_row]
    if left_out is not None:
        long_row, long_pieces = (
            torch.cat([long_row, left_out]),
            torch.cat([long_pieces, torch.full_like(left_out, parts)]),
        )
    long_start = torch.nn.functional.pad(long_pieces.cumsum(0), (1, 0))
    order, num_long = _ordered(stop - start, row, places(pattern))
    numbers = torch.arange(pattern.nnz, device=pointers.device)
    return Segments(
        row=target[order].int(),
        owner=row[order].int(),
        start=start[order].int(),
        stop=stop[order].int(),
        inner=pattern.row32 if transposed else pattern.col32,
        place=(pattern.column_order if transposed else numbers).int(),
        long_row=long_row.int(),
        long_start=long_start.int(),
        num_rows=num_rows,
        num_inner=num_inner,
        num_parts=int(long_start[-1]),
        num_long=num_long,
        num_cut=int((stop - start > CUT // BUCKET * BUCKET).sum()),
        longest=int(lengths.max()) if num_rows else 0,
    )


def places(pattern: Pattern) -> Tensor | None:
    """The position of each row of a large graph, computed once; None for a small or huge one and for other matrices."""
    rows, columns = pattern.shape
    if rows != columns or not LARGE <= pattern.nnz < HUGE:
        return None
    if pattern not in _PLACES:
        _PLACES[pattern] = locality_order(pattern.row, pattern.col, rows)
    return _PLACES[pattern]


_PLACES: WeakKeyDictionary[Pattern, Tensor] = WeakKeyDictionary()


def _ordered(lengths: Tensor, row: Tensor, places: Tensor | None) -> tuple[Tensor, int]:
    """The order of segments of these lengths and rows, and the number of leading ones sorted by length alone."""
    bucket = (lengths + BUCKET - 1) // BUCKET
    order, over = bucket.argsort(descending=True, stable=True), int((lengths > 64).sum())
    if places is None:
        return order, over
    num_long = min(tiles(over, WHOLE_TILES) * WHOLE_TILES, len(order))
    rest = order[num_long:]
    rest = rest[places[row[rest]].argsort(stable=True)]
    window = torch.arange(len(rest), device=rest.device) // WINDOW
    rest = rest[(window * 2**32 - bucket[rest]).argsort(stable=True)]
    return torch.cat([order[:num_long], rest]), num_long


def pairs(work: Segments, values: Tensor) -> Tensor | None:
    """Each entry's index and value packed into 64 bits, computed once for shared values; None for values per replica.

    Padded beyond the last entry by the length of the longest row and two tiles, which programs read and ignore.
    """
    if values.dtype != torch.float32 or values.dim() != 1:
        return None
    known: tuple[int, Tensor, Tensor] | None = getattr(values, "_pairs", None)
    if known is None or known[0] != values._version or known[1] is not work.inner:
        bits = values.detach().contiguous().view(torch.int32).long()
        packed = (bits << 32) | work.inner.long()
        known = values._version, work.inner, torch.nn.functional.pad(packed, (0, work.longest + 2 * TILE))
        values._pairs = known  # type: ignore[attr-defined]  # it lives as long as the values do
    return known[2]
