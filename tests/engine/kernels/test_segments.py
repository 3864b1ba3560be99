"""Segments: every entry of a pattern belongs to one, long rows are cut, and rows of like length lie side by side."""

import pytest
import torch

from engine.kernels.cases import numbers, pattern
from propreg.engine.kernels.spmm import segments as module
from propreg.engine.kernels.spmm.segments import BUCKET, CUT, TILE, WHOLE, Segments, pairs, segments, segments_without
from propreg.engine.ops.sparse import Pattern


def counts(work: Segments) -> list[list[int]]:
    """The entries of each row, from its segments."""
    found: list[list[int]] = [[] for _ in range(work.num_rows)]
    for owner, start, stop in zip(work.owner.tolist(), work.start.tolist(), work.stop.tolist(), strict=True):
        found[owner] += range(start, stop)
    return [sorted(entries) for entries in found]


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("cut", [3, 7, CUT, WHOLE])
def test_every_entry_is_in_one_segment_of_its_row(cut: int, transposed: bool) -> None:
    known = pattern(20, 30)
    work = segments(known, transposed, cut)
    pointers = (known.ccol if transposed else known.crow).tolist()
    rows = range(work.num_rows)
    assert counts(work) == [list(range(pointers[row], pointers[row + 1])) for row in rows]
    assert int((work.stop - work.start).max()) <= cut
    assert (work.num_rows, work.num_inner) == ((30, 20) if transposed else (20, 30))


def test_rows_that_were_cut_have_numbered_parts() -> None:
    work = segments(pattern(20, 30), False, 3)
    parts = work.row >= work.num_rows
    assert sorted((work.row[parts] - work.num_rows).tolist()) == list(range(work.num_parts))
    for i, row in enumerate(work.long_row.tolist()):
        first, last = work.long_start[i : i + 2].tolist()
        mine = (work.row >= work.num_rows + first) & (work.row < work.num_rows + last)
        assert set(work.owner[mine].tolist()) == {row}
        assert int(mine.sum()) == int((work.owner == row).sum()) == last - first
    whole = ~parts
    assert torch.equal(work.row[whole], work.owner[whole])


@pytest.mark.parametrize("transposed", [False, True])
def test_rows_left_out_have_parts_after_all_others(transposed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CUT", 3)
    known = pattern(20, 30)
    apart = torch.tensor([4, 0, 7], device=known.crow.device)
    whole, work = segments(known, transposed), segments_without(known, transposed, apart, 5)
    assert counts(work) == [[] if row in (4, 0, 7) else entries for row, entries in enumerate(counts(whole))]
    assert work.long_row[-3:].tolist() == [4, 0, 7]
    others = work.long_row[:-3].tolist()
    assert others == [row for row in whole.long_row.tolist() if row not in (4, 0, 7)]
    assert work.long_start[-4:].tolist() == [work.num_parts - left for left in (15, 10, 5, 0)]
    parts = work.row >= work.num_rows
    assert sorted((work.row[parts] - work.num_rows).tolist()) == list(range(work.num_parts - 15))
    assert work.longest == whole.longest  # pairs are padded by it, and both take the same


def test_a_small_graph_has_short_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few times the mean, at least 32 entries; those of a large graph are longer."""
    row = torch.cat([torch.zeros(200, dtype=torch.int64), torch.arange(1, 30).repeat_interleave(20)])
    col = torch.cat([torch.arange(200), torch.arange(20).repeat(29)])
    known = Pattern(row, col, (30, 200))
    assert module.cut_of(known, False) == 104  # 780 entries, 26 a row
    assert module.cut_of(known, True) == 32
    assert counts(segments(known, False)) == counts(segments(known, False, WHOLE))
    assert int((segments(known, False).stop - segments(known, False).start).max()) == 104
    assert segments(known, False).num_parts == 2
    monkeypatch.setattr(module, "SMALL", known.nnz)
    assert module.cut_of(known, False) == CUT


def test_segments_are_ordered_by_length() -> None:
    work = segments(pattern(20, 100), False, WHOLE)
    lengths = work.stop - work.start
    buckets = (lengths + BUCKET - 1) // BUCKET
    assert bool((buckets.diff() <= 0).all())
    assert work.num_long == int((lengths > 64).sum()) > 0


@pytest.mark.parametrize("transposed", [False, True])
def test_segments_of_a_large_graph_are_ordered_by_length_a_few_at_a_time(
    transposed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LARGE", 0)
    monkeypatch.setattr(module, "WINDOW", 16)
    monkeypatch.setattr(module, "WHOLE_TILES", 8)
    known = pattern(100, 100)
    work, place = segments(known, transposed, WHOLE), module.places(known)
    assert place is not None
    assert sorted(work.row.tolist()) == list(range(100))
    pointers = (known.ccol if transposed else known.crow).long()
    assert torch.equal(work.start.long(), pointers[work.row.long()])
    assert torch.equal(work.stop.long(), pointers[work.row.long() + 1])
    lengths = work.stop - work.start
    buckets = (lengths + BUCKET - 1) // BUCKET
    assert int((lengths > 64).sum()) <= work.num_long
    assert work.num_long % 8 == 0
    assert bool((buckets[: work.num_long].diff() <= 0).all())
    before = -1
    for first in range(work.num_long, 100, 16):
        mine = slice(first, min(first + 16, 100))
        assert bool((buckets[mine].diff() <= 0).all())
        here = place[work.row[mine].long()]
        assert int(here.min()) > before  # what comes in a window comes before the next
        before = int(here.max())


def test_places_count_in_the_order_of_rows() -> None:
    known = pattern(20, 30)
    across = segments(known, True)
    assert torch.equal(known.row.int()[across.place.long()], across.inner)
    assert segments(known, True) is across  # made once


def test_pairs_hold_index_and_value() -> None:
    known = pattern(20, 30)
    work, values = segments(known, False), numbers(known.nnz)
    packed = pairs(work, values)
    assert packed is not None
    assert len(packed) >= known.nnz + work.longest + 2 * TILE  # rows are read in whole tiles, and the next one ahead
    low, high = packed[: known.nnz].view(torch.int32).view(-1, 2).unbind(1)
    assert torch.equal(low, work.inner)
    assert torch.equal(high.contiguous().view(torch.float32), values)
    assert pairs(work, values) is packed  # made once
    values.mul_(2)
    assert pairs(work, values) is not packed  # but not from values that have changed
    assert pairs(work, values.double()) is None
