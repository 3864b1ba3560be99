"""X W for a batch: sparse, dense, propagated beforehand, and with entries of X dropped."""

import dataclasses

import numpy as np
import pytest
import torch
from torch import Tensor

from engine.graphs import problem, sample
from propreg.data.graph import Graph, SparseFeatures
from propreg.data.sparse import from_dense
from propreg.engine import Model
from propreg.engine.dropout import Masks
from propreg.engine.features import Features
from propreg.engine.models import Layers
from propreg.engine.passes import nothing_dropped
from propreg.engine.sparse import Matrix
from propreg.engine.streams import mask_keys
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
    z, expected = once.finish(p, begun, nothing_dropped), every.finish(p, None, nothing_dropped)
    torch.testing.assert_close(z, expected, rtol=0, atol=1e-12)
    push = gaussian(*z.shape, seed=8)
    for a, b in zip(*(torch.autograd.grad((t * push).sum(), list(p.values())) for t in (z, expected)), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-11)
