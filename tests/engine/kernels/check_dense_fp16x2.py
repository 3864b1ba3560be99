"""Dense products on tensor cores against float64."""

import pytest
import torch
from torch import Tensor

from engine.kernels.cases import check_close, check_twins, masks, numbers
from propreg.engine.kernels.linear import dense_fp16x2
from propreg.engine.ops.activation import bias_relu

REPLICAS = 3
EXACT = 5e-7  # of what the terms add up to without their signs; torch's own float32 product: 1e-7 to 2.5e-7


def error(out: Tensor, x: Tensor, w: Tensor) -> float:
    """The largest difference to float64, each in units of what its terms add up to without their signs."""
    exact, size = x.double() @ w.double(), x.double().abs() @ w.double().abs()
    return float(((out.double() - exact).abs() / size.clamp(min=1e-300)).max())


def same(one: Tensor, other: Tensor) -> None:
    """Bit for bit; the interpreter leaves a tile's product to NumPy, whose order of sums depends on its shape."""
    if one.is_cuda:
        assert torch.equal(one, other)
    else:
        check_close(one, other)


@pytest.mark.parametrize("width", dense_fp16x2.WIDTHS)
@pytest.mark.parametrize(("rows", "inner"), [(5, 3), (200, 70), (64, 300)])
def test_a_product_is_as_exact_as_float32(rows: int, inner: int, width: int) -> None:
    x, w = numbers(rows, inner, seed=1), numbers(REPLICAS, inner, width, seed=2)
    assert error(dense_fp16x2.linear(dense_fp16x2.fixed_matrix(x), w), x, w) < EXACT


def test_a_long_inner_dimension_adds_up_with_rounding() -> None:
    """All terms positive: sums that were cut off all the way would fall behind by some 3e-5.

    What is left is that 79 stretches are added in float32, which may cost √79 · 2⁻²⁴ = 5e-7, and the cutting off
    within a stretch, which is at most its 12 steps · 2⁻²⁴ = 7e-7. An H200 gives 5.8e-7 in all.
    """
    x, w = numbers(16, 5000, seed=1).abs(), numbers(1, 5000, 16, seed=2).abs()
    assert error(dense_fp16x2.linear(dense_fp16x2.fixed_matrix(x), w), x, w) < 1e-6


@pytest.mark.parametrize("power", [-90, -30, 0, 30, 60])
def test_any_scale_and_each_replica_its_own(power: int) -> None:
    scales = torch.tensor([1.0, 2.0**power, 3.7 * 2.0**power], device=numbers(1).device).view(-1, 1, 1)
    x, w = numbers(20, 40, seed=1) * 1e-3, numbers(REPLICAS, 40, 16, seed=2) * scales
    assert error(dense_fp16x2.linear(dense_fp16x2.fixed_matrix(x), w), x, w) < EXACT


def test_numbers_far_below_the_largest_keep_their_digits() -> None:
    x, w = numbers(20, 40, seed=1), numbers(1, 40, 16, seed=2)
    w[:, :, 1:] *= 2.0**-26
    assert error(dense_fp16x2.linear(dense_fp16x2.fixed_matrix(x), w), x, w) < EXACT


def test_each_row_has_its_own_scale() -> None:
    """A column of time stamps beside small numbers costs the other rows nothing."""
    x, w = numbers(20, 40, seed=1), numbers(1, 40, 16, seed=2)
    x[3, 5], x[4] = 2.0**31, 2.0**-40 * x[4]
    assert error(dense_fp16x2.linear(dense_fp16x2.fixed_matrix(x), w), x, w) < EXACT


@pytest.mark.parametrize(("of_x", "of_w"), [(-62, -62), (-12, -110), (60, 60)])
def test_a_result_that_float32_holds_comes_out_whole(of_x: int, of_w: int) -> None:
    x, w = numbers(20, 40, seed=1) * 2.0**of_x, numbers(1, 40, 16, seed=2) * 2.0**of_w
    assert error(dense_fp16x2.linear(dense_fp16x2.fixed_matrix(x), w), x, w) < EXACT


def test_zeros() -> None:
    x = dense_fp16x2.fixed_matrix(numbers(20, 40))
    assert not dense_fp16x2.linear(x, numbers(2, 40, 16) * 0).any()


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # NumPy's word on ∞ − ∞, in the interpreter
@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_a_broken_replica_is_seen_and_leaves_the_others_alone(bad: float) -> None:
    x, w = numbers(20, 40, seed=1), numbers(REPLICAS, 40, 16, seed=2)
    alone = dense_fp16x2.linear(dense_fp16x2.fixed_matrix(x), w)
    w[1, 3, 5] = bad
    out = dense_fp16x2.linear(dense_fp16x2.fixed_matrix(x), w, numbers(REPLICAS, 16, seed=3) * 0)
    assert not bool(out[1].isfinite().any())
    same(out[[0, 2]], alone[[0, 2]].relu())


def test_the_tile_is_one_that_the_gpu_has_room_for() -> None:
    assert dense_fp16x2.tile_for(232_448) == dense_fp16x2.TILE
    assert dense_fp16x2.tile_for(101_376) == dense_fp16x2.SMALL


@pytest.mark.parametrize(
    "tile", [dense_fp16x2.SMALL, dense_fp16x2.Tile(128, 32, 8, 2), dense_fp16x2.Tile(64, 128, 4, 2)], ids=str
)
def test_a_replica_alone_and_in_a_batch_is_the_same(tile: dense_fp16x2.Tile) -> None:
    x, w = dense_fp16x2.fixed_matrix(numbers(150, 70, seed=1)), numbers(5, 70, 64, seed=2)
    whole = dense_fp16x2.multiply(x.by_rows, dense_fp16x2.split(w), tile=tile)
    one = dense_fp16x2.multiply(x.by_rows, dense_fp16x2.split(w[3:4]), tile=tile)
    same(whole[3], one[0])


@pytest.mark.parametrize("relu", [False, True])
def test_gradients(relu: bool) -> None:
    x = numbers(30, 50, seed=1)
    w = numbers(REPLICAS, 50, 32, seed=2).requires_grad_()
    b = numbers(REPLICAS, 32, seed=3).requires_grad_()
    known = dense_fp16x2.fixed_matrix(x)

    def gated() -> Tensor:
        out = dense_fp16x2.linear(known, w, b)
        return out * (out.detach() > 0)  # what dropped_linear does to the gradient

    if relu:
        check_twins(gated, lambda: bias_relu(torch.matmul(x, w), b), w, b)
    else:
        check_twins(lambda: dense_fp16x2.linear(known, w), lambda: torch.matmul(x, w), w)


def numbered(x: Tensor) -> Tensor:
    """The number of each element that is not 0, in the order of rows; the others' do not matter."""
    places = (x != 0).flatten()
    return (places.cumsum(0) - 1).int().view(x.shape)


@pytest.mark.parametrize("width", [dense_fp16x2.WIDTHS[0], dense_fp16x2.WIDTHS[-1]])
def test_dropped(width: int) -> None:
    x, w = numbers(150, 70, seed=1), numbers(REPLICAS, 70, width, seed=2).requires_grad_()
    x[numbers(150, 70, seed=3) < 0.3] = 0
    drawn, known = masks(REPLICAS), dense_fp16x2.with_numbers(dense_fp16x2.fixed_matrix(x), numbered(x))
    factors = torch.zeros(REPLICAS, 150, 70, device=x.device)
    factors[:, x != 0] = drawn.factors(int((x != 0).sum()), torch.float32)
    check_twins(lambda: dense_fp16x2.linear(known, w, masks=drawn), lambda: (factors * x) @ w, w)


def test_nothing_is_dropped_from_elements_without_numbers() -> None:
    x, w = dense_fp16x2.fixed_matrix(numbers(20, 40)), numbers(REPLICAS, 40, 16)
    with pytest.raises(ValueError, match="with_numbers"):
        dense_fp16x2.linear(x, w, masks=masks(REPLICAS))
