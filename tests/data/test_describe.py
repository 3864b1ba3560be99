"""Counts over edges against plain sets, and the warnings: when they are given, and in which words."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from communities import communities
from propreg.data import describe
from propreg.data.describe import homophily, is_undirected, isolated, linked_pairs, one_way, unused_classes
from propreg.data.graph import Graph

BOTH = communities()


def forth_only(graph: Graph, back: int = 0) -> Graph:
    """Each edge in one direction, and the first ``back`` of them in both."""
    edges = graph.edge_index[:, graph.edge_index[0] < graph.edge_index[1]]
    return replace(graph, edge_index=np.concatenate([edges, edges[::-1, :back]], axis=1))


@given(
    pairs=st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=30),
    mirrored=st.booleans(),
    block=st.integers(1, 40),
)
def test_counts_are_those_of_plain_sets(pairs: list[tuple[int, int]], mirrored: bool, block: int) -> None:
    pairs = pairs + [(t, s) for s, t in pairs] * mirrored
    edges, y = np.array(pairs, np.int64).reshape(-1, 2).T, np.array([0, 0, 1, 1, -1, 2, 0])
    real = [(s, t) for s, t in pairs if s != t]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(describe, "_BLOCK", block)
        assert is_undirected(edges) == (sorted(pairs) == sorted((t, s) for s, t in pairs))
        assert linked_pairs(edges, 7) == len({frozenset(pair) for pair in real})
        assert isolated(edges, 7) == 7 - len({end for pair in real for end in pair})
        labeled = [(s, t) for s, t in real if y[s] >= 0 <= y[t]]
        if labeled:
            assert homophily(edges, y) == np.mean([y[s] == y[t] for s, t in labeled])
        else:
            assert np.isnan(homophily(edges, y))
        distinct = set(real)
        mutual = sum((t, s) in distinct for s, t in distinct)
        said = one_way(replace(BOTH, edge_index=edges), "x")
        assert bool(said) == (mutual < 0.05 * len(distinct))
        assert not said or said.startswith(f"Of {len(distinct)} edge")


def test_a_directed_cycle_is_not_undirected() -> None:
    nodes = np.arange(1000)
    assert not is_undirected(np.stack([nodes, np.roll(nodes, 1)]))  # every node has one edge in, one out


def test_both_directions_raise_no_doubt() -> None:
    assert one_way(BOTH, "fix it") == ""


def test_one_direction_is_said_with_the_fix() -> None:
    graph = forth_only(BOTH)
    assert one_way(graph, "fix it") == (
        f"Of {graph.edge_index.shape[1]} edges, none also runs the other way, so a node learns only from the nodes "
        "that point to it: if the graph is undirected, fix it."
    )


def test_edges_are_counted_once_and_loops_not() -> None:
    graph = forth_only(BOTH)
    loops = np.tile(np.arange(graph.num_nodes), (2, 1))
    more = replace(graph, edge_index=np.concatenate([graph.edge_index, graph.edge_index, loops], axis=1))
    assert one_way(more, "x") == one_way(graph, "x")


@pytest.mark.parametrize(("back", "doubted"), [(5, True), (60, False)])
def test_a_few_mutual_edges_are_still_one_way(back: int, doubted: bool) -> None:
    said = one_way(forth_only(BOTH, back), "x")
    assert bool(said) == doubted
    assert not doubted or f"only {2 * back} also run the other way" in said


@pytest.mark.parametrize("edges", [np.zeros((2, 0), np.int64), np.array([[0, 3], [0, 3]])])
def test_without_edges_there_is_no_direction(edges: np.ndarray) -> None:
    assert one_way(replace(BOTH, edge_index=edges), "x") == ""


def test_classes_that_all_occur_raise_no_doubt() -> None:
    assert unused_classes(BOTH) == ""
    assert unused_classes(replace(BOTH, y=np.where(np.arange(len(BOTH.y)) < 9, -1, BOTH.y))) == ""


@pytest.mark.parametrize(
    ("classes", "names", "said"),
    [
        ([0, 2, 5], (), "No node is of class 1, 3, 4, though classes are numbered 0 to 5: "),
        ([1, 2, 3], (), "No node is of class 0, though classes are numbered 0 to 3: "),
        ([0, 1, -1], tuple("abc"), "No node is of class 2, though classes are numbered 0 to 2: "),
        ([0, 1, 9], (), "No node is of class 2, 3, 4, 5, 6 and 2 more, though classes are numbered 0 to 9: "),
    ],
)
def test_classes_without_a_node_are_named(classes: list[int], names: tuple[str, ...], said: str) -> None:
    doubt = unused_classes(replace(BOTH, y=np.array(classes)[BOTH.y], class_names=names))
    assert doubt.startswith(said)
    assert doubt.endswith("number the classes without gaps to avoid this.")
