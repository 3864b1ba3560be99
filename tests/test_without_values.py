"""Tensors without values (meta and fake), another default device, and whole numbers of 32 bits."""
# ruff: noqa: ARG005 (every entry of the table takes the same four arguments)

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from propreg import (
    PReg,
    Propagation,
    Term,
    check_regularizer,
    confidence_penalty,
    dirichlet_energy,
    laplacian,
    mean_average_distance,
    preg,
)
from samples import NORMS, ODD, PHIS, compressed, gaussian, layouts, pyg

Z = gaussian(6, 3)
MASK = torch.tensor([1, 2])
TERMS: dict[str, Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]] = {
    **{phi: lambda z, e, w, m, phi=phi: preg(z, e, w, phi=phi, mask=m) for phi in PHIS},  # type: ignore[misc]
    **{f"{norm} with loops": lambda z, e, w, m, n=norm: preg(z, e, norm=n, add_self_loops=True) for norm in NORMS},  # type: ignore[misc]
    "module": lambda z, e, w, m: PReg()(z, e, w, mask=m),
    "term": lambda z, e, w, m: Term(PReg())(z, e),
    "validated": lambda z, e, w, m: preg(z, e, w, mask=m, validate=True),
    "laplacian": lambda z, e, w, m: laplacian(z, e, w, norm="sym"),
    "official laplacian": lambda z, e, w, m: laplacian(z, e, variant="official"),
    "confidence penalty": lambda z, e, w, m: confidence_penalty(z, mask=m),
    "Dirichlet energy": lambda z, e, w, m: dirichlet_energy(z, e, w),
    "MAD": lambda z, e, w, m: mean_average_distance(z, e),
}


@pytest.mark.parametrize("name", TERMS)
def test_meta_tensors_give_a_shape_and_a_gradient(name: str) -> None:
    z, *rest = (t.to("meta") for t in (Z, ODD.edge_index, ODD.edge_weight, MASK) if t is not None)
    value = TERMS[name](z.requires_grad_(), *rest)
    value.backward()  # type: ignore[no-untyped-call]
    assert value.is_meta
    assert value.shape == ()
    assert z.grad is not None
    assert z.grad.shape == z.shape


@pytest.mark.parametrize("name", TERMS)
def test_fake_tensors_give_a_shape_and_a_gradient(name: str) -> None:
    mode = FakeTensorMode()
    leaf = Z.clone().requires_grad_()
    came = [mode.from_tensor(t) for t in (leaf, ODD.edge_index, ODD.edge_weight, MASK) if t is not None]
    with mode:
        value = TERMS[name](*came)
        (gradient,) = torch.autograd.grad(value, came[0])
    assert (value.shape, value.device.type) == ((), "cpu")
    assert gradient.shape == Z.shape


def test_a_module_goes_on_after_a_fake_tensor() -> None:
    module, mode = PReg(), FakeTensorMode()
    with mode:
        module(mode.from_tensor(Z), mode.from_tensor(ODD.edge_index))
    assert torch.equal(module(Z, ODD.edge_index), preg(Z, ODD.edge_index))


def test_a_propagation_may_be_moved_to_meta() -> None:
    graph = Propagation(ODD.edge_index, 6, ODD.edge_weight)
    assert preg(Z.to("meta"), graph.to("meta")).is_meta
    for sparse in (ODD.sparse().coalesce(), compressed(ODD.sparse(), torch.sparse_csr)):
        assert preg(Z.to("meta"), sparse.to("meta")).is_meta


@pytest.mark.parametrize("how", ["default", "context"])
@pytest.mark.parametrize("name", TERMS)
def test_another_default_device_changes_nothing(name: str, how: str) -> None:
    inputs: Any = (Z, ODD.edge_index, ODD.edge_weight, MASK)
    expected = TERMS[name](*inputs)
    if how == "context":
        with torch.device("meta"):
            value = TERMS[name](*inputs)
    else:
        torch.set_default_device("meta")
        try:
            value = TERMS[name](*inputs)
        finally:
            torch.set_default_device(None)
    assert torch.equal(value, expected)


def test_every_layout_of_a_graph_under_another_default_device() -> None:
    expected = preg(Z, ODD.edge_index, ODD.edge_weight)
    came = layouts(ODD)
    with torch.device("meta"):
        for layout, (edge_index, weight) in came.items():
            torch.testing.assert_close(preg(Z, edge_index, weight), expected, msg=layout)
        graph = Propagation(ODD.edge_index, 6, ODD.edge_weight, norm="sym", add_self_loops=True)
        assert {t.device.type for t in (graph.to_dense(), graph.degree(), graph.connected(), graph(Z))} == {"cpu"}
        assert check_regularizer(preg)


def test_edges_may_be_int32() -> None:
    module = PReg()
    expected = preg(Z, ODD.edge_index, ODD.edge_weight)
    narrow = ODD.edge_index.int()
    for came in (narrow, pyg("torch_geometric").EdgeIndex(narrow, sparse_size=(6, 6))):
        assert torch.equal(preg(Z, came, ODD.edge_weight), expected)
        assert torch.equal(module(Z, came, ODD.edge_weight), expected)
        assert torch.equal(laplacian(Z, came), laplacian(Z, ODD.edge_index))
    assert Propagation(narrow, 6).edge_index.dtype == torch.int64
