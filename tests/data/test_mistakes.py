"""Wrong edges and wrong labels: how many, which, and that larger shares contain the smaller ones."""

import numpy as np
import pytest
from numpy.typing import NDArray

from propreg.data.edges import undirected
from propreg.data.errors import DataError
from propreg.data.mistakes import wrong_edges, wrong_labels

NODES = 60
RNG = np.random.default_rng(0)
EDGES = undirected(RNG.integers(NODES, size=200), RNG.integers(NODES, size=200), NODES, "edges")
Y = np.where(np.arange(500) % 10 == 9, -1, np.arange(500) % 4)


def pairs(edge_index: NDArray[np.int64]) -> set[tuple[int, int]]:
    return {(int(u), int(v)) for u, v in edge_index.T}


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
def test_so_many_edges_are_replaced_by_others(share: float) -> None:
    before, after = pairs(EDGES), pairs(wrong_edges(EDGES, NODES, share))
    wrong = 2 * round(share * len(before) / 2)
    assert (len(after), len(before - after), len(after - before)) == (len(before), wrong, wrong)
    assert after == {(v, u) for u, v in after}
    assert all(u != v for u, v in after)


def test_a_larger_share_of_edges_has_the_wrong_ones_of_a_smaller_share() -> None:
    before = pairs(EDGES)
    few, many = (pairs(wrong_edges(EDGES, NODES, share)) for share in (0.2, 0.5))
    assert few - before < many - before
    assert before - few < before - many


def test_wrong_edges_are_between_random_nodes() -> None:
    """Over many edges every node is an end as often as any other, up to four standard deviations."""
    path = undirected(np.arange(20_000), np.arange(1, 20_001), 20_001, "edges")
    ends = np.bincount(wrong_edges(path, 20_001, 1.0)[0] // 2_000)[:10]
    assert abs(ends - 4_000).max() < 4 * 4_000**0.5


def test_graphs_that_cannot_be_changed_so_are_refused() -> None:
    with pytest.raises(DataError, match="for undirected graphs without loops"):
        wrong_edges(EDGES[:, 1:], NODES, 0.1)
    whole = undirected(*np.triu_indices(6), num_nodes=6, where="edges")
    with pytest.raises(DataError, match="the graph is too dense"):
        wrong_edges(whole, 6, 0.5)
    with pytest.raises(DataError, match=r"wrong_edges must be a share between 0 and 1, got 1\.5"):
        wrong_edges(EDGES, NODES, 1.5)
    with pytest.raises(DataError, match="wrong_labels must be a share between 0 and 1, got -1"):
        wrong_labels(Y, -1)
    with pytest.raises(DataError, match="at least two classes"):
        wrong_labels(np.zeros(5, np.int64), 0.5)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
def test_so_many_labels_become_another_class(share: float) -> None:
    found = wrong_labels(Y, share)
    changed = found != Y
    assert changed.sum() == round(share * 450)
    assert (found[Y < 0] == -1).all()
    assert ((found >= 0) & (found < 4))[Y >= 0].all()
    if share == 1.0:  # each of the three others about as often, and at 0.5 the same ones
        counts = np.bincount((found[changed] - Y[changed]) % 4, minlength=4)
        assert abs(counts[1:] - 150).max() < 4 * 10
        half = wrong_labels(Y, 0.5)
        assert (half[half != Y] == found[half != Y]).all()
