"""X W for a batch: sparse, dense, propagated beforehand, and with entries of X dropped."""

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from engine.graphs import problem, sample
from propreg.data.features import from_dense
from propreg.data.graph import Graph, SparseFeatures, Split
from propreg.engine import Method, Model, Options, Problem, Protocol, Replica, train_all
from propreg.engine.models.gcn_mlp import Layers
from propreg.engine.models.network import no_dropout
from propreg.engine.ops.dropout import Masks
from propreg.engine.ops.features import Features
from propreg.engine.ops.random import mask_keys
from propreg.engine.ops.sparse import Matrix, Pattern
from samples import gaussian

CPU = torch.device("cpu")


def graph(density: float, form: str, nodes: int = 9, columns: int = 6) -> Graph:
    """Features of a given density, as an array or in CSR form, with an empty row and an empty column."""
    rng = np.random.default_rng(3)
    x = (rng.standard_normal((nodes, columns)) * (rng.random((nodes, columns)) < density)).astype(np.float32)
    x[2], x[:, 1] = 0, 0
    edges = np.array([[0, 1], [1, 0]])
    return Graph("x", edges, from_dense(x) if form == "csr" else x, np.zeros(nodes, np.int64))


def written_out(found: Graph) -> Tensor:
    x = found.x
    return torch.from_numpy(x.to_dense() if isinstance(x, SparseFeatures) else x).double()


def features(found: Graph) -> Features:
    return Features.of(found, CPU, torch.float64)


def masks(rates: list[float], epoch: int = 1) -> Masks:
    """Masks of as many replicas as there are rates."""
    keys = mask_keys(np.arange(len(rates), dtype=np.uint64), epoch, 0)
    return Masks(torch.from_numpy(keys), torch.tensor(rates, dtype=torch.float64))


@pytest.mark.parametrize("form", ["csr", "array"])
@pytest.mark.parametrize("density", [0.1, 0.5, 1.0])
def test_the_product_and_its_gradient(form: str, density: float) -> None:
    found = graph(density, form)
    x, call = written_out(found), features(found)
    w = gaussian(3, 6, 4).requires_grad_()
    torch.testing.assert_close(call(w), x @ w, rtol=0, atol=1e-13)
    assert torch.autograd.gradcheck(call, w)


def test_both_ways_to_multiply_are_taken() -> None:
    assert features(graph(0.1, "csr")).dense is None
    assert features(graph(1.0, "csr")).dense is not None
    assert problem("plain").features.dense is None
    assert problem("dense").features.dense is not None


def test_an_element_given_twice_counts_twice_and_is_dropped_twice() -> None:
    columns = np.tile(np.arange(4, dtype=np.int32), 6)
    twice = SparseFeatures(np.array([0, 8, 16, 24]), columns, None, (3, 4))
    call = features(dataclasses.replace(graph(1.0, "csr", nodes=3), x=twice))
    torch.testing.assert_close(
        call(torch.eye(4, dtype=torch.float64).unsqueeze(0))[0], torch.full((3, 4), 2.0).double()
    )
    assert set(dropped(call, masks([0.5]), 4).flatten().tolist()) == {0.0, 2.0, 4.0}


def dropped(call: Features, drawn: Masks, columns: int) -> Tensor:
    """X with its entries dropped, [R, N, F], made visible by an identity for a weight."""
    return call(torch.eye(columns, dtype=torch.float64).repeat(len(drawn), 1, 1), drawn)


@pytest.mark.parametrize("form", ["csr", "array"])
@pytest.mark.parametrize("density", [0.1, 1.0])
def test_dropped_entries_are_0_or_scaled_up(form: str, density: float) -> None:
    found = graph(density, form, nodes=40, columns=30)
    x, rates = written_out(found), [0.5, 0.25, 0.0]
    seen = dropped(features(found), masks(rates), 30)
    for r, rate in enumerate(rates):
        kept = seen[r] != 0
        torch.testing.assert_close(seen[r][kept], (x / (1 - rate))[kept], rtol=1e-12, atol=0)
        stored = int((x != 0).sum())
        share = 1 - int(kept.sum()) / stored
        assert share == pytest.approx(rate, abs=4 * (rate * (1 - rate) / stored) ** 0.5)
    other = dropped(features(found), masks(rates, epoch=2), 30)
    assert not torch.equal(seen[0] != 0, other[0] != 0)
    assert not torch.equal(seen[0] != 0, dropped(features(found), masks([0.5, 0.5]), 30)[1] != 0)


@pytest.mark.parametrize("density", [0.1, 1.0])
def test_a_dropped_product_is_that_of_the_dropped_features(density: float) -> None:
    found = graph(density, "array")
    call, drawn = features(found), masks([0.5, 0.25, 0.75])
    w = gaussian(3, 6, 4).requires_grad_()
    torch.testing.assert_close(call(w, drawn), dropped(call, drawn, 6) @ w, rtol=0, atol=1e-13)
    assert torch.autograd.gradcheck(lambda w: call(w, drawn), w)


def test_a_mask_does_not_depend_on_the_form_of_the_features() -> None:
    csr, array = features(graph(0.5, "csr")), features(graph(0.5, "array"))
    assert torch.equal(dropped(csr, masks([0.5]), 6), dropped(array, masks([0.5]), 6))


def test_propagating_dense_features_once_is_propagating_every_time() -> None:
    found = sample("dense")
    nodes = found.num_nodes
    row, col = torch.from_numpy(found.edge_index).flip(0)
    adjacency = Matrix(row, col, gaussian(len(row)), (nodes, nodes))
    model = Model("gcn", hidden=5)
    once = Layers(model, features(found), 4, adjacency)
    # The same with input dropout of the smallest kind cannot be folded, and its evaluation drops nothing.
    every = Layers(dataclasses.replace(model, input_dropout=1e-9), features(found), 4, adjacency)
    p = {name: gaussian(2, *w.shape, seed=len(name)).requires_grad_() for name, w in once.weights().items()}
    begun = once.begin(p)
    assert begun is not None
    assert every.begin(p) is None
    z, expected = once.finish(p, begun, no_dropout), every.finish(p, None, no_dropout)
    torch.testing.assert_close(z, expected, rtol=0, atol=1e-12)
    push = gaussian(*z.shape, seed=8)
    for a, b in zip(*(torch.autograd.grad((t * push).sum(), list(p.values())) for t in (z, expected)), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-11)


def forbid_sparse_features(monkeypatch: pytest.MonkeyPatch, found: Graph) -> None:
    """From now on a sparse matrix of the features' shape cannot be built."""
    shape, build = (found.num_nodes, found.num_features), Pattern.__init__

    def refuse(self: Pattern, row: Tensor, col: Tensor, size: tuple[int, int]) -> None:
        assert size != shape, "the sparse form of dense features was built"
        build(self, row, col, size)

    monkeypatch.setattr(Pattern, "__init__", refuse)


@pytest.mark.parametrize("name", ["gcn", "mlp", "appnp", "gat"])
def test_dense_features_have_no_sparse_form_where_no_input_is_dropped(
    name: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = sample("dense")
    forbid_sparse_features(monkeypatch, found)
    part = np.arange(found.num_nodes) % 3
    split = Split(part == 0, part == 1, part == 2)
    made = Problem(found, {"a": split}, CPU)
    replicas = [Replica(split="a", strength=0.5)]
    for method in (Method.preset("reference"), Method("laplacian")):
        results = list(train_all(made, Model(name), method, replicas, Protocol(max_epochs=2)))
        assert not results[0][1].failed
    dropping = Model(name, input_dropout=0.5)
    with pytest.raises(AssertionError, match="the sparse form of dense features was built"):
        list(train_all(made, dropping, Method("plain"), [Replica(split="a")], Protocol(max_epochs=1)))


def test_dense_features_are_the_array_that_was_given() -> None:
    found = sample("dense")
    assert isinstance(found.x, np.ndarray)
    dense = Features.of(found, CPU, torch.float32).dense
    assert dense is not None
    assert dense.data_ptr() == found.x.ctypes.data  # not a byte is copied
    assert torch.equal(dense, torch.from_numpy(found.x))


def test_the_sparse_form_of_dense_features_is_that_of_their_non_zeros() -> None:
    array, csr = features(graph(0.9, "array")), features(graph(0.9, "csr"))
    assert array.dense is not None
    assert array.nnz == csr.nnz
    for name in ("row", "col", "crow", "ccol", "row32"):
        assert torch.equal(getattr(array.matrix.pattern, name), getattr(csr.matrix.pattern, name))
    assert torch.equal(array.matrix.values, csr.matrix.values)
    assert array.matrix is array.matrix  # built once


def test_propagated_features_are_computed_once() -> None:
    found = sample("dense")
    row, col = torch.from_numpy(found.edge_index).flip(0)
    one, other = (Matrix(row, col, gaussian(len(row), seed=s), (found.num_nodes, found.num_nodes)) for s in (1, 2))
    call = features(found)
    assert call.propagated(one) is call.propagated(one)
    assert call.propagated(other) is not call.propagated(one)
    dense = call.propagated(one).dense
    assert dense is not None
    torch.testing.assert_close(dense, one(written_out(found).unsqueeze(0))[0], rtol=0, atol=1e-12)


def test_workers_share_what_a_problem_builds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two groups on two cores, and the sparse form that they need is built once."""
    found, built = sample("dense"), []
    build = Pattern.__init__

    def count(self: Pattern, row: Tensor, col: Tensor, size: tuple[int, int]) -> None:
        built.append(size)
        build(self, row, col, size)

    monkeypatch.setattr(Pattern, "__init__", count)
    part = np.arange(found.num_nodes) % 3
    made = Problem(found, {"a": Split(part == 0, part == 1, part == 2)}, CPU)
    model, replicas = Model("gcn", input_dropout=0.5), [Replica(seed=i, split="a", strength=0.5) for i in range(4)]
    options = Options(batch=1, workers=2)
    assert len(list(train_all(made, model, Method.preset("paper"), replicas, Protocol(max_epochs=3), options))) == 4
    nodes = (found.num_nodes, found.num_nodes)
    assert sorted(built) == sorted([(found.num_nodes, found.num_features), nodes, nodes])  # X, Â of the model, of P-reg
