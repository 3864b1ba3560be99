"""NASA: its graphs against a loop over edges, and its loss on six nodes, term by term."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import binomtest, chisquare
from torch import Tensor

import propreg
from engine.graphs import problem
from methods.six_nodes import TRAIN, X, Y, adjacency, six_nodes, softmax
from propreg.data.graph import Graph, Split
from propreg.engine import Method, Problem, Protocol, Replica, train_all
from propreg.engine.models.network import no_dropout
from propreg.engine.ops import uniforms
from propreg.engine.training.epoch import advance
from propreg.engine.training.passes import Passes
from propreg.engine.training.phases import Phase
from propreg.methods.nasa import HITS, PICKS, NasaModel, phases
from propreg.methods.rewiring import Beside, Rewired, Rewiring
from reference import Array

ALONE = Replica(split="own", dropout=0.0)
SMALL = NasaModel(hidden=5, input_dropout=0.0, consistency=0.8, temperature=0.4)
Weighted = dict[tuple[int, int], float]


def one_by_one(found: Problem, hits: Array, picks: Array, size: int) -> Weighted:
    """A graph by visiting one edge after the other, row ← column."""
    edges: Weighted = {}
    weights = np.ones(found.graph.edge_index.shape[1]) if found.edge_weight is None else found.edge_weight.numpy()
    for (source, target), weight in zip(found.graph.edge_index.T.tolist(), weights.tolist(), strict=True):
        edges[target, source] = edges.get((target, source), 0.0) + weight
    graph = {(i, i): edges.pop((i, i), 1.0) for i in range(size)}
    visits = sorted(edges)
    kept, forward, backward = dict(edges), list[tuple[int, int, float]](), list[tuple[int, int, float]]()
    for (u, v), hit, pick in zip(visits, hits, picks, strict=True):
        if not hit:
            continue
        neighbors = [j for i, j in visits if i == v] or [v]
        w = neighbors[int(pick * len(neighbors))]
        kept.pop((u, v), None)
        kept.pop((v, u), None)
        forward.append((u, w, edges[u, v]))
        if (v, u) in edges:
            backward.append((w, u, edges[v, u]))
    for u, v, weight in [*((u, v, weight) for (u, v), weight in kept.items()), *forward, *backward]:
        graph.setdefault((u, v), weight)
    return graph


def as_dict(rewiring: Rewiring, place: Tensor, values: Tensor) -> list[Weighted]:
    """The graphs of a draw."""
    size = rewiring.size
    found: list[Weighted] = [{} for _ in range(int(place[-1]) // size**2 + 1)]
    for at, value in zip(place.tolist(), values.tolist(), strict=True):
        graph, (i, j) = at // size**2, divmod(at % size**2, size)
        assert (i, j) not in found[graph], "an edge is in a graph once"
        found[graph][i, j] = value
    return found


@pytest.mark.parametrize("kind", ["plain", "odd"])
def test_graphs_are_those_of_one_visit_after_the_other(kind: str) -> None:
    """Of a simple graph, and of a directed, weighted one with loops, isolated nodes and nodes that only send."""
    found = problem(kind)
    rewiring = Rewiring(found)
    rng = np.random.default_rng(3)
    hits, picks = rng.random((4, rewiring.edges)) < 0.5, rng.random((4, rewiring.edges))
    drawn = as_dict(rewiring, *rewiring.drawn(torch.from_numpy(hits), torch.from_numpy(picks)))
    assert len(drawn) == 4
    for graph, hit, pick in zip(drawn, hits, picks, strict=True):
        expected = one_by_one(found, hit, pick, found.num_nodes)
        assert graph.keys() == expected.keys()
        assert list(graph.values()) == pytest.approx([expected[key] for key in graph], abs=1e-6)
    assert rewiring.symmetric == (kind == "plain")


@cache
def lattice(side: int = 12) -> Problem:
    """A torus without triangles: nodes two hops apart are never neighbors, so an edge that was cut stays so."""
    node = np.arange(side * side).reshape(side, side)
    pairs = np.concatenate([np.stack([node, np.roll(node, 1, axis)]).reshape(2, -1) for axis in (0, 1)], 1)
    edges = np.concatenate([pairs, pairs[::-1]], 1)
    part = np.arange(side * side) % 3
    split = Split(part == 0, part == 1, part == 2)
    graph = Graph("torus", edges, np.ones((side * side, 2), np.float32), part.astype(np.int64))
    return Problem(graph, {"own": split}, torch.device("cpu"), torch.float64)


def of_epochs(model: NasaModel, epochs: int, seeds: int) -> list[Weighted]:
    """The graphs of each seed in each epoch, as the training draws them."""
    runs = [replace(ALONE, seed=seed) for seed in range(seeds)]
    (phase,) = phases(lattice(), runs, model=model, method=Method(), protocol=Protocol())
    network: Any = phase.network
    found: list[Weighted] = []
    for epoch in range(1, epochs + 1):
        advance(phase.objective, phase.state, epoch)
        keys = phase.state.keys
        hits, picks = (uniforms(keys(site), network.rewiring.edges) for site in (HITS, PICKS))
        found += as_dict(network.rewiring, *network.rewiring.drawn(hits < model.replaced, picks))
    return found


@pytest.mark.parametrize(("replaced", "removed"), [(0.5, 0.75), (0.2, 0.36)])
def test_the_share_of_edges_that_go(replaced: float, removed: float) -> None:
    """¾, since each end visits: an exact binomial test, which would find a fiftieth more or less."""
    known = {(i, j) for j, i in lattice().graph.edge_index.T.tolist()}
    graphs = of_epochs(replace(SMALL, replaced=replaced), epochs=10, seeds=12)
    assert len(graphs) == 120
    edges = [(i, j) for i, j in known if i < j]
    gone = [(i, j) not in graph for graph in graphs for i, j in edges]
    assert all(((i, j) in graph) == ((j, i) in graph) for graph in graphs for i, j in edges)
    assert binomtest(sum(gone), len(gone), removed).pvalue > 0.01
    for other in (removed - 0.02, removed + 0.02):
        assert binomtest(sum(gone), len(gone), other).pvalue < 1e-4


def test_what_is_added_is_two_hops_away() -> None:
    """Each of them as often: back to u itself, which its loop is for, with probability 1/4, one over v's degree."""
    known = np.zeros((144, 144), np.bool_)
    known[tuple(lattice().graph.edge_index)] = True
    two_hops = known.astype(int) @ known.astype(int)
    rewiring, rng = Rewiring(lattice()), np.random.default_rng(1)
    steps = np.zeros(4)
    for visit in rng.integers(0, rewiring.edges, 400):
        hits = torch.zeros(1, rewiring.edges, dtype=torch.bool)
        hits[0, visit] = True
        picks = torch.from_numpy(rng.random((1, rewiring.edges)))
        (graph,) = as_dict(rewiring, *rewiring.drawn(hits, picks))
        dense = np.zeros_like(known)
        dense[tuple(np.array(list(graph)).T)] = True
        assert dense.diagonal().all()
        added, gone = dense & ~known & ~np.eye(144, dtype=bool), known & ~dense
        assert (added == added.T).all()
        assert gone.sum() == 2
        assert (two_hops[added] > 0).all()
        assert added.sum() in (0, 2)
        v = int(rewiring._col[visit])
        neighbors = np.flatnonzero(known[v])
        u = int(rewiring._row[visit])
        new = u if not added.any() else int(np.flatnonzero(added[u])[0])
        steps[np.flatnonzero(neighbors == new)[0]] += 1
    assert chisquare(steps).pvalue > 0.01


def started(
    model: NasaModel, runs: list[Replica], method: Method | None = None, found: Problem | None = None, epoch: int = 1
) -> tuple[Phase, Passes]:
    known = found or six_nodes()
    (phase,) = phases(known, runs, model=model, method=method or Method(), protocol=Protocol())
    advance(phase.objective, phase.state, epoch)
    begun = phase.network.begin(phase.state.tensors)
    return phase, Passes(phase.network, phase.state, begun, phase.objective.passes)


def dense(graphs: Rewired, size: int, replica: int = 0) -> Array:
    """The graph of a replica with its loops, by its products with unit vectors."""
    eye = torch.eye(size, dtype=torch.float64).expand(len(graphs.degree), -1, -1)
    found: Array = graphs.sums(eye)[replica].numpy()
    return found


def logits(phase: Phase, graph: Array) -> Array:
    """Â relu(Â X W + b) W' + b' with D^(−1/2) A D^(−1/2)."""
    p = {name: t[0].detach().numpy() for name, t in phase.state.parameters.items()}
    root = graph.sum(1) ** -0.5
    spread = root[:, None] * graph * root
    x = X.astype(np.float32).astype(np.float64)
    z: Array = spread @ np.maximum(spread @ x @ p["w0"] + p["b0"], 0) @ p["w1"] + p["b1"]
    return z


def expected_divergence(p: Array, graph: Array, temperature: float, target_of: Array | None = None) -> float:
    """Node by node and neighbor by neighbor."""
    total = 0.0
    for i in range(len(p)):
        neighbors = np.flatnonzero(graph[i])
        assert i in neighbors
        mean = (p if target_of is None else target_of)[neighbors].mean(0)
        target = mean ** (1 / temperature) / (mean ** (1 / temperature)).sum() + 1e-10
        total += np.mean([(target * np.log(target / (p[j] + 1e-10))).sum() for j in neighbors])
    return total / len(p)


@pytest.mark.parametrize("method", [Method(), Method("preg"), Method.preset("reference")], ids=lambda m: m.name)
@pytest.mark.parametrize("epoch", [1, 2, 7])
def test_the_loss_is_the_sum_of_its_terms(method: Method, epoch: int) -> None:
    strength = 0.25 if method.name == "preg" else 0.0
    phase, seen = started(SMALL, [replace(ALONE, strength=strength)], method, epoch=epoch)
    network: Any = phase.network
    graph = dense(network.graphs, 6)
    z = logits(phase, graph)
    np.testing.assert_allclose(seen.trained(0)[0].detach().numpy(), z, atol=1e-12)
    p = softmax(z)
    expected = np.mean([-np.log(p[i, Y[i]] + 1e-10) for i in TRAIN]) + 0.8 * expected_divergence(p, graph, 0.4)
    if strength:
        edges = torch.from_numpy(six_nodes().graph.edge_index)
        options: dict[str, Any] = {"norm": method.norm, "add_self_loops": method.add_self_loops}
        expected += strength * float(propreg.preg(torch.from_numpy(z), edges, **options))
    found = phase.objective.loss(phase.state, seen)
    assert float(found.detach()) == pytest.approx(expected, abs=1e-12)


def test_the_divergence_and_the_cross_entropy_have_a_floor() -> None:
    """Where a class has probability 0, log 10⁻¹⁰ stands in for its logarithm."""
    from propreg.methods.nasa import cross_entropy, divergence

    phase, _ = started(SMALL, [ALONE])
    network: Any = phase.network
    graph = dense(network.graphs, 6)
    p = np.eye(3)[[0, 1, 1, 0, 2, 2]]
    p[3] = [0.5, 0.25, 0.25]
    found = divergence(torch.from_numpy(p).unsqueeze(0), network.graphs, 0.5)
    assert float(found) == pytest.approx(expected_divergence(p, graph, 0.5), abs=1e-12)
    entropy = cross_entropy(torch.from_numpy(p).unsqueeze(0), phase.state.targets)
    assert float(entropy) == pytest.approx(10 * np.log(10) / 3, abs=1e-9), "node 2 alone is wrong, and for certain"


def test_the_target_is_a_constant_and_the_neighbors_are_trained() -> None:
    """The gradient to the probabilities, with fixed targets, by differences."""
    from propreg.methods.nasa import divergence

    phase, _ = started(SMALL, [ALONE])
    network: Any = phase.network
    graph = dense(network.graphs, 6)
    p = softmax(np.random.default_rng(2).standard_normal((6, 3)))
    at = torch.from_numpy(p).unsqueeze(0).requires_grad_()
    (gradient,) = torch.autograd.grad(divergence(at, network.graphs, 0.5).sum(), at)
    by_differences = np.zeros_like(p)
    for place in np.ndindex(p.shape):
        step = np.zeros_like(p)
        step[place] = 1e-6
        higher, lower = (expected_divergence(moved, graph, 0.5, target_of=p) for moved in (p + step, p - step))
        by_differences[place] = (higher - lower) / 2e-6
    np.testing.assert_allclose(gradient[0].numpy(), by_differences, atol=1e-7)


def test_an_evaluation_sees_the_graph_as_it_is() -> None:
    phase, seen = started(SMALL, [ALONE])
    z = phase.network.finish(phase.state.tensors, phase.network.begin(phase.state.tensors), no_dropout)
    expected = logits(phase, (adjacency() > 0).astype(float))
    np.testing.assert_allclose(z[0].detach().numpy(), expected, atol=1e-12)
    assert float((seen.trained(0) - z).detach().abs().max()) > 1e-3


@pytest.mark.parametrize("kind", ["plain", "odd"])
def test_products_of_a_batch_are_those_of_dense_matrices(kind: str) -> None:
    """With gradients, of replicas that share a stream in unequal numbers, and of those that share none in order."""
    found, rng = problem(kind), np.random.default_rng(4)
    rewiring, size = Rewiring(found), found.num_nodes
    for streams in ([7, 9, 7, 7], [5, 6], [5, 5, 6, 6]):
        sharing = Beside(np.array(streams, np.uint64), torch.device("cpu"))
        hits, picks = (torch.from_numpy(rng.random((len(sharing.first), rewiring.edges))) for _ in range(2))
        place, values = rewiring.drawn(hits < 0.5, picks)
        graphs = Rewired(rewiring, sharing, place, values)
        by_stream = torch.zeros(len(sharing.first), size, size, dtype=torch.float64)
        by_stream.view(-1)[place] = values
        a = by_stream[sharing.member]
        degree = a.sum(2, keepdim=True)
        x = torch.from_numpy(rng.standard_normal((len(streams), size, 3))).requires_grad_()
        weight = torch.from_numpy(rng.standard_normal(x.shape))
        root = degree.rsqrt()
        for ours, theirs in (
            (graphs.normalized(x), root * (a @ (root * x))),
            (graphs.averaged(x), a @ x / degree),
        ):
            torch.testing.assert_close(ours, theirs)
            torch.testing.assert_close(
                *(torch.autograd.grad((z * weight).sum(), x, retain_graph=True)[0] for z in (ours, theirs))
            )


def test_strengths_of_a_seed_share_the_graphs_of_each_epoch() -> None:
    """Another seed and another epoch have others, and what a replica sees stays when others leave."""
    runs = [replace(ALONE, seed=seed, strength=strength) for strength in (0.1, 0.4) for seed in (0, 1)]
    phase, seen = started(SMALL, runs, Method("preg"), lattice())
    network: Any = phase.network
    first = [dense(network.graphs, 144, i) for i in range(4)]
    assert (first[0] == first[2]).all()
    assert (first[1] == first[3]).all()
    assert (first[0] != first[1]).any()
    assert torch.equal(seen.trained(0)[0], seen.trained(0)[2]), "their first steps are those of the same weights"
    advance(phase.objective, phase.state, 2)
    second = [dense(network.graphs, 144, i) for i in range(4)]
    assert (first[0] != second[0]).any()
    phase.state.keep(np.array([1, 2]))
    advance(phase.objective, phase.state, 2)
    assert (dense(network.graphs, 144, 0) == second[1]).all()
    assert (dense(network.graphs, 144, 1) == second[2]).all()


def test_a_second_pass_is_on_the_graph_of_the_epoch() -> None:
    _, seen = started(SMALL, [ALONE], Method.preset("reference"))
    assert torch.equal(seen.trained(0), seen.trained(1)), "nothing is dropped"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"replaced": 1.5}, "replaced must lie between 0 and 1, got 1.5"),
        ({"temperature": 0.0}, "temperature must be above 0, got 0.0"),
        ({"consistency": -1.0}, "consistency must be a number of at least 0, got -1.0"),
        ({"layers": 3}, "nasa has 2 layers, got layers=3"),
    ],
)
def test_settings_out_of_range(change: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        list(train_all(problem(), NasaModel(**change), Method(), [Replica(split="a")], Protocol()))
