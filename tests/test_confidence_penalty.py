"""The confidence penalty: value, sign, masks, gradients and stability."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import propreg
from reference import counted, dense, entropy
from strategies import logits, masks, thorough


def random_logits(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).to(dtype)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Tensor, Tensor | None]:
    rows = draw(st.integers(1, 7))
    classes = draw(st.sampled_from((None, None, None, 1000)))
    return draw(logits(rows, classes)), draw(masks(rows))


@thorough
@given(
    case=cases(),
    reduction=st.sampled_from(("mean", "sum", "none")),
    variant=st.sampled_from(("paper", "official")),
)
def test_it_is_the_negative_entropy(case: tuple[Tensor, Tensor | None], reduction: Any, variant: Any) -> None:
    """Σ_c p log p per counted node; the official code's helper has the other sign (notes, row 10)."""
    z, mask = case
    rows = np.zeros(len(z))
    nodes = counted(mask, len(z))
    for i in nodes:
        rows[i] = entropy(dense(z)[i]) * (-1.0 if variant == "paper" else 1.0)
    expected = {"none": rows, "sum": rows.sum(), "mean": rows.sum() / len(nodes)}[reduction]
    value = propreg.confidence_penalty(z, mask=mask, reduction=reduction, variant=variant)
    np.testing.assert_allclose(value.numpy(), expected, rtol=1e-11, atol=1e-13)


def test_the_papers_sign_makes_predictions_less_sure_and_the_official_one_surer() -> None:
    z = random_logits(5, 4)
    before = z.softmax(-1).amax(-1)
    for variant, surer in (("paper", False), ("official", True)):
        leaf = z.clone().requires_grad_()
        value: Tensor = propreg.confidence_penalty(leaf, variant=variant)  # type: ignore[arg-type]
        (gradient,) = torch.autograd.grad(value, leaf)
        after = (z - 0.1 * gradient).softmax(-1).amax(-1)
        assert bool((after > before).all()) is surer
        assert bool((after < before).all()) is not surer


def test_its_range() -> None:
    """From −log C for uniform predictions to 0 for sure ones, and 0 for a single class."""
    assert propreg.confidence_penalty(torch.zeros(2, 8)).item() == pytest.approx(-np.log(8))
    assert propreg.confidence_penalty(1e4 * torch.eye(3)).item() == 0.0
    assert propreg.confidence_penalty(torch.randn(4, 1)).item() == 0.0


@pytest.mark.parametrize("variant", ["paper", "official"])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("mask", [None, torch.tensor([True, False, True, True]), torch.tensor([3, 0])])
def test_gradcheck_and_gradgradcheck(mask: Tensor | None, reduction: Any, variant: Any) -> None:
    z = random_logits(4, 3).requires_grad_()

    def fn(a: Tensor) -> Tensor:
        return propreg.confidence_penalty(a, mask=mask, reduction=reduction, variant=variant)

    assert torch.autograd.gradcheck(fn, z)
    assert torch.autograd.gradgradcheck(fn, z)


def test_nodes_outside_the_mask_get_no_gradient() -> None:
    z = random_logits(3, 2).requires_grad_()
    (gradient,) = torch.autograd.grad(propreg.confidence_penalty(z, mask=torch.tensor([True, False, True])), z)
    assert gradient.ne(0).any(dim=-1).tolist() == [True, False, True]


@pytest.mark.parametrize("size", [1.0, 80.0, 1e4])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_every_dtype_stays_finite_and_right(dtype: torch.dtype, size: float) -> None:
    z = (random_logits(6, 5) * size).to(dtype).requires_grad_()
    value = propreg.confidence_penalty(z)
    (gradient,) = torch.autograd.grad(value, z)
    assert value.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    assert gradient.isfinite().all()
    expected = -np.mean([entropy(row) for row in dense(z)])
    np.testing.assert_allclose(value.item(), expected, rtol=1e-5, atol=1e-7)


def test_a_shift_of_a_row_changes_nothing() -> None:
    z = random_logits(6, 5)
    torch.testing.assert_close(propreg.confidence_penalty(z + random_logits(6, 1)), propreg.confidence_penalty(z))


def test_vmap_grad_autocast_and_compile() -> None:
    z = random_logits(3, 6, 5)
    each = torch.stack([propreg.confidence_penalty(a) for a in z])
    torch.testing.assert_close(torch.func.vmap(propreg.confidence_penalty)(z), each)
    leaf = z[0].clone().requires_grad_()
    (expected,) = torch.autograd.grad(propreg.confidence_penalty(leaf), leaf)
    torch.testing.assert_close(torch.func.grad(propreg.confidence_penalty)(z[0]), expected)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = propreg.confidence_penalty(z[0].float())
    torch.testing.assert_close(inside, propreg.confidence_penalty(z[0].float()))
    torch._dynamo.reset()
    mask = torch.tensor([0, 2, 5])
    compiled = torch.compile(lambda a: propreg.confidence_penalty(a, mask=mask), fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(z[0]), propreg.confidence_penalty(z[0], mask=mask))


@pytest.mark.parametrize(
    ("error", "sentence", "arguments"),
    [
        (ValueError, "z must have two dimensions", {"z": torch.zeros(3)}),
        (ValueError, "z is empty", {"z": torch.zeros(0, 3)}),
        (ValueError, "z has a NaN or infinite value in row 1", {"z": torch.tensor([[0.0], [torch.inf], [0.0]])}),
        (ValueError, r"mask must have one entry per row of z, shape \(3,\)", {"mask": torch.ones(2, dtype=torch.bool)}),
        (ValueError, "mask refers to node 3 but z has 3 rows", {"mask": torch.tensor([0, 3])}),
        (ValueError, "mask names a node twice", {"mask": torch.tensor([0, 0])}),
        (TypeError, "mask must be bool or int64, but its dtype is torch.float32", {"mask": torch.ones(3)}),
        (ValueError, "reduction must be one of .* Did you mean 'mean'", {"reduction": "meen"}),
        (ValueError, "variant must be one of 'paper', 'official'", {"variant": "code"}),
    ],
)
def test_bad_input_is_named(error: type[Exception], sentence: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(error, match=sentence):
        propreg.confidence_penalty(**{"z": torch.zeros(3, 2), **arguments})
