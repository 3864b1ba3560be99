"""Frequent columns of sparse features as dense products, against float64 and against gathering."""

import pytest
import torch
from torch import Tensor

from engine.kernels.cases import DEVICE, masks, numbers
from propreg.engine.kernels.spmm import frequent_columns, segments
from propreg.engine.kernels.spmm.frequent_columns import FrequentColumns, Tile
from propreg.engine.kernels.spmm.product import multiply
from propreg.engine.ops.sparse import Matrix

NODES, WORDS = 301, 40  # 301 nodes are filled up to 384, and make three chunks of at most 128
SMALL = Tile(words=16, lanes=32, nodes=32, warps=4, stages=2, ahead=True)
EXACT = 1e-6  # relative; gathering in float32 gives about 1e-7


def words(nodes: int = NODES, count: int = WORDS, often: int = 20, common: float = 0.2, *, even: bool = True) -> Matrix:
    """Bags of words; others than the first are rare, and the last of them empty. ``even``: a row's have one value."""
    generator = torch.Generator().manual_seed(nodes + count)
    share = torch.where(torch.arange(count) < often, common, 0.02)
    share[often // 2] = 1
    share[often:][-1:] = 0
    row, col = (torch.rand(nodes, count, generator=generator) < share).nonzero().unbind(1)
    shuffled = torch.randperm(len(row), generator=generator)
    row, col = row[shuffled].to(DEVICE), (col[shuffled] * 7 % count).to(DEVICE)
    values = numbers(nodes, seed=3).abs()[row] if even else numbers(len(row), seed=3)
    return Matrix(row, col, values, (nodes, count))


def found(x: Matrix, tile: Tile = SMALL, share: float = 1 / 8, chunk: int = 128) -> FrequentColumns:
    known = frequent_columns.find(x.pattern, x.column_values, tile=tile, share=share, chunk=chunk)
    assert known is not None
    return known


def transposed(x: Matrix, g: Tensor, known: FrequentColumns | bool = True) -> Tensor:
    return multiply(x.pattern, x.column_values, g, True, frequent=known)


def exact(x: Matrix, g: Tensor) -> Tensor:
    dense = torch.zeros(x.pattern.shape, dtype=torch.float64, device=DEVICE)
    dense[x.pattern.row, x.pattern.col] = x.values.double()
    return dense.t() @ g.double()


def error(actual: Tensor, expected: Tensor) -> float:
    return float((actual.double() - expected).norm() / expected.norm())


def test_which_columns() -> None:
    x = words()
    known = found(x)
    assert len(known.columns) == 16  # of the 20 that are frequent
    counts = x.pattern.ccol.diff()
    others = torch.ones(WORDS, dtype=torch.bool, device=DEVICE)
    others[known.columns] = False
    assert int(counts[known.columns].min()) >= int(counts[others].max())
    dense = exact(x, torch.eye(NODES, device=DEVICE).unsqueeze(0))[0][known.columns]
    assert torch.equal(known.indicator[:, :NODES].double() * known.scale[:NODES].double(), dense)
    assert not known.indicator[:, NODES:].any()
    assert not known.scale[NODES:].any()
    assert (known.chunks, known.length) == (3, 128)


@pytest.mark.parametrize(
    "replicas", [1, 2, pytest.param(3, marks=pytest.mark.slow), pytest.param(5, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("width", [16, 64])
def test_product(width: int, replicas: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "CUT", 32)  # there are rows that are cut and not frequent: four of the twenty
    x, g = words(), numbers(replicas, NODES, width, seed=2)
    known = found(x)
    assert known.first > 0
    out = transposed(x, g, known)
    assert error(out, exact(x, g)) < EXACT
    others = torch.ones(WORDS, dtype=torch.bool, device=DEVICE)
    others[known.columns] = False
    assert torch.equal(out[:, others], transposed(x, g, False)[:, others])
    assert torch.equal(out, transposed(x, g, known))


@pytest.mark.parametrize(
    "tile",
    [
        SMALL._replace(ahead=False),
        SMALL._replace(lanes=128),
        Tile(words=16, lanes=16, nodes=128, warps=4, stages=1, ahead=True),
        Tile(words=16, lanes=16, nodes=64, warps=4, stages=3, ahead=False),
    ],
    ids=str,
)
def test_every_shape_of_work(tile: Tile) -> None:
    x, g = words(), numbers(3, NODES, 32, seed=2)
    assert error(transposed(x, g, found(x, tile)), exact(x, g)) < EXACT


@pytest.mark.parametrize("chunk", [1, 300, 8192])
def test_every_length_of_chunk(chunk: int) -> None:
    x, g = words(), numbers(2, NODES, 16, seed=2)
    known = found(x, chunk=chunk)
    assert known.length % frequent_columns.PADDING == 0
    assert (known.chunks - 1) * known.length < NODES <= known.chunks * known.length
    assert error(transposed(x, g, known), exact(x, g)) < EXACT


def test_all_columns_may_be_hot() -> None:
    x, g = words(count=16, often=16), numbers(2, NODES, 16, seed=2)
    known = found(x, share=0)
    assert (len(known.columns), len(known.work)) == (16, 0)
    assert error(transposed(x, g, known), exact(x, g)) < EXACT


def test_what_follows_a_product() -> None:
    x, g = words(), numbers(3, NODES, 16, seed=2)
    bias, scale, addend = numbers(3, 16, seed=3), numbers(3, seed=4), numbers(3, WORDS, 16, seed=5)
    room = torch.zeros(3, WORDS, 20, device=DEVICE)
    multiply(
        x.pattern, x.column_values, g, True, bias=bias, relu=True, addend=addend, scale=scale, into=room[..., 4:],
        frequent=found(x),
    )  # fmt: skip
    expected = scale.double().view(-1, 1, 1) * (exact(x, g) + addend.double()) + bias.double().unsqueeze(1)
    assert error(room[..., 4:], expected.relu()) < EXACT
    assert not room[..., :4].any()


@pytest.mark.parametrize("power", [-60, 0, 100])
def test_numbers_of_any_size(power: int) -> None:
    """All terms positive: each column to itself is as exact as float32.

    Not below 2⁻¹²⁶, where the interpreter converts wrongly.
    """
    x, sizes = words(), torch.linspace(power - 20, power + 20, 16, device=DEVICE).exp2()
    g = numbers(1, NODES, 16, seed=2).abs() * sizes
    out, expected = transposed(x, g, found(x)).double(), exact(x, g)
    there = expected > 0
    assert float(((out - expected)[there] / expected[there]).abs().max()) < EXACT


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # NumPy's word on ∞ − ∞, in the interpreter
@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_a_broken_replica_is_seen_and_leaves_the_others_alone(bad: float) -> None:
    x, g = words(), numbers(3, NODES, 16, seed=2)
    known = found(x)
    alone = transposed(x, g, known)
    g[1, 100, 5] = bad
    out = transposed(x, g, known)
    assert not bool(out[1, known.columns, 5].isfinite().any())
    assert torch.equal(out[[0, 2]], alone[[0, 2]])


@pytest.mark.slow
def test_with_the_usual_settings() -> None:
    x, g = words(1100, 300, 150, 0.06), numbers(2, 1100, 64, seed=2)
    known = frequent_columns.find_columns(x.pattern, x.column_values, g)
    assert known is not None
    assert (len(known.columns), known.tile) == (frequent_columns.TILE.words, frequent_columns.TILE)
    assert (known.chunks, known.length) == (3, 384)  # of a small graph: no more than 512 nodes, in multiples of 128
    assert frequent_columns.find_columns(x.pattern, x.column_values, g) is known  # found once
    out = transposed(x, g)
    assert error(out, exact(x, g)) < EXACT
    assert torch.equal(out, transposed(x, g, known))
    x.column_values.mul_(2)
    assert (
        frequent_columns.find_columns(x.pattern, x.column_values, g) is not known
    )  # but not from values that have changed


def test_where_there_are_none() -> None:
    uneven, even, few = words(even=False), words(), words(NODES, often=2)
    assert frequent_columns.find(uneven.pattern, uneven.column_values, tile=SMALL, share=1 / 8) is None
    assert frequent_columns.find(even.pattern, even.column_values.double(), tile=SMALL, share=1 / 8) is None
    assert (
        frequent_columns.find(even.pattern, torch.full_like(even.column_values, torch.inf), tile=SMALL, share=1 / 8)
        is None
    )
    assert frequent_columns.find(few.pattern, few.column_values, tile=SMALL, share=1 / 8) is None
    row, col, values = (t.repeat(2) for t in (even.pattern.row, even.pattern.col, even.values))
    again = Matrix(row, col, values, even.pattern.shape)
    assert frequent_columns.find(again.pattern, again.column_values, tile=SMALL, share=1 / 8) is None
    empty = torch.zeros(0, dtype=torch.int64, device=DEVICE)
    assert frequent_columns.find(Matrix(empty, empty, numbers(0), (0, 20)).pattern, numbers(0), tile=SMALL) is None


def test_products_that_have_none() -> None:
    x = words(1100, 300, 150, 0.06)
    assert frequent_columns.find_columns(x.pattern, x.column_values, numbers(1, 1100, 16)) is not None
    for g in (numbers(1, 1100, 64).double(), numbers(1, 1100, 7)):
        assert frequent_columns.find_columns(x.pattern, x.column_values, g) is None
    assert frequent_columns.find_columns(x.pattern, x.column_values.expand(2, -1), numbers(2, 1100, 16)) is None
    small = words()  # too few nodes
    assert frequent_columns.find_columns(small.pattern, small.column_values, numbers(1, NODES, 16)) is None


def test_only_whole_transposed_products_take_them() -> None:
    x = words()
    known = found(x)
    with pytest.raises(ValueError, match="frequent columns"):
        multiply(x.pattern, x.values, numbers(2, WORDS, 16), False, frequent=known)
    with pytest.raises(ValueError, match="frequent columns"):
        multiply(x.pattern, x.column_values, numbers(2, NODES, 16), True, masks=masks(2), frequent=known)
