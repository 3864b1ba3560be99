"""Sparse products against :meth:`Pattern.multiply`."""

import pytest
import torch
from torch import Tensor

from engine.kernels.cases import check_close, check_twins, masks, matrix, numbers, pattern, plain
from propreg.engine.kernels.spmm import product, segments
from propreg.engine.kernels.spmm.product import Tile, multiply
from propreg.engine.ops.activation import bias_relu
from propreg.engine.ops.sparse import Pattern

ROWS, COLUMNS, REPLICAS = 11, 9, 3
LONG = 20  # columns of a full row that takes the widest tile three turns, or is cut into seven


def inputs(known: Pattern, transposed: bool, width: int, dtype: torch.dtype, own: bool) -> tuple[Tensor, Tensor]:
    values = numbers(REPLICAS, known.nnz, dtype=dtype, seed=1) if own else numbers(known.nnz, dtype=dtype, seed=1)
    return values, numbers(REPLICAS, ROWS if transposed else COLUMNS, width, dtype=dtype, seed=2)


def plain_product(known: Pattern, values: Tensor, x: Tensor, transposed: bool) -> Tensor:
    return plain(lambda: known.multiply(values, x, transposed))


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(
    ("width", "dtype"), [(1, torch.float32), (7, torch.float32), (7, torch.float64), (20, torch.float32)]
)
def test_product(width: int, transposed: bool, own: bool, dtype: torch.dtype) -> None:
    known = pattern(ROWS, COLUMNS)
    values, x = inputs(known, transposed, width, dtype, own)
    check_close(multiply(known, values, x, transposed), plain_product(known, values, x, transposed))


@pytest.mark.parametrize("cut", [3, 100])
@pytest.mark.parametrize(
    "tile", [Tile(1, 8, 4, 1), Tile(4, 4, 8, 1), Tile(1, 4, 4, 1, replicas=2), Tile(2, 4, 8, 1, replicas=4)], ids=str
)
def test_every_shape_of_work(tile: Tile, cut: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "CUT", cut)
    known = pattern(6, LONG)
    values, x = numbers(known.nnz, seed=1), numbers(REPLICAS, LONG, 6, seed=2)
    check_close(multiply(known, values, x, False, tile=tile), plain_product(known, values, x, False))


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(("rows", "columns", "cut"), [(6, LONG, 3), (6, LONG, 100), (20, 64, 100)])
def test_a_column_has_the_same_bits_beside_others(
    rows: int, columns: int, cut: int, transposed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that are cut, or not, short ones and long ones: as wide as the logits of one pass and of more."""
    monkeypatch.setattr(segments, "CUT", cut)
    known = pattern(rows, columns)
    values, x = numbers(known.nnz, seed=1), numbers(2, rows if transposed else columns, 48, seed=2)
    widest = multiply(known, values, x, transposed)
    for width in (3, 4, 5, 8, 15, 16, 24, 32):
        alone = multiply(known, values, x[..., :width], transposed)
        assert torch.equal(alone, widest[..., :width]), width


@pytest.mark.parametrize("cut", [3, 100])
@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("at_once", [1, 2])
def test_what_follows_a_product(at_once: int, relu: bool, cut: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "CUT", cut)
    known = pattern(ROWS, COLUMNS)
    values, x = inputs(known, False, 5, torch.float64, False)
    bias, scale = numbers(REPLICAS, 5, dtype=torch.float64, seed=3), numbers(REPLICAS, dtype=torch.float64, seed=4)
    addend = numbers(REPLICAS, ROWS, 5, dtype=torch.float64, seed=5)
    expected = scale.view(-1, 1, 1) * (plain_product(known, values, x, False) + addend) + bias.unsqueeze(1)
    tile = Tile(4, 4, 8, 1, replicas=at_once)
    actual = multiply(known, values, x, False, bias=bias, addend=addend, scale=scale, relu=relu, tile=tile)
    check_close(actual, expected.relu() if relu else expected)


@pytest.mark.parametrize("cut", [3, 100])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("transposed", [False, True])
def test_dropped_entries(transposed: bool, dtype: torch.dtype, cut: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "CUT", cut)
    known, drawn = pattern(ROWS, LONG), masks(REPLICAS)
    values, _ = inputs(known, transposed, 5, dtype, False)
    x = numbers(REPLICAS, ROWS if transposed else LONG, 5, dtype=dtype, seed=2)
    factors = drawn.factors(known.nnz, dtype)
    own = values * (factors[:, known.column_order] if transposed else factors)
    check_close(multiply(known, values, x, transposed, masks=drawn), plain_product(known, own, x, transposed))


@pytest.mark.parametrize("transposed", [False, True])
def test_an_order_of_the_rows_changes_no_bit(transposed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    known, again = pattern(70, 70), pattern(70, 70)
    values, x = numbers(known.nnz, seed=1), numbers(REPLICAS, 70, 64, seed=2)
    sorted_alone = multiply(known, values, x, transposed)
    for name, number in (("LARGE", 0), ("WINDOW", 16), ("WHOLE_TILES", 8)):
        monkeypatch.setattr(segments, name, number)
    assert not torch.equal(segments.segments(known, transposed).row, segments.segments(again, transposed).row)
    assert torch.equal(multiply(again, values, x, transposed), sorted_alone)


@pytest.mark.parametrize("separate", [False, True])
def test_an_addend_and_a_scale_for_each_column(separate: bool) -> None:
    known = pattern(ROWS, COLUMNS)
    values, x = inputs(known, False, 8, torch.float64, False)
    addend, scale = numbers(REPLICAS, ROWS, 8, dtype=torch.float64, seed=5), numbers(REPLICAS, 8).double()
    into = torch.zeros(REPLICAS, ROWS, 2, 8, dtype=torch.float64, device=x.device)
    multiply(known, values, x, False, addend=addend, separate=separate, scale=scale, into=into[:, :, 1])
    expected, factor = plain_product(known, values, x, False), scale.unsqueeze(1)
    check_close(into[:, :, 1], factor * (expected if separate else expected + addend))
    assert torch.equal(into[:, :, 0], factor * addend if separate else torch.zeros_like(addend))


def test_a_broken_replica_is_seen_and_leaves_the_others_alone() -> None:
    known = pattern(ROWS, COLUMNS)
    values, x = inputs(known, False, 5, torch.float32, False)
    x[1] = torch.nan
    out = multiply(known, values, x, False, bias=torch.zeros_like(x[:, 0]), relu=True)
    assert bool(out[0].isfinite().all())
    assert bool(out[1, :-1].isnan().all())  # the last row has no entries


def test_no_replicas() -> None:
    known = pattern(ROWS, COLUMNS)
    values, x = inputs(known, False, 5, torch.float32, False)
    assert multiply(known, values, x[:0], False).shape == (0, ROWS, 5)


def test_scale_and_masks_do_not_go_together() -> None:
    known = pattern(ROWS, COLUMNS)
    values, x = inputs(known, False, 5, torch.float32, False)
    with pytest.raises(ValueError, match="got both"):
        multiply(known, values, x, False, scale=values[:REPLICAS], masks=masks(REPLICAS))


@pytest.mark.parametrize("relu", [False, True])
def test_layer(relu: bool) -> None:
    known = matrix(ROWS, COLUMNS, torch.float64)
    x = numbers(REPLICAS, COLUMNS, 5, dtype=torch.float64, seed=6).requires_grad_()
    bias = numbers(REPLICAS, 5, dtype=torch.float64, seed=7).requires_grad_()
    check_twins(
        lambda: product.propagate(known, x, bias, relu=relu),
        lambda: bias_relu(known(x), bias) if relu else known(x) + bias.unsqueeze(1),
        x,
        bias,
    )


def test_layer_trusts_a_gradient_that_is_gated() -> None:
    known = matrix(ROWS, COLUMNS, torch.float64)
    x = numbers(REPLICAS, COLUMNS, 5, dtype=torch.float64, seed=6).requires_grad_()
    bias = numbers(REPLICAS, 5, dtype=torch.float64, seed=7).requires_grad_()
    out = product.propagate(known, x, bias, gated=True)
    gate = (out > 0).double()
    check_twins(
        lambda: product.propagate(known, x, bias, gated=True) * gate,
        lambda: bias_relu(known(x), bias) * gate,
        x,
        bias,
    )
