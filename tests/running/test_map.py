"""Edges that agree and the map of nodes, against counting one by one."""

import numpy as np
import pytest

from communities import communities
from propreg.data.splits import random_split
from propreg.fitting.fit import fit
from propreg.fitting.result import FitResult
from propreg.running.map import MOST_NODES, STATES, agreement, layout, map_of

GRAPH = communities()


@pytest.fixture(scope="module")
def result() -> FitResult:
    splits = {str(i): random_split(GRAPH.y, 5, 10, i) for i in range(2)}
    return fit(GRAPH, mu=[0.5], splits=splits, seeds=2, max_epochs=8, device="cpu", progress=False)


def test_agreement_is_what_one_counts(result: FitResult) -> None:
    found = agreement(GRAPH, result)
    for name, runs in (("plain", result.predicted[0.0]), ("chosen", result.predicted[result.mu])):
        shares = []
        for run in runs.reshape(-1, GRAPH.num_nodes):
            pairs = [(a, b) for a, b in GRAPH.edge_index.T.tolist() if a != b]
            shares.append(sum(run[a] == run[b] for a, b in pairs) / len(pairs))
        assert found[name] == pytest.approx(sum(shares) / len(shares))
    assert found["labels"] == pytest.approx(
        np.mean([GRAPH.y[a] == GRAPH.y[b] for a, b in GRAPH.edge_index.T.tolist() if a != b])
    )


def test_the_map_says_what_became_of_each_test_node(result: FitResult) -> None:
    found = map_of(GRAPH, result)
    assert found is not None
    split = result.splits[found["split"]]
    assert found["node"] == [str(i) for i in np.flatnonzero(split.test)][:MOST_NODES]
    for state, label, plain, chosen in zip(
        *(found[name] for name in ("state", "label", "plain", "chosen")), strict=True
    ):
        words = {(True, True): "right", (False, True): "fixed", (True, False): "broken", (False, False): "wrong"}
        assert STATES[state] == words[plain == label, chosen == label]
    assert len(found["x"]) == len(found["y"]) == len(found["node"])


def test_the_layout_keeps_what_two_dimensions_can_hold() -> None:
    """For three classes the centered log-probabilities span two dimensions: distances stay, up to the common part."""
    p = np.random.default_rng(0).dirichlet(np.ones(3), 50)
    centered = np.log(p) - np.log(p).mean(axis=0)
    _, s, axes = np.linalg.svd(centered)
    kept = layout(p)
    assert np.linalg.norm(kept) ** 2 == pytest.approx((s[:2] ** 2).sum())
    np.testing.assert_allclose(np.abs(kept), np.abs(centered @ axes[:2].T), atol=1e-9)
    assert layout(p[:, :1] ** 0).shape == (50, 2)
