"""Extreme logits and narrow dtypes: everything stays finite and close to the float64 value of the rounded input."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import reference
from propreg import PReg, Propagation, preg
from samples import BACKENDS, NORMS, ODD, PHIS, gaussian

DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)


def extreme(size: float, dtype: torch.dtype) -> Tensor:
    """Logits of ±size, some rows sure of different classes, some undecided, rounded to the dtype."""
    signs = torch.tensor(
        [[1, -1, -1], [-1, 1, -1], [1, 1, -1], [-1, -1, 1], [1, 0, -1], [-1, -1, -1]], dtype=torch.float64
    )
    return (size * signs).to(dtype)


@pytest.mark.parametrize("phi", PHIS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("size", [80.0, 1e4])
@pytest.mark.parametrize("loops", [False, True])
def test_large_logits(phi: Any, dtype: torch.dtype, size: float, loops: bool) -> None:
    z = extreme(size, dtype).requires_grad_()
    exact = extreme(size, dtype).double().requires_grad_()
    for norm in NORMS:
        for backend in BACKENDS:
            graph = Propagation(ODD.edge_index, 6, ODD.edge_weight, norm=norm, add_self_loops=loops, backend=backend)  # type: ignore[arg-type]
            value, wide = preg(z, graph, phi=phi), preg(exact, graph, phi=phi)
            (gradient,), (wide_gradient,) = torch.autograd.grad(value, z), torch.autograd.grad(wide, exact)
            assert value.isfinite()
            assert gradient.isfinite().all()
            assert gradient.dtype == dtype
            # Logits of this size carry an error of eps·size, and so does whatever is computed from them.
            eps = torch.finfo(value.dtype).eps
            expected = reference.preg(exact, ODD.edge_index, ODD.edge_weight, phi=phi, norm=norm, add_self_loops=loops)
            np.testing.assert_allclose(wide.item(), expected, rtol=1e-12, atol=1e-15 * size)
            np.testing.assert_allclose(value.item(), expected, rtol=16 * eps, atol=16 * eps * size)
            torch.testing.assert_close(
                gradient.double(), wide_gradient, rtol=4 * torch.finfo(dtype).eps, atol=64 * eps * size
            )


@pytest.mark.parametrize("phi", PHIS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_every_dtype_is_close_to_the_reference(phi: Any, dtype: torch.dtype, reduction: Any) -> None:
    z = gaussian(6, 5, dtype=dtype)
    value = preg(z, ODD.edge_index, ODD.edge_weight, phi=phi, norm="sym", reduction=reduction)
    assert value.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    expected = reference.preg(z, ODD.edge_index, ODD.edge_weight, phi=phi, norm="sym", reduction=reduction)
    tolerance = 1e-12 if dtype == torch.float64 else 5e-6
    np.testing.assert_allclose(value, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_half_precision_is_returned_in_float32_with_gradients_in_half(dtype: torch.dtype) -> None:
    z, source = gaussian(6, 3, dtype=dtype).requires_grad_(), gaussian(6, 3, seed=1, dtype=dtype).requires_grad_()
    module = PReg()
    for value in (
        preg(z, ODD.edge_index, source=source),
        module(z, ODD.edge_index, source=source),
        preg(z, Propagation(ODD.edge_index, 6, backend="gather"), source=source),
    ):
        assert value.dtype == torch.float32
        torch.testing.assert_close(value, preg(z.float(), ODD.edge_index, source=source.float()))
        assert all(g.dtype == dtype for g in torch.autograd.grad(value, (z, source)))


def test_a_sum_that_half_precision_could_not_hold() -> None:
    many = 5000
    z = torch.zeros(many, 2, dtype=torch.float16)
    z[::2] = 30.0
    ring = torch.stack([torch.arange(many), (torch.arange(many) + 1) % many])
    value = preg(z, ring, phi="squared_error", reduction="sum")
    assert value.item() == many * 900.0  # far above 65504, and float16 would stop counting long before


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_source_and_weights_of_another_dtype(dtype: torch.dtype) -> None:
    z, source = gaussian(6, 3, dtype=torch.float32), gaussian(6, 3, seed=1, dtype=dtype)
    weight = torch.tensor([1, 0.5, 2, 0.25, 1, 1.5, 3, 1], dtype=dtype)
    value = preg(z, ODD.edge_index, weight, source=source)
    assert value.dtype == torch.float32
    np.testing.assert_allclose(value, reference.preg(z, ODD.edge_index, weight, source=source), rtol=1e-6)


@pytest.mark.parametrize("phi", PHIS)
def test_weights_of_very_different_sizes(phi: Any) -> None:
    weight = torch.tensor([1e-30, 1e30, 1.0, 1e-12, 1e12, 1e20, 3.0, 1e-300], dtype=torch.float64)
    z = gaussian(6, 3).requires_grad_()
    value = preg(z, ODD.edge_index, weight, phi=phi)
    np.testing.assert_allclose(value.item(), reference.preg(z, ODD.edge_index, weight, phi=phi), rtol=1e-10)
    assert torch.autograd.grad(value, z)[0].isfinite().all()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("backend", BACKENDS)
def test_autocast(dtype: torch.dtype, backend: Any) -> None:
    x, w = gaussian(6, 5, dtype=torch.float32), gaussian(5, 3, seed=1, dtype=torch.float32).requires_grad_()
    graph = Propagation(ODD.edge_index, 6, norm="sym", backend=backend)
    module = PReg(norm="sym")
    with torch.autocast("cpu", dtype=dtype):
        z = x @ w
        assert z.dtype == dtype
        values = preg(z, graph), module(z, ODD.edge_index), preg(z, ODD.edge_index, norm="sym")
        inside = torch.autograd.grad(values[0], w, retain_graph=True)[0]
    for value in values:
        assert value.dtype == torch.float32
        torch.testing.assert_close(value, preg(z.float(), ODD.edge_index, norm="sym"))
        torch.testing.assert_close(torch.autograd.grad(value, w, retain_graph=True)[0], inside)


@pytest.mark.parametrize("phi", PHIS)
def test_autocast_does_not_touch_wide_logits(phi: Any) -> None:
    for dtype in (torch.float32, torch.float64):
        z = gaussian(6, 3, dtype=dtype)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            value, matrix = preg(z, ODD.edge_index, phi=phi), Propagation(ODD.edge_index, 6)(z)
        assert value.item() == preg(z, ODD.edge_index, phi=phi).item()
        assert torch.equal(matrix, Propagation(ODD.edge_index, 6)(z))


def test_a_callable_is_called_in_float32_and_outside_autocast() -> None:
    def phi(z: Tensor, propagated: Tensor) -> Tensor:
        assert z.dtype == propagated.dtype == torch.float32
        return (z @ propagated.t()).diagonal()  # a product that autocast would round

    z = gaussian(6, 3, dtype=torch.bfloat16)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        value = preg(z, ODD.edge_index, phi=phi)
    assert value.item() == preg(z, ODD.edge_index, phi=phi).item()
