"""Both samplers: real edges, the right number of them, uniformly drawn, the same for the same seed."""

from collections import Counter
from collections.abc import Callable
from itertools import combinations

import numpy as np
import pytest
import torch
from hypothesis import given
from scipy.stats import chisquare

from propreg.data.csr import InEdges
from propreg.scale import numpy_sampler
from propreg.scale.numpy_sampler import NumpySampler, distinct
from propreg.scale.sample import Sample
from propreg.scale.torch_sampler import TorchSampler, in_edges
from strategies import Graph, graphs, thorough

Draw = Callable[..., Sample]


def numpy_draws(edges: InEdges, fanouts: list[int], *, replace: bool = False) -> Draw:
    sampler = NumpySampler(edges, fanouts, replace=replace)

    def draw(seeds: list[int], seed: int = 0, roots: list[int] | None = None) -> Sample:
        others = None if roots is None else torch.tensor(roots, dtype=torch.int64)
        return sampler(torch.tensor(seeds, dtype=torch.int64), np.random.default_rng(seed), others)

    return draw


def torch_draws(edges: InEdges, fanouts: list[int], *, replace: bool = False) -> Draw:
    sampler = TorchSampler(torch.from_numpy(edges.start), torch.from_numpy(edges.source), fanouts, replace=replace)

    def draw(seeds: list[int], seed: int = 0, roots: list[int] | None = None) -> Sample:
        others = None if roots is None else torch.tensor(roots, dtype=torch.int64)
        return sampler(torch.tensor(seeds, dtype=torch.int64), torch.Generator().manual_seed(seed), others)

    return draw


BOTH = pytest.mark.parametrize("draws", [numpy_draws, torch_draws])


def edges_of(graph: Graph) -> InEdges:
    return InEdges.of(graph.edge_index.numpy(), graph.num_nodes)


def check(sample: Sample, edges: InEdges, seeds: list[int], fanouts: list[int], replace: bool) -> None:
    """All that holds whatever was drawn."""
    nodes, target = sample.nodes.numpy(), edges.targets()
    source_row, target_row = sample.edge_index.numpy()
    place = sample.edge.numpy()
    assert nodes[: len(seeds)].tolist() == seeds
    others = nodes[len(seeds) :].tolist()
    assert len(set(others)) == len(others)
    assert not set(others) & set(seeds)
    assert (nodes[source_row] == edges.source[place]).all(), "an edge that is not in the graph"
    assert (nodes[target_row] == target[place]).all(), "an edge into another node, or the wrong way"
    assert sum(sample.num_nodes) == len(nodes)
    assert sum(sample.num_edges) == len(place)
    first = edge = 0
    for hop, k in enumerate(fanouts):  # exactly the nodes that the last hop reached draw, each as many as it has
        rows = np.arange(first, first + sample.num_nodes[hop])
        drawn = Counter(target_row[edge : edge + sample.num_edges[hop]].tolist())
        for row in rows:
            degree = int(edges.start[nodes[row] + 1] - edges.start[nodes[row]])
            full = k if replace and degree else min(degree, k)
            assert drawn.pop(int(row), 0) == (degree if k < 0 else full)
        assert not drawn
        first, edge = first + len(rows), edge + sample.num_edges[hop]
    if not replace:
        assert len({*zip(target_row.tolist(), place.tolist(), strict=True)}) == len(place), "an edge drawn twice"


@BOTH
@thorough
@given(graph=graphs())
def test_odd_graphs_give_real_edges_and_all_that_are_due(draws: Callable[..., Draw], graph: Graph) -> None:
    edges = edges_of(graph)
    seeds = [0, graph.num_nodes - 1, 0]  # one of them twice
    for fanouts, replace in (([2, 1], False), ([3, 2, 2], True), ([-1, -1], False), ([], False)):
        draw = draws(edges, fanouts, replace=replace)
        for seed in (0, 1):  # the second call finds the table as the first one left it
            check(draw(seeds, seed), edges, seeds, fanouts, replace)


@BOTH
@thorough
@given(graph=graphs())
def test_other_roots_are_roots_once(draws: Callable[..., Draw], graph: Graph) -> None:
    edges, nodes = edges_of(graph), graph.num_nodes
    roots = [nodes - 1, 0, nodes // 2, 0]
    sample = draws(edges, [-1])([0], 0, roots)
    assert sample.nodes[sample.roots].tolist() == roots
    assert sample.num_nodes[0] == len({0, *roots})
    check(sample, edges, [0], [-1], replace=False)


@thorough
@given(graph=graphs())
def test_all_neighbors_are_the_same_subgraph_in_both(graph: Graph) -> None:
    edges = edges_of(graph)
    first, second = (draws(edges, [-1, -1])([0]) for draws in (numpy_draws, torch_draws))
    assert sorted(first.nodes.tolist()) == sorted(second.nodes.tolist())
    assert sorted(first.edge.tolist()) == sorted(second.edge.tolist())


@pytest.mark.parametrize("fanouts", [[-1, -1], [3, 2, 4]])
def test_both_ways_of_numbering_give_the_same_subgraph(fanouts: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """By comparing, and by a scan of the whole table: other row numbers, but from the same edges."""
    rng = np.random.default_rng(0)
    edges, seeds = InEdges.of(rng.integers(500, size=(2, 4000)), 500), [3, 400, 3, 7]
    samples = []
    for often in (0, 1 << 20):
        monkeypatch.setattr(numpy_sampler, "SCANNED", often)
        samples.append(numpy_draws(edges, fanouts)(seeds, 0, [8, 3]))
        check(samples[-1], edges, [*seeds, 8], fanouts, replace=False)
        assert (samples[-1].nodes[samples[-1].roots]).tolist() == [8, 3]
    if fanouts == [-1, -1]:  # else which node draws what depends on the order of rows
        assert set(samples[0].nodes.tolist()) == set(samples[1].nodes.tolist())
        assert set(samples[0].edge.tolist()) == set(samples[1].edge.tolist())


@pytest.mark.parametrize(("degree", "k"), [(5, 2), (4, 3), (3, 1), (7, 6)])
def test_every_subset_is_equally_likely(degree: int, k: int) -> None:
    counts: Counter[tuple[int, ...]] = Counter()
    drawn = distinct(np.full(40_000, degree), k, np.random.default_rng(0))
    counts.update(map(tuple, np.sort(drawn, axis=0).T.tolist()))
    subsets = list(combinations(range(degree), k))
    assert set(counts) == set(subsets)
    assert chisquare([counts[s] for s in subsets]).pvalue > 1e-3


@BOTH
@pytest.mark.parametrize("replace", [False, True])
def test_neighbors_are_drawn_uniformly(draws: Callable[..., Draw], replace: bool) -> None:
    """A star whose center has five sources, twenty thousand times; the second hop is as uniform as the first."""
    sources, k = 5, 2
    star = InEdges.of(np.array([[1, 2, 3, 4, 5, 0], [0, 0, 0, 0, 0, 6]]), 7)
    for seed, fanouts in ((6, [1, k]), (0, [k])):
        draw, counts = draws(star, fanouts, replace=replace), Counter[tuple[int, ...]]()
        sample = draw([seed] * 20_000, 1) if seed == 0 else None
        if sample is not None:
            target, place = sample.edge_index[1].numpy(), sample.edge.numpy()
            pairs = place[np.argsort(target, kind="stable")].reshape(-1, k)
        else:
            pairs = np.array([draw([seed], s).edge[-k:].tolist() for s in range(1_200)])
        counts.update(map(tuple, (pairs if replace else np.sort(pairs, axis=1)).tolist()))
        possible = sources**k if replace else sources * (sources - 1) // 2
        assert len(counts) == possible
        assert chisquare(list(counts.values())).pvalue > 1e-3


@BOTH
def test_the_same_seed_gives_the_same_sample(draws: Callable[..., Draw]) -> None:
    rng = np.random.default_rng(0)
    edges = InEdges.of(rng.integers(500, size=(2, 10_000)), 500)
    draw, again = draws(edges, [5, 5]), draws(edges, [5, 5])
    seeds = list(range(0, 500, 7))
    first, other = draw(seeds, 3), draw(seeds, 4)
    for repeated in (draw(seeds, 3), again(seeds, 3)):
        assert torch.equal(first.nodes, repeated.nodes)
        assert torch.equal(first.edge_index, repeated.edge_index)
        assert torch.equal(first.edge, repeated.edge)
    assert not torch.equal(first.nodes, other.nodes)


def test_a_sampler_that_was_stopped_starts_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C in the middle of a sample leaves no numbers behind in the table."""
    edges = InEdges.of(np.array([[0, 1, 2], [1, 2, 0]]), 3)
    for sampler, arguments, inside in (
        (NumpySampler(edges, [1, 1]), (torch.tensor([0]), np.random.default_rng(0)), "_drawn"),
        (
            TorchSampler(torch.from_numpy(edges.start), torch.from_numpy(edges.source), [1, 1]),
            (torch.tensor([0]), torch.Generator()),
            "_drawn",
        ),
    ):

        def stop(*_: object) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(sampler, inside, stop)
            with pytest.raises(KeyboardInterrupt):
                sampler(*arguments)
        assert sampler(*arguments).nodes.tolist() == [0, 2, 1]


@thorough
@given(graph=graphs())
def test_the_edges_of_a_gpu_are_those_of_the_cpu(graph: Graph) -> None:
    weight = None if graph.edge_weight is None else graph.edge_weight.float()
    found = in_edges(graph.edge_index, graph.num_nodes, weight)
    edges = InEdges.of(graph.edge_index.numpy(), graph.num_nodes, None if weight is None else weight.numpy())
    assert found[0].tolist() == edges.start.tolist()
    assert found[1].tolist() == edges.source.tolist()
    if weight is not None:
        assert found[2] is not None
        assert edges.weight is not None
        assert found[2].tolist() == edges.weight.tolist()


@pytest.mark.parametrize("bad", [[0], [-2], [1.5], [True], "10"])
def test_impossible_numbers_of_neighbors_are_refused(bad: list[int]) -> None:
    with pytest.raises((ValueError, TypeError), match="num_neighbors must"):
        NumpySampler(InEdges.of(np.zeros((2, 0), np.int64), 1), bad)
