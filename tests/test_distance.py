"""ω against the paper's formula in NumPy, and how it behaves."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from propreg import intra_class_distance
from reference import Array, dense
from strategies import thorough


def omega(z: Array, y: Array) -> float:
    """(1/N) Σ_k Σ_{i in S_k} ‖z_i − c_k‖₂, class by class."""
    total = 0.0
    for k in np.unique(y):
        members = z[y == k]
        center = members.sum(axis=0) / len(members)
        total += sum(float(np.sqrt(np.sum((row - center) ** 2))) for row in members)
    return total / len(z)


@st.composite
def outputs(draw: st.DrawFn) -> tuple[Tensor, Tensor]:
    """Rows and classes; a class may be empty or hold a single node, and numbers may have gaps."""
    rows, columns = draw(st.integers(1, 12)), draw(st.integers(1, 5))
    classes = draw(st.lists(st.sampled_from((0, 1, 2, 7)), min_size=rows, max_size=rows))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return torch.from_numpy(rng.standard_normal((rows, columns))), torch.tensor(classes)


@thorough
@given(case=outputs())
def test_it_is_the_papers_formula(case: tuple[Tensor, Tensor]) -> None:
    z, y = case
    np.testing.assert_allclose(intra_class_distance(z, y).item(), omega(dense(z), y.numpy()), rtol=1e-12, atol=1e-15)


@thorough
@given(case=outputs(), scale=st.floats(-50.0, 50.0), shift=st.floats(-50.0, 50.0))
def test_it_scales_with_the_output_and_ignores_a_shift(case: tuple[Tensor, Tensor], scale: float, shift: float) -> None:
    """ω(sZ + t) = |s| ω(Z), so two models' ω compare only where their outputs have the same scale."""
    z, y = case
    expected = abs(scale) * intra_class_distance(z, y).item()
    np.testing.assert_allclose(intra_class_distance(scale * z + shift, y).item(), expected, rtol=1e-9, atol=1e-11)


@thorough
@given(case=outputs(), seed=st.integers(0, 2**32 - 1))
def test_neither_the_order_of_nodes_nor_the_names_of_classes_matter(case: tuple[Tensor, Tensor], seed: int) -> None:
    z, y = case
    order = torch.from_numpy(np.random.default_rng(seed).permutation(len(y)))
    first, second = intra_class_distance(z, y), intra_class_distance(z[order], 9 - y[order])
    torch.testing.assert_close(first, second, rtol=1e-12, atol=1e-14)


def test_tight_classes_have_distance_zero() -> None:
    z = torch.tensor([[1.0, 2.0], [5.0, 5.0], [1.0, 2.0]])
    assert intra_class_distance(z, torch.tensor([0, 1, 0])).item() == 0.0
    assert intra_class_distance(z[:1], torch.tensor([3])).item() == 0.0


def test_gradcheck() -> None:
    """A class of one node sits on its own center: its distance is 0 whatever z is, and so is its gradient."""
    torch.manual_seed(0)
    z = torch.randn(7, 3, dtype=torch.float64, requires_grad=True)
    y = torch.tensor([0, 0, 1, 1, 1, 2, 4])
    assert torch.autograd.gradcheck(lambda a: intra_class_distance(a, y), z)
    (gradient,) = torch.autograd.grad(intra_class_distance(z, y), z)
    assert gradient[5:].abs().max().item() == 0.0


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_every_dtype_gives_the_value_of_the_rounded_output(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    z, y = torch.randn(500, 16).to(dtype), torch.randint(7, (500,))
    value = intra_class_distance(z, y)
    assert value.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    np.testing.assert_allclose(value.item(), omega(dense(z), y.numpy()), rtol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_large_outputs_stay_finite(dtype: torch.dtype) -> None:
    """Sums of outputs of 1e4 would overflow float16 within a class of seven."""
    z = torch.tensor([[1e4, -1e4]] * 20 + [[-1e4, 1e4]] * 20, dtype=dtype, requires_grad=True)
    value = intra_class_distance(z, torch.zeros(40, dtype=torch.int64))
    (gradient,) = torch.autograd.grad(value, z)
    assert value.isfinite()
    assert gradient.isfinite().all()


def test_bad_input_is_named() -> None:
    z = torch.zeros(3, 2)
    with pytest.raises(ValueError, match=r"y must hold one class per row of z, shape \(3,\), got \(2,\)"):
        intra_class_distance(z, torch.tensor([0, 1]))
    with pytest.raises(ValueError, match=r"y must hold one class per row of z.*got \(3, 1\)"):
        intra_class_distance(z, torch.zeros(3, 1, dtype=torch.int64))
    with pytest.raises(ValueError, match=r"y must hold one class per row of z.*got list"):
        intra_class_distance(z, [0, 1, 2])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"y must be int64 class numbers, but its dtype is torch.float32: use y.long"):
        intra_class_distance(z, torch.zeros(3))
    with pytest.raises(ValueError, match="y has the negative class -1: leave nodes without a label out"):
        intra_class_distance(z, torch.tensor([0, -1, 1]))
    with pytest.raises(ValueError, match="z must have two dimensions"):
        intra_class_distance(torch.zeros(3), torch.tensor([0, 1, 1]))
    with pytest.raises(TypeError, match=r"z must hold floating-point logits, but its dtype is torch.int64"):
        intra_class_distance(torch.zeros(3, 2, dtype=torch.int64), torch.tensor([0, 1, 1]))
    with pytest.raises(ValueError, match="z is on cpu and y on meta: move one of them"):
        intra_class_distance(z, torch.zeros(3, dtype=torch.int64, device="meta"))
