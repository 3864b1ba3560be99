"""Edges between two kinds of nodes, and products of propagations as one operator."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import reference
from propreg import PReg, Propagation, dirichlet_energy, laplacian, mean_average_distance, preg
from samples import BACKENDS, ODD, PHIS, compressed, gaussian, pyg
from strategies import thorough

# Five sources, three targets: target 0 hears 0 (twice) and 4, target 2 hears 1; nobody tells target 1.
EDGES = torch.tensor([[0, 0, 4, 1], [0, 0, 0, 2]])
WEIGHT = torch.tensor([1.0, 0.5, 1.5, 2.0], dtype=torch.float64)
SIZE = (5, 3)
BACK = Propagation(EDGES.flip(0), size=(3, 5))
X, Z = gaussian(5, 2), gaussian(3, 2, seed=1)


def by_hand(edges: Tensor, size: tuple[int, int], weight: Tensor | None = None) -> reference.Array:
    """D⁻¹A as [targets, sources], 0 where D is 0."""
    matrix = np.zeros((size[1], size[0]))
    for number, (source, target) in enumerate(edges.t().tolist()):
        matrix[target, source] += 1.0 if weight is None else float(weight[number])
    rows = matrix.sum(1, keepdims=True)
    return matrix / np.where(rows > 0, rows, 1.0)


@given(
    pairs=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), max_size=12),
    weighted=st.booleans(),
)
@thorough
def test_it_is_the_row_normalized_matrix(pairs: list[tuple[int, int]], weighted: bool) -> None:
    edges = torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).t()
    weight = torch.linspace(0.1, 2, len(pairs), dtype=torch.float64) if weighted else None
    dense = by_hand(edges, (4, 6), weight)
    x, g = gaussian(4, 3), gaussian(6, 3)
    for backend in BACKENDS:
        graph = Propagation(edges, None, weight, size=(4, 6), backend=backend)
        np.testing.assert_allclose(graph(x), dense @ x.numpy(), rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(graph.transposed(g), dense.T @ g.numpy(), rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(graph.to_dense(torch.float64), dense, rtol=1e-12, atol=1e-15)
        assert graph.connected().tolist() == (dense.sum(1) > 0).tolist()


@pytest.mark.parametrize("phi", PHIS)
def test_the_term_compares_targets_with_their_sources(phi: Any) -> None:
    graph = Propagation(EDGES, None, WEIGHT, size=SIZE)
    heard = by_hand(EDGES, SIZE, WEIGHT) @ X.numpy()
    function = reference.PHIS[phi]
    expected = sum(function(Z[i].numpy(), heard[i]) for i in (0, 2)) / 3
    assert preg(Z, graph, phi=phi, source=X).item() == pytest.approx(expected, rel=1e-12)
    assert PReg(phi)(Z, graph, source=X).item() == pytest.approx(expected, rel=1e-12)


def test_gradients_reach_both_sides() -> None:
    for built in (False, True):
        graph = Propagation(EDGES, None, WEIGHT, size=SIZE)
        graph = graph.build(torch.float64) if built else graph
        z, x = Z.clone().requires_grad_(), X.clone().requires_grad_()
        assert torch.autograd.gradcheck(lambda z, x, graph=graph: preg(z, graph, source=x), (z, x))
        torch.compiler.reset()
        fast = torch.compile(lambda z, x, graph=graph: preg(z, graph, source=x), fullgraph=True, backend="aot_eager")
        torch.testing.assert_close(fast(z, x), preg(z, graph, source=x))


def test_layouts_of_two_sizes() -> None:
    expected = Propagation(EDGES, None, WEIGHT, size=SIZE).to_dense(torch.float64)
    matrix = torch.zeros(3, 5, dtype=torch.float64).index_put((EDGES[1], EDGES[0]), WEIGHT, accumulate=True)
    for sparse in (matrix.to_sparse(), compressed(matrix, torch.sparse_csr), compressed(matrix, torch.sparse_csc)):
        torch.testing.assert_close(Propagation(sparse, size=SIZE).to_dense(torch.float64), expected)
    of_pyg = pyg("torch_geometric").EdgeIndex(EDGES, sparse_size=SIZE)
    torch.testing.assert_close(Propagation(of_pyg, None, WEIGHT, size=SIZE).to_dense(torch.float64), expected)


def test_a_product_is_the_product_of_the_matrices() -> None:
    there = Propagation(EDGES, None, WEIGHT, size=SIZE)
    loop = BACK @ there
    dense = BACK.to_dense(torch.float64) @ there.to_dense(torch.float64)
    assert loop.size == (5, 5)
    torch.testing.assert_close(loop.to_dense(torch.float64), dense)
    torch.testing.assert_close(loop(X), dense @ X)
    torch.testing.assert_close(loop.transposed(X), dense.t() @ X)
    torch.testing.assert_close(loop @ X, dense @ X)
    assert loop.connected().tolist() == (dense.sum(1) > 0).tolist()
    assert not loop.all_connected()
    long = there @ BACK @ there @ loop
    torch.testing.assert_close(long.to_dense(torch.float64), there.to_dense(torch.float64) @ dense @ dense)
    assert repr(loop) == f"{BACK!r} @ {there!r}"
    assert "size=(3, 5)" in repr(loop)


@pytest.mark.parametrize("phi", ["cross_entropy", "squared_error"])
def test_the_term_takes_a_product(phi: Any) -> None:
    twice = Propagation(ODD.edge_index, 6) @ Propagation(ODD.edge_index, 6)
    z = gaussian(6, 3).requires_grad_()
    heard = twice.to_dense(torch.float64).numpy() @ z.detach().numpy()
    rows = [i for i in range(6) if bool(twice.connected()[i])]
    expected = sum(reference.PHIS[phi](z[i].detach().numpy(), heard[i]) for i in rows) / 6
    assert 0 < len(rows) < 6
    assert preg(z, twice, phi=phi).item() == pytest.approx(expected, rel=1e-12)
    assert torch.autograd.gradcheck(lambda z: preg(z, twice, phi=phi), z)
    module = PReg(phi)
    assert module(z, twice).item() == pytest.approx(expected, rel=1e-12)
    vmapped = torch.func.vmap(lambda z: preg(z, twice, phi=phi))(torch.stack([z, 2 * z]))
    torch.testing.assert_close(vmapped[0], preg(z, twice, phi=phi))


def test_weights_with_a_gradient_in_a_factor() -> None:
    weight = WEIGHT.clone().requires_grad_()

    def term(weight: Tensor) -> Tensor:
        return preg(X, BACK @ Propagation(EDGES, None, weight, size=SIZE))

    assert torch.autograd.gradcheck(term, weight)


def test_copies() -> None:
    for graph in (BACK, BACK @ Propagation(EDGES, size=SIZE)):
        graph.all_connected()
        for other in (copy.deepcopy(graph), pickle.loads(pickle.dumps(graph))):
            assert torch.equal(other.to_dense(), graph.to_dense())
    assert BACK.to("meta").size == (3, 5)


@pytest.mark.parametrize(
    ("call", "kind", "sentence"),
    [
        (lambda: Propagation(EDGES, 5, size=SIZE), ValueError, "size is .* and replaces num_nodes"),
        (lambda: Propagation(EDGES, size=5), ValueError, r"size is \(sources, targets\)"),  # type: ignore[arg-type]
        (lambda: Propagation(EDGES, size=(4, 3)), ValueError, "node 4 but z has 4 rows"),
        (lambda: Propagation(EDGES, size=(5, 2)), ValueError, "node 2 but z has 2 rows"),
        (lambda: Propagation(EDGES, size=SIZE, norm="sym"), ValueError, "two kinds of nodes have norm='rw'"),
        (lambda: Propagation(EDGES, size=SIZE, add_self_loops=True), ValueError, "no self-loops"),
        (lambda: Propagation(torch.eye(3).to_sparse(), size=SIZE), ValueError, r"\(3, 3\) for size=\(5, 3\)"),
        (lambda: Propagation(EDGES, size=SIZE)(Z), ValueError, "graph has 5 nodes but x has shape"),
        (lambda: preg(Z, Propagation(EDGES, size=SIZE)), ValueError, "from 5 nodes to 3 others: pass source="),
        (lambda: preg(X, Propagation(EDGES, size=SIZE)), ValueError, "has 3 nodes but z has 5 rows"),
        (lambda: preg(Z, Propagation(EDGES, size=SIZE), source=Z), ValueError, r"a row per source .*\(5, 2\)"),
        (lambda: BACK @ BACK, ValueError, "first factor takes 3 nodes, the second gives 5"),
        (lambda: preg(X, BACK @ Propagation(EDGES, size=SIZE), norm="sym"), ValueError, "contradict"),
        (lambda: laplacian(Z, Propagation(EDGES, size=SIZE)), TypeError, "edges between nodes of one kind"),
        (lambda: dirichlet_energy(X, BACK @ Propagation(EDGES, size=SIZE)), TypeError, "nodes of one kind"),
        (lambda: mean_average_distance(Z, Propagation(EDGES, size=SIZE)), TypeError, "nodes of one kind"),
    ],
)
def test_what_does_not_fit_is_one_sentence(call: Any, kind: type[Exception], sentence: str) -> None:
    with pytest.raises(kind, match=sentence):
        call()
