"""``PReg.on_batch``: batches of neighbor loaders and of GraphSAINT samplers against the whole graph."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.loader import ClusterData, ClusterLoader, NodeLoader, RandomNodeLoader
from torch_geometric.nn import SAGEConv
from torch_geometric.sampler import BaseSampler, NodeSamplerInput, SamplerOutput

from propreg import PReg, Propagation, preg
from propreg._phi import PHIS
from propreg.data.csr import InEdges
from propreg.scale import Loader
from propreg.scale.numpy_sampler import NumpySampler
from reference import adjacency, normalized

NODES = 40


def graph(*, weighted: bool = False, loops: bool = False) -> Data:
    generator = torch.Generator().manual_seed(0)
    edges = torch.randint(NODES - 1, (2, 120), generator=generator)  # the last node has none; some have loops
    data = Data(x=torch.randn(NODES, 4, dtype=torch.float64, generator=generator), edge_index=edges)
    if weighted:
        data.edge_weight = torch.rand(120, generator=generator) + 0.1
    whole = Propagation(edges, NODES, data.edge_weight if weighted else None, add_self_loops=loops)
    data.degree = whole.degree()
    data.y = torch.zeros(NODES, dtype=torch.int64)
    return data


@pytest.mark.parametrize("norm", ["rw", "sym"])
@pytest.mark.parametrize("phi", list(PHIS))
@pytest.mark.parametrize("loops", [False, True])
def test_one_hop_more_than_layers_gives_the_whole_graphs_term(phi: Any, norm: Any, loops: bool) -> None:
    """Two layers and all neighbors: the batches' values, weighted by their seeds, and the gradients of the model."""
    torch.manual_seed(0)
    data = graph(weighted=True, loops=loops)
    first, second = SAGEConv(4, 8).double(), SAGEConv(8, 3).double()

    def logits(x: Tensor, edges: Tensor) -> Tensor:
        z: Tensor = second(first(x, edges).tanh(), edges)
        return z

    regularizer = PReg(phi, norm, loops)
    whole = regularizer(logits(data.x, data.edge_index), data.edge_index, data.edge_weight)
    total = torch.zeros((), dtype=torch.float64)
    for batch in Loader(data, [-1, -1, -1], batch_size=7):
        value = regularizer.on_batch(logits(batch.x, batch.edge_index), batch, layers=2)
        total = total + batch.batch_size / NODES * value
    torch.testing.assert_close(total, whole, rtol=1e-6, atol=0)  # the loader's degrees are float32
    for parameter in (first.lin_l.weight, second.lin_l.weight):
        found, expected = (torch.autograd.grad(term, parameter, retain_graph=True)[0] for term in (total, whole))
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-8)


def test_what_is_no_such_batch_is_refused_with_the_fix() -> None:
    data = graph()
    sampled = next(iter(Loader(data, [1, -1], batch_size=20)))
    shallow = next(iter(Loader(data, [-1, 2], batch_size=20)))
    z = torch.zeros(len(sampled.n_id), 3)
    for regularizer, batch, layers, says in (
        (
            PReg(),
            sampled,
            None,
            r"num_neighbors with -1, and first set data.degree = propreg.Propagation\(data.edge_index, ",
        ),
        (PReg(add_self_loops=True), shallow, None, r"data.num_nodes, add_self_loops=True\)"),
        (
            PReg(),
            shallow,
            2,
            r"2 hops, but a model of 2 layers and P-reg reach 3: pass num_neighbors=\[-1, 10, 10\]",
        ),
        (PReg(threshold=0.1), shallow, None, "threshold acts on the mean over all nodes"),
    ):
        with pytest.raises(ValueError, match=says):
            regularizer.on_batch(torch.zeros(len(batch.n_id), 3), batch, layers=layers)
    with pytest.raises(ValueError, match="pass logits of the whole batch"):
        PReg().on_batch(z[:-1], sampled)
    with pytest.raises(ValueError, match="has 20 seeds but z has 7 rows"):
        PReg().on_batch(z[:7], sampled)
    del sampled.degree
    with pytest.raises(ValueError, match=r"has no degrees of the whole graph: set data\.degree = "):
        PReg().on_batch(z, sampled)
    del sampled.batch_size
    with pytest.raises(ValueError, match="has neither batch_size nor node_norm"):
        PReg().on_batch(z, sampled)


def test_a_reduction_goes_through() -> None:
    batch = next(iter(Loader(graph(), [-1], batch_size=5)))
    z = torch.randn(len(batch.n_id), 3)
    values = PReg(reduction="none").on_batch(z, batch)
    assert values.shape == (len(batch.n_id),)
    assert not values[5:].any()
    torch.testing.assert_close(values.sum() / 5, PReg().on_batch(z, batch))


def saint(data: Data, nodes: Tensor, node_norm: float) -> Data:
    """A batch as PyG's GraphSAINT samplers make it: an induced subgraph."""
    position = torch.full((NODES,), -1)
    position[nodes] = torch.arange(len(nodes))
    kept = (position[data.edge_index] >= 0).all(dim=0)
    batch = Data(x=data.x[nodes], edge_index=position[data.edge_index[:, kept]], degree=data.degree[nodes])
    if "edge_weight" in data:
        batch.edge_weight = data.edge_weight[kept]
    batch.node_norm = torch.full((len(nodes),), node_norm)
    return batch


@pytest.mark.parametrize("norm", ["rw", "sym"])
@pytest.mark.parametrize("loops", [False, True])
def test_the_whole_graph_as_a_saint_batch_is_the_whole_term(norm: Any, loops: bool) -> None:
    data = graph(weighted=True, loops=loops)
    batch = saint(data, torch.arange(NODES), 1 / NODES)
    found = PReg(norm=norm, add_self_loops=loops).on_batch(data.x, batch)
    expected = preg(data.x, data.edge_index, data.edge_weight, norm=norm, add_self_loops=loops)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("norm", ["rw", "sym"])
def test_saint_scales_present_neighbors_to_the_row_of_the_whole_graph(norm: Any) -> None:
    """By hand: each entry of Â between two nodes of the batch, times what its row lacks; loops stay as they are."""
    data = graph(weighted=True)
    nodes = torch.arange(0, NODES, 2)
    matrix = normalized(adjacency(data.edge_index, NODES, data.edge_weight), norm)
    plain = adjacency(data.edge_index, NODES, data.edge_weight)
    z, total = data.x.numpy(), 0.0
    for i in nodes.tolist():
        there = [j for j in nodes.tolist() if j != i and plain[i, j] > 0]
        if not there and plain[i, i] == 0:
            continue
        present, others = sum(plain[i, j] for j in there), plain[i].sum() - plain[i, i]
        q = matrix[i, i] * z[i] + sum((matrix[i, j] * others / present * z[j] for j in there), 0 * z[i])
        total += 0.25 * 0.5 * ((q - z[i]) ** 2).sum()
    found = PReg("squared_error", norm).on_batch(data.x[nodes], saint(data, nodes, 0.25))
    assert found.item() == pytest.approx(total)


def test_saint_batches_of_a_complete_graph_average_to_what_is_linear_in_the_neighbors() -> None:
    count, size = 5, 3
    pairs = torch.tensor([(i, j) for i in range(count) for j in range(count) if i != j]).T
    data = Data(x=graph().x[:count], edge_index=pairs, degree=torch.full((count,), count - 1.0))
    batches = [saint(data, torch.tensor(nodes), 1 / size) for nodes in combinations(range(count), size)]

    def linear(z: Tensor, propagated: Tensor) -> Tensor:
        return (z.tanh() * propagated).sum(-1)

    found = torch.stack([PReg(linear).on_batch(batch.x, batch) for batch in batches]).mean()
    torch.testing.assert_close(found, preg(data.x, pairs, phi=linear))


def test_saint_needs_the_mean() -> None:
    data = graph()
    with pytest.raises(ValueError, match="use reduction='mean'"):
        PReg(reduction="sum").on_batch(data.x, saint(data, torch.arange(NODES), 1.0))


class ExactSampler(BaseSampler):  # type: ignore[misc]
    """What PyG asks of pyg-lib: the neighborhoods of seeds, all neighbors in each hop."""

    def __init__(self, data: Data, hops: int, *, counted: bool) -> None:
        self.edges, self.hops, self.counted = InEdges.of(data.edge_index.numpy(), NODES), hops, counted
        self.places = data.edge_index[1].argsort(stable=True)  # of the edges as listed

    def sample_from_nodes(self, index: NodeSamplerInput, **_: Any) -> SamplerOutput:
        sample = NumpySampler(self.edges, [-1] * self.hops)(index.node, np.random.default_rng(0))
        counts = (sample.num_nodes, sample.num_edges) if self.counted else (None, None)
        return SamplerOutput(
            sample.nodes, *sample.edge_index, self.places[sample.edge], None, *counts, metadata=(index.input_id, None)
        )

    def sample_from_edges(self, index: Any, **_: Any) -> Any:
        raise NotImplementedError


@pytest.mark.parametrize("norm", ["rw", "sym"])
@pytest.mark.parametrize("loops", [False, True])
@pytest.mark.parametrize("counted", [False, True])  # older compiled extensions do not count by hop
def test_batches_that_pygs_own_loader_makes(norm: Any, loops: bool, counted: bool) -> None:
    """``NeighborLoader`` is a ``NodeLoader`` with a compiled sampler: all else is PyG's code here."""
    data = graph(weighted=True, loops=loops)
    seeds = torch.randperm(NODES, generator=torch.Generator().manual_seed(1))
    sampler = ExactSampler(data, 2, counted=counted)
    regularizer, total = PReg(norm=norm, add_self_loops=loops), torch.zeros((), dtype=torch.float64)
    for batch in NodeLoader(data, sampler, input_nodes=seeds, batch_size=7):
        assert batch.n_id[: batch.batch_size].tolist() == seeds[batch.input_id].tolist()
        assert batch.n_id[batch.edge_index].tolist() == data.edge_index[:, batch.e_id].tolist()
        assert batch.edge_weight.tolist() == data.edge_weight[batch.e_id].tolist()
        assert ("num_sampled_nodes" in batch) == counted
        total += batch.batch_size / NODES * regularizer.on_batch(batch.x, batch, layers=1)
    torch.testing.assert_close(total, regularizer(data.x, data.edge_index, data.edge_weight))
    shallow = next(iter(NodeLoader(data, ExactSampler(data, 1, counted=True), input_nodes=seeds, batch_size=7)))
    with pytest.raises(ValueError, match=r"batch holds 1 hops.*num_neighbors=\[-1, 10\]"):
        regularizer.on_batch(shallow.x, shallow, layers=1)


def test_induced_subgraphs_without_weights_of_nodes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """``ClusterLoader`` and ``RandomNodeLoader``: nodes at the border lack neighbors, and nothing says how many."""
    data = graph()
    monkeypatch.setattr(ClusterData, "_metis", lambda *_: torch.arange(NODES) % 4)  # the partition is compiled code
    clusters = ClusterLoader(ClusterData(data, 4, log=False), batch_size=2)
    for batch in (next(iter(clusters)), next(iter(RandomNodeLoader(data, 4)))):
        assert 0 < batch.num_nodes < NODES
        with pytest.raises(ValueError, match="has neither batch_size nor node_norm: pass a batch of a neighbor loader"):
            PReg().on_batch(batch.x, batch)
