"""torch.func: vmap, grad, jvp, hessian and their nestings, with graphs made before, inside and after a transform."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.func import grad, hessian, jacfwd, jacrev, jvp, vmap

from propreg import PReg, Propagation, preg
from samples import ODD, PHIS, compressed, edge_index_of_pyg, gaussian, torch_uses_jit

Z, ZS, TANGENT = gaussian(6, 2), gaussian(3, 6, 2, seed=1), gaussian(6, 2, seed=2)
WEIGHT = ODD.edge_weight
assert WEIGHT is not None

GRAPHS: dict[str, Callable[[], Any]] = {
    "edge_index": lambda: ODD.edge_index,
    "EdgeIndex": lambda: edge_index_of_pyg(ODD.edge_index, 6),
    "Propagation": lambda: Propagation(ODD.edge_index, 6),
    "Propagation, built": lambda: Propagation(ODD.edge_index, 6).build(torch.float64),
    "Propagation, built in float32": lambda: Propagation(ODD.edge_index, 6).build(torch.float32),
    "Propagation, used": lambda: _used(Propagation(ODD.edge_index, 6)),
    "Propagation, csr, built": lambda: Propagation(ODD.edge_index, 6, backend="csr").build(torch.float64),
    "Propagation, gather": lambda: Propagation(ODD.edge_index, 6, backend="gather"),
}


def _used(propagation: Propagation) -> Propagation:
    preg(Z, propagation)
    return propagation


def expected_gradient(z: Tensor, **options: Any) -> Tensor:
    leaf = z.clone().requires_grad_()
    return torch.autograd.grad(preg(leaf, ODD.edge_index, **options), leaf)[0]


def expected_hessian() -> Tensor:
    def term(z: Tensor) -> Tensor:
        return preg(z, ODD.edge_index)

    result: Tensor = torch.autograd.functional.hessian(term, Z)  # type: ignore[no-untyped-call]
    return result


def check_afterward(graph: Any) -> None:
    """What a transform left behind in a graph must serve plain code: values, gradients, another dtype, no_grad."""
    z = Z.clone().requires_grad_()
    torch.testing.assert_close(torch.autograd.grad(preg(z, graph), z)[0], expected_gradient(Z))
    torch.testing.assert_close(preg(Z.float(), graph), preg(Z.float(), ODD.edge_index))
    if isinstance(graph, Propagation):
        assert graph.connected().tolist() == [True, True, True, True, False, False]


@torch_uses_jit
@pytest.mark.parametrize("graph", GRAPHS)
def test_every_transform_with_every_graph(graph: str) -> None:
    came = GRAPHS[graph]()

    def term(z: Tensor) -> Tensor:
        return preg(z, came)

    each = torch.stack([preg(z, ODD.edge_index) for z in ZS])
    gradients = torch.stack([expected_gradient(z) for z in ZS])
    curvature = expected_hessian()
    checks: list[tuple[Any, Any]] = [
        (grad(term)(Z), expected_gradient(Z)),
        (vmap(term)(ZS), each),
        (vmap(term, in_dims=1)(ZS.movedim(0, 1)), each),
        (vmap(term, in_dims=-1)(ZS.movedim(0, -1)), each),
        (vmap(term, chunk_size=2)(ZS), each),
        (vmap(vmap(term))(ZS.unsqueeze(1)), each.unsqueeze(1)),
        (vmap(grad(term))(ZS), gradients),
        (grad(lambda zs: vmap(term)(zs).sum())(ZS), gradients),
        (jvp(term, (Z,), (TANGENT,))[1], (expected_gradient(Z) * TANGENT).sum()),
        (vmap(lambda t: jvp(term, (Z,), (t,))[1])(ZS), (expected_gradient(Z) * ZS).sum((1, 2))),
        (hessian(term)(Z), curvature),
        (jacrev(jacrev(term))(Z), curvature),
        (jacfwd(jacfwd(term))(Z), curvature),
        (vmap(hessian(term))(torch.stack([Z, Z])), torch.stack([curvature, curvature])),
    ]
    for number, (value, expected) in enumerate(checks):
        torch.testing.assert_close(value, expected, msg=f"check {number}")
    check_afterward(came)


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("transform", [grad, lambda f: vmap(grad(f)), vmap], ids=["grad", "both", "vmap"])
def test_a_graph_first_used_inside_a_transform(graph: str, transform: Any) -> None:
    came = GRAPHS[graph]()
    transform(lambda z: preg(z, came))(Z if transform is grad else ZS)
    check_afterward(came)


def test_a_graph_made_inside_a_transform() -> None:
    outside: list[Propagation] = []

    def term(z: Tensor) -> Tensor:
        outside.append(Propagation(ODD.edge_index, 6))
        return preg(z, outside[-1])

    torch.testing.assert_close(grad(term)(Z), expected_gradient(Z))
    torch.testing.assert_close(vmap(grad(term))(ZS), torch.stack([expected_gradient(z) for z in ZS]))
    for graph in outside:
        check_afterward(graph)


def test_a_sparse_graph_inside_a_transform() -> None:
    for sparse in (
        ODD.sparse(),
        compressed(ODD.sparse(), torch.sparse_csr),
        compressed(ODD.sparse(), torch.sparse_csc),
    ):
        made = Propagation(sparse)
        gradient = grad(lambda z, made=made: preg(z, made))(Z)
        leaf = Z.clone().requires_grad_()
        torch.testing.assert_close(gradient, torch.autograd.grad(preg(leaf, sparse), leaf)[0])


def test_a_matrix_is_not_built_inside_a_transform() -> None:
    forced = Propagation(ODD.edge_index, 6, backend="csr")
    for transform, z in ((grad, Z), (vmap, ZS)):
        with pytest.raises(ValueError, match=r"cannot be built inside .* call propagation\.build\(torch\.float64\)"):
            transform(lambda z: preg(z, forced))(z)
    check_afterward(forced)
    torch.testing.assert_close(grad(lambda z: preg(z, forced))(Z), expected_gradient(Z))


@torch_uses_jit
def test_the_module_keeps_nothing_of_a_transform() -> None:
    module = PReg()

    def term(z: Tensor) -> Tensor:
        value: Tensor = module(z, ODD.edge_index)
        return value

    for _ in range(2):  # at first with nothing kept, then with the graph that the check keeps
        torch.testing.assert_close(vmap(grad(term))(ZS), torch.stack([expected_gradient(z) for z in ZS]))
        torch.testing.assert_close(hessian(term)(Z), expected_hessian())
        torch.testing.assert_close(module(Z, ODD.edge_index), preg(Z, ODD.edge_index), rtol=0, atol=0)
        leaf = Z.clone().requires_grad_()
        torch.testing.assert_close(torch.autograd.grad(term(leaf), leaf)[0], expected_gradient(Z))


@torch_uses_jit
@pytest.mark.parametrize("phi", PHIS)
def test_all_options(phi: Any) -> None:
    source, mask = gaussian(6, 2, seed=3), torch.tensor([True, True, False, True, True, True])
    for detach in (None, "self", "neighbours"):
        options: dict[str, Any] = {
            "phi": phi,
            "norm": "sym",
            "add_self_loops": True,
            "detach": detach,
            "source": source,
            "mask": mask,
            "threshold": 0.01,
        }
        term = lambda z, options=options: preg(z, ODD.edge_index, WEIGHT, **options)  # noqa: E731
        leaf = Z.clone().requires_grad_()
        value = preg(leaf, ODD.edge_index, WEIGHT, **options)
        expected = torch.autograd.grad(value, leaf)[0] if value.requires_grad else torch.zeros_like(Z)
        torch.testing.assert_close(grad(term)(Z), expected)
        torch.testing.assert_close(vmap(grad(term))(torch.stack([Z, Z]))[1], expected)
        torch.testing.assert_close(jvp(term, (Z,), (TANGENT,))[1], (expected * TANGENT).sum())
    masks = torch.stack([mask, ~mask, mask])
    torch.testing.assert_close(
        vmap(lambda m: preg(Z, ODD.edge_index, phi=phi, mask=m))(masks),
        torch.stack([preg(Z, ODD.edge_index, phi=phi, mask=m) for m in masks]),
    )


@torch_uses_jit
@pytest.mark.parametrize("norm", ["rw", "sym"])
def test_weights_and_graphs_inside_a_transform(norm: Any) -> None:
    assert WEIGHT is not None
    weight = WEIGHT.clone().requires_grad_()
    (expected,) = torch.autograd.grad(preg(Z, ODD.edge_index, weight, norm=norm), weight)

    def term(weight: Tensor) -> Tensor:
        return preg(Z, ODD.edge_index, weight, norm=norm)

    def of_a_propagation(weight: Tensor) -> Tensor:
        return preg(Z, Propagation(ODD.edge_index, 6, weight, norm=norm))

    for f in (term, of_a_propagation):
        torch.testing.assert_close(grad(f)(WEIGHT), expected)
        torch.testing.assert_close(jacfwd(f)(WEIGHT), expected)
        torch.testing.assert_close(vmap(grad(f))(torch.stack([WEIGHT, WEIGHT]))[1], expected)
    weights = torch.stack([WEIGHT, WEIGHT.flip(0)])
    torch.testing.assert_close(vmap(term)(weights), torch.stack([term(w) for w in weights]))
    graphs = torch.stack([ODD.edge_index, ODD.edge_index.flip(0)])
    torch.testing.assert_close(
        vmap(lambda e: preg(Z, e, WEIGHT, norm=norm))(graphs),
        torch.stack([preg(Z, e, WEIGHT, norm=norm) for e in graphs]),
    )


@pytest.mark.parametrize("batch", [0, 1, 2, -1])
def test_the_batch_may_be_any_dimension_of_the_bare_product(batch: int) -> None:
    graph = Propagation(ODD.edge_index, 6).build(torch.float64)
    matrix = graph._matrix(torch.float64)
    product = vmap(matrix, in_dims=batch)(ZS.movedim(0, batch))
    torch.testing.assert_close(product, torch.stack([graph(z) for z in ZS]))


def test_values_are_not_looked_at_inside_a_transform() -> None:
    bad = ZS.clone()
    bad[1, 0, 0] = float("nan")
    values = vmap(lambda z: preg(z, ODD.edge_index))(bad)
    assert values.isnan().tolist() == [False, True, False]


def test_half_precision_inside_a_transform() -> None:
    for dtype in (torch.bfloat16, torch.float16):
        values = vmap(lambda z: preg(z, ODD.edge_index))(ZS.to(dtype))
        assert values.dtype == torch.float32
        torch.testing.assert_close(values, torch.stack([preg(z.to(dtype), ODD.edge_index) for z in ZS]))


def test_a_batch_of_models_trained_at_once() -> None:
    """Three linear models as one: the gradient of each is its own."""
    x, w = gaussian(6, 4, seed=5), gaussian(3, 4, 2, seed=6)

    def loss(w: Tensor) -> Tensor:
        return preg(x @ w, ODD.edge_index)

    together = vmap(grad(loss))(w)
    for ours, model in zip(together, w, strict=True):
        leaf = model.clone().requires_grad_()
        torch.testing.assert_close(ours, torch.autograd.grad(loss(leaf), leaf)[0])
