"""Gradients of first and second order, to logits, source and edge weights; what detach stops; what is exactly 0."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import forward_ad, gradcheck, gradgradcheck

from propreg import PReg, Propagation, preg
from samples import BACKENDS, NORMS, ODD, PATH, PHIS, REDUCTIONS, distance, gaussian, torch_uses_jit

SMALL = torch.tensor([[0, 0, 1, 1, 1, 2], [1, 1, 0, 1, 2, 1]])  # a duplicate, a loop, and a fourth node alone
SMALL_WEIGHT = torch.tensor([1.0, 0.5, 2.0, 0.25, 1.0, 1.5], dtype=torch.float64)
SMALL_MASK = torch.tensor([True, False, True, True])
Z = gaussian(6, 2)


def cosine(z: Tensor, propagated: Tensor) -> Tensor:
    """Written out: 0 / 0 where a side is zero, as the propagated logits of an isolated node are."""
    return 1 - (z * propagated).sum(-1) / (z.square().sum(-1).sqrt() * propagated.square().sum(-1).sqrt())


def log_ratio(z: Tensor, propagated: Tensor) -> Tensor:
    """Infinite where the propagated logits are zero."""
    return (z.abs() / propagated.abs()).log().square().sum(-1)


ROUGH = (distance, cosine, log_ratio)


@pytest.mark.parametrize("phi", [*PHIS, distance])
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("mask", [None, SMALL_MASK], ids=["all", "masked"])
def test_first_and_second_derivatives(phi: Any, norm: Any, reduction: Any, mask: Tensor | None) -> None:
    graph = Propagation(SMALL, 4, SMALL_WEIGHT, norm=norm)

    def term(z: Tensor) -> Tensor:
        return preg(z, graph, phi=phi, reduction=reduction, mask=mask)

    z = Z[:4].clone().requires_grad_()
    assert gradcheck(term, z)
    assert gradgradcheck(term, z)


@torch_uses_jit
@pytest.mark.parametrize("phi", [*PHIS, distance])
@pytest.mark.parametrize("backend", ["csr", "gather"])
def test_derivatives_in_torch_uses_jit_and_in_batches(phi: Any, backend: Any) -> None:
    graph = Propagation(SMALL, 4, SMALL_WEIGHT, norm="sym", backend=backend)

    def term(z: Tensor) -> Tensor:
        return preg(z, graph, phi=phi, reduction="none")

    z = Z[:4].clone().requires_grad_()
    assert gradcheck(term, z, check_forward_ad=True, check_batched_grad=True, check_batched_forward_grad=True)
    assert gradgradcheck(term, z, check_fwd_over_rev=True, check_batched_grad=True, fast_mode=True)


@torch_uses_jit
@pytest.mark.parametrize("phi", PHIS)
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("loops", [False, True])
def test_derivatives_to_logits_source_and_weights_together(phi: Any, norm: Any, loops: bool) -> None:
    def term(z: Tensor, source: Tensor, weight: Tensor) -> Tensor:
        return preg(z, SMALL, weight, phi=phi, norm=norm, add_self_loops=loops, source=source)

    inputs = tuple(t.clone().requires_grad_() for t in (Z[:4], gaussian(4, 2, seed=1), SMALL_WEIGHT))
    assert gradcheck(term, inputs, check_forward_ad=True)
    assert gradgradcheck(term, inputs, fast_mode=True)


@pytest.mark.parametrize("threshold", [0.1, 5.0])
def test_derivatives_on_both_sides_of_the_hinge(threshold: float) -> None:
    def term(z: Tensor) -> Tensor:
        return preg(z, ODD.edge_index, threshold=threshold)

    z = Z.clone().requires_grad_()
    assert gradcheck(term, z)
    assert gradgradcheck(term, z)
    assert bool(torch.autograd.grad(term(z), z)[0].any()) == (threshold < 1)


@pytest.mark.parametrize("norm", NORMS)
def test_weights_of_a_propagation_and_of_a_sparse_tensor_get_gradients(norm: Any) -> None:
    assert ODD.edge_weight is not None
    weight = ODD.edge_weight.clone().requires_grad_()
    (expected,) = torch.autograd.grad(preg(Z, ODD.edge_index, weight, norm=norm), weight)
    (gradient,) = torch.autograd.grad(preg(Z, Propagation(ODD.edge_index, 6, weight, norm=norm)), weight)
    torch.testing.assert_close(gradient, expected)
    sparse = torch.sparse_coo_tensor(ODD.edge_index.flip(0), weight, (6, 6), check_invariants=True)
    (gradient,) = torch.autograd.grad(preg(Z, sparse, norm=norm), weight)
    torch.testing.assert_close(gradient, expected)


@torch_uses_jit
@pytest.mark.parametrize("backend", BACKENDS)
def test_propagation_itself(backend: Any) -> None:
    propagation = Propagation(ODD.edge_index, 6, ODD.edge_weight, norm="sym", backend=backend)
    for apply in (propagation, propagation.transposed):
        assert gradcheck(apply, Z.clone().requires_grad_(), check_forward_ad=True, check_batched_grad=True)
        assert gradgradcheck(apply, Z.clone().requires_grad_(), check_fwd_over_rev=True)


@torch_uses_jit
def test_tangents_of_weights_in_torch_uses_jit() -> None:
    """Forward mode without torch.func: the weights require no gradient, and still nothing may be kept of them."""
    assert ODD.edge_weight is not None
    tangent = gaussian(8, seed=3)
    weight = ODD.edge_weight.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(preg(Z, ODD.edge_index, weight, norm="sym"), weight)
    module = PReg(norm="sym")
    module(Z, ODD.edge_index, ODD.edge_weight)
    for term in (module, lambda z, e, w: preg(z, e, w, norm="sym")):
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(ODD.edge_weight, tangent)  # type: ignore[no-untyped-call]
            _, pushed = forward_ad.unpack_dual(term(Z, ODD.edge_index, dual))  # type: ignore[no-untyped-call]
        torch.testing.assert_close(pushed, gradient @ tangent)
    assert module(Z, ODD.edge_index, ODD.edge_weight).item() == preg(Z, ODD.edge_index, ODD.edge_weight, norm="sym")


def gradients(term: Callable[..., Tensor], *inputs: Tensor) -> tuple[Tensor, ...]:
    """Gradients to copies of the inputs, 0 where the term does not depend on one."""
    leaves = [t.clone().requires_grad_() for t in inputs]
    value = term(*leaves)
    if not value.requires_grad:
        return tuple(torch.zeros_like(t) for t in leaves)
    return torch.autograd.grad(value, leaves, allow_unused=True, materialize_grads=True)


@pytest.mark.parametrize("phi", [*PHIS, distance])
@pytest.mark.parametrize("norm", NORMS)
def test_detach_makes_one_side_a_constant(phi: Any, norm: Any) -> None:
    graph = Propagation(ODD.edge_index, 6, ODD.edge_weight, norm=norm)

    def constant_self(z: Tensor) -> Tensor:
        return preg(Z, graph, phi=phi, source=z)

    def constant_neighbors(z: Tensor) -> Tensor:
        return preg(z, graph, phi=phi, source=Z)

    for detach, expected in (("self", constant_self), ("neighbours", constant_neighbors)):
        term = lambda z, detach=detach: preg(z, graph, phi=phi, detach=detach)  # noqa: E731
        torch.testing.assert_close(gradients(term, Z), gradients(expected, Z))


def test_detach_with_a_source_and_weights() -> None:
    assert ODD.edge_weight is not None
    inputs = (Z, gaussian(6, 2, seed=1), ODD.edge_weight)

    def term(detach: Any) -> Callable[..., Tensor]:
        return lambda z, source, weight: preg(z, ODD.edge_index, weight, source=source, detach=detach)

    full, no_self, no_neighbors = (gradients(term(detach), *inputs) for detach in (None, "self", "neighbours"))
    assert not no_self[0].any()
    torch.testing.assert_close(no_self[1:], full[1:])
    torch.testing.assert_close(no_neighbors[0], full[0])
    assert not no_neighbors[1].any()
    assert not no_neighbors[2].any()


@pytest.mark.parametrize("phi", [*PHIS, *ROUGH])
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("row", [[0.0, 0.0], [1e4, -1e4], [0.3, 0.1]], ids=str)
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_node_that_hears_nobody_has_value_and_gradients_zero(
    phi: Any, norm: Any, row: list[float], backend: Any
) -> None:
    graph = Propagation(ODD.edge_index[:, :7], 6, norm=norm, backend=backend)
    z = Z.clone()
    z[5] = torch.tensor(row)  # hears and tells nobody
    z.requires_grad_()
    values = preg(z, graph, phi=phi, norm=norm, reduction="none")
    assert not values[3:].any()  # 3 hears nobody either, but tells 2
    (gradient,) = torch.autograd.grad(values.sum(), z, create_graph=True)
    assert gradient.isfinite().all()
    assert not gradient[5].any()
    (second,) = torch.autograd.grad(gradient.square().sum(), z)
    assert second.isfinite().all()
    assert not second[5].any()


@pytest.mark.parametrize("phi", [*ROUGH, "l2_probability"])
def test_a_node_that_the_mask_leaves_out_cannot_spoil_the_gradient(phi: Any) -> None:
    z = torch.tensor([[0.0, 0.0], [0.0, 0.0], [1.0, 2.0], [2.0, 1.0]], dtype=torch.float64, requires_grad=True)
    pairs = torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])
    value = preg(z, pairs, phi=phi, mask=torch.tensor([2, 3]))
    (gradient,) = torch.autograd.grad(value, z, create_graph=True)
    assert value.isfinite()
    assert gradient.isfinite().all()
    assert not gradient[:2].any()
    assert torch.autograd.grad(gradient.square().sum(), z)[0].isfinite().all()


def test_probabilities_that_agree_have_subgradient_zero() -> None:
    z = torch.ones(4, 3, dtype=torch.float64, requires_grad=True)
    value = preg(z, PATH.edge_index, phi="l2_probability")
    assert value.item() == 0.0
    assert not torch.autograd.grad(value, z)[0].any()


def test_a_callable_sees_the_logits_and_their_propagation() -> None:
    seen: list[Tensor] = []

    def phi(z: Tensor, propagated: Tensor) -> Tensor:
        seen.extend((z, propagated))
        return (z - propagated).square().sum(-1) / 2

    z = gaussian(4, 3)
    value = preg(z, PATH.edge_index, phi=phi)
    torch.testing.assert_close(value, preg(z, PATH.edge_index, phi="squared_error"))
    torch.testing.assert_close(seen, [z, Propagation(PATH.edge_index, 4)(z)])


def test_backward_twice_through_the_same_module() -> None:
    module, z = PReg(), Z.clone().requires_grad_()
    for _ in range(2):
        module(z, ODD.edge_index).backward()
    assert z.grad is not None
    torch.testing.assert_close(z.grad, 2 * gradients(lambda x: preg(x, ODD.edge_index), Z)[0])
