"""The entries that dropout keeps, moved together: a product with six entries in ten dropped then reads four, not ten.

A gather that is masked out costs its place in the program all the same. So each replica's kept entries are written to
the front of their segment first, eight bytes an entry: little beside the rows that they name.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls
# ruff: noqa: N803
# Triton compiles its functions from their source: pointers and tiles have no types, constants are in capitals.

from torch import Tensor

from propreg.engine.dropout import Masks
from propreg.engine.kernels._hash import keep, mask_settings
from propreg.engine.kernels._rows import longest_of
from propreg.engine.kernels._triton import LAUNCH, jit, tiles, tl
from propreg.engine.kernels.segments import Segments


def kept_pairs(work: Segments, pairs: Tensor, masks: Masks) -> tuple[Tensor, Tensor]:
    """The kept pairs of each replica and segment, from where the segment begins; and where they end.

    What lies between that end and the segment's own is not defined.

    Shape:
        pairs [nnz + padding] → [R, nnz + padding], int32 [R, S].
    """
    replicas, segments, entries = len(masks), 4, 32
    kept = pairs.new_empty(replicas, len(pairs))
    stops = work.stop.new_empty(replicas, len(work))
    _compact[tiles(len(work), segments), replicas](
        pairs, work.place, work.start, work.stop, kept, stops, masks.keys, masks.least, len(work), len(pairs),
        SEGMENTS=segments, ENTRIES=entries, num_warps=1, **LAUNCH,
    )  # fmt: skip
    return kept, stops


@jit
def _compact(
    pairs, place, starts, stops, kept, kept_stops, keys, leasts, num_segments, num_pairs,
    SEGMENTS: tl.constexpr, ENTRIES: tl.constexpr,
):  # fmt: skip
    replica = tl.program_id(1).to(tl.int64)
    first = tl.program_id(0) * SEGMENTS
    segment = first + tl.arange(0, SEGMENTS)
    real = segment < num_segments
    start, stop = tl.load(starts + segment, real, other=0), tl.load(stops + segment, real, other=0)
    k1, k2, least = mask_settings(keys, leasts, replica)
    kept += replica * num_pairs
    entry = start[:, None] + tl.arange(0, ENTRIES)[None, :]
    end = start
    for _ in range(0, longest_of(starts, stops, first, num_segments), ENTRIES):
        inside = entry < stop[:, None]
        stays = inside & keep(tl.load(place + entry, inside, other=0), k1, k2, least)
        number = stays.to(tl.int32)
        to = end[:, None] + tl.cumsum(number, 1) - 1
        tl.store(kept + to, tl.load(pairs + entry, stays, other=0), stays)
        end += tl.sum(number, 1)
        entry += ENTRIES
    tl.store(kept_stops + replica * num_segments + segment, end, real)
