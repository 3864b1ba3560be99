"""Dropout, and dropout with a linear map, against :mod:`propreg.engine.ops.dropout`."""

import pytest
import torch
from torch.nn.functional import elu

from engine.kernels.cases import DEVICE, DTYPES, check_twins, masks, numbers
from propreg.engine.kernels.dropout import drop
from propreg.engine.kernels.linear import dropped_linear
from propreg.engine.ops import dropout as plain


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("size", [1, 64, 77, 1030])
def test_masks_are_the_same_bit_for_bit(size: int, dtype: torch.dtype) -> None:
    drawn = masks(3)
    ones = torch.ones(3, size, dtype=dtype, device=DEVICE)
    dropped = drop(ones, drawn)
    assert torch.equal(dropped, drawn.kept(size, dtype) * drawn.scale.to(dtype).unsqueeze(1))
    assert drop(ones, drawn, in_place=True) is ones
    assert torch.equal(ones, dropped)


def test_dropout_and_its_gradient() -> None:
    drawn, h = masks(3), numbers(3, 19, 7, seed=1).requires_grad_()
    factors = (drawn.kept(19 * 7, h.dtype) * drawn.scale.to(h.dtype).unsqueeze(1)).view(h.shape)
    check_twins(lambda: plain.dropped(h, drawn), lambda: h * factors, h)


@pytest.mark.parametrize("dropped", [False, True])
@pytest.mark.parametrize(("hidden", "classes"), [(16, 3), (16, 12), (96, 7), (16, 17), (18, 5)])
def test_linear(hidden: int, classes: int, dropped: bool) -> None:
    drawn = masks(2) if dropped else None
    h = numbers(2, 37, hidden, seed=1).requires_grad_()
    w = numbers(2, hidden, classes, seed=2).requires_grad_()
    assert dropped_linear.fused(h, w) == (classes <= 16 and hidden % 16 == 0)
    check_twins(lambda: dropped_linear.dropped_linear(h, w, drawn), lambda: plain.dropped_linear(h, w, drawn), h, w)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_linear_does_the_backward_pass_of_a_relu(dtype: torch.dtype) -> None:
    drawn = masks(2)
    h = numbers(2, 21, 16, dtype=dtype, seed=3).relu().requires_grad_()
    w = numbers(2, 16, 5, dtype=dtype, seed=4).requires_grad_()
    assert dropped_linear.fused(h, w) == (dtype == torch.float32)
    # A ReLU of what is already positive or 0 changes nothing but the gradient.
    check_twins(
        lambda: dropped_linear.dropped_linear(h, w, drawn, rectified=True),
        lambda: plain.dropped_linear(h.relu(), w, drawn),
        h,
        w,
    )


@pytest.mark.parametrize("dropped", [False, True])
@pytest.mark.parametrize("classes", [5, 9, 12, 17])
def test_linear_after_an_elu(classes: int, dropped: bool) -> None:
    drawn = masks(2) if dropped else None
    h, bias = numbers(2, 37, 32, seed=1).requires_grad_(), numbers(2, 32, seed=5).requires_grad_()
    w = numbers(2, 32, classes, seed=2).requires_grad_()
    check_twins(
        lambda: plain.elu_linear(h, bias, w, drawn),
        lambda: plain.dropped_linear(elu(h + bias.unsqueeze(1)), w, drawn),
        h,
        bias,
        w,
    )


def test_an_elu_shows_a_broken_replica() -> None:
    h = numbers(2, 5, 16)
    h[1, 2, 3] = torch.nan
    z = plain.elu_linear(h, torch.zeros_like(h[:, 0]), numbers(2, 16, 3, seed=2), None)
    assert z.isnan().any(2).tolist() == [[False] * 5, [False, False, True, False, False]]


@pytest.mark.skipif(DEVICE.type == "cpu", reason="large for the interpreter")
def test_many_chunks() -> None:
    drawn = masks(2)
    h, w = numbers(2, 20_001, 64, seed=6).requires_grad_(), numbers(2, 64, 7, seed=7).requires_grad_()
    check_twins(lambda: dropped_linear.dropped_linear(h, w, drawn), lambda: plain.dropped_linear(h, w, drawn), h, w)
    bias = numbers(2, 64, seed=8).requires_grad_()
    check_twins(
        lambda: plain.elu_linear(h, bias, w, drawn),
        lambda: plain.dropped_linear(elu(h + bias.unsqueeze(1)), w, drawn),
        h,
        bias,
        w,
    )
