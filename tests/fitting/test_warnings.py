"""What ``fit`` says of a graph that is legal but seldom meant, and that it trains on it all the same."""

import warnings
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from communities import communities
from propreg.data.graph import Graph
from propreg.data.own.pyg import to_data
from propreg.data.splits import random_split
from propreg.fitting import inputs as reading
from propreg.fitting.fit import fit
from propreg.fitting.result import FitResult
from samples import pyg

GRAPH = communities()
EDGES = GRAPH.edge_index[:, GRAPH.edge_index[0] < GRAPH.edge_index[1]]
ONE_WAY = replace(GRAPH, edge_index=EDGES)
GAPS = replace(GRAPH, y=np.array([0, 2, 5])[GRAPH.y])


@pytest.fixture(autouse=True)
def _nothing_said_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_given", set())


ONCE: dict[str, Any] = {
    "mu": [0.5], "splits": 1, "seeds": 1, "train_per_class": 5, "val_per_class": 10, "max_epochs": 3, "progress": False
}  # fmt: skip


def quick(data: Any) -> FitResult:
    return fit(data, **ONCE)


def ours(said: Iterable[warnings.WarningMessage]) -> list[warnings.WarningMessage]:
    """Without PyG's, which are deprecations under Python 3.14."""
    return [each for each in said if each.category is UserWarning]


def test_edges_that_run_one_way_are_warned_of_with_the_fix() -> None:
    with pytest.warns(UserWarning, match="none also runs the other way") as said:
        result = quick(to_data(ONE_WAY))
    (one,) = ours(said)
    assert str(one.message).endswith(
        "if the graph is undirected, pass torch_geometric.transforms.ToUndirected()(data)."
    )
    assert one.filename == __file__
    assert result.finished
    mended = quick(
        pyg("torch_geometric.transforms").ToUndirected()(to_data(ONE_WAY))
    )  # a warning would be an error here
    np.testing.assert_array_equal(mended.test, quick(to_data(GRAPH)).test)


def test_a_warning_is_given_once() -> None:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for _ in range(2):
            quick(to_data(ONE_WAY))
            quick(to_data(GAPS))
    assert len(ours(said)) == 2


def test_class_numbers_without_a_node_keep_their_output_and_are_warned_of() -> None:
    data = to_data(GAPS)
    with pytest.warns(UserWarning, match=r"No node is of class 1, 3, 4, though classes are numbered 0 to 5: ") as said:
        result = quick(data)
    assert len(ours(said)) == 1
    with torch.no_grad():
        assert result.model(data.x, data.edge_index).shape == (GRAPH.num_nodes, 6)


@pytest.mark.parametrize("graph", [ONE_WAY, GAPS], ids=["one way", "gaps"])
def test_a_graph_that_a_reader_made_is_taken_as_it_is(graph: Graph) -> None:
    assert quick(graph).finished  # a warning would be an error here


def test_one_class_only_in_training_is_warned_of() -> None:
    own = random_split(GRAPH.y, 5, 10, 0)
    alone = replace(own, train=own.train & (GRAPH.y == 0))
    with pytest.warns(UserWarning, match="1 of 2 splits \\('1'\\) are of one class, so every model predicts") as said:
        result = fit(GRAPH, mu=[0.5], splits=[own, alone], seeds=1, max_epochs=3, progress=False)
    assert ours(said)[0].filename == __file__
    assert result.finished
    fit(GRAPH, mu=[0.5], splits=[own], seeds=1, max_epochs=3, progress=False)  # a warning would be an error here


@pytest.mark.parametrize("sign", [1, -1])
def test_large_features_that_are_not_scaled_are_warned_of(sign: int) -> None:
    x = np.asarray(GRAPH.x).copy()
    x[3, 2] = sign * 40_000
    wide = replace(GRAPH, x=x)
    with pytest.warns(UserWarning, match="features are as large as 40,000 and not scaled: .* with a GAT") as said:
        fit(wide, "gat", scale="none", **ONCE)
    assert ours(said)[0].filename == __file__
    assert len(ours(said)) == 1
    fit(wide, "gat", **ONCE)  # scaled by default: a warning would be an error here
    fit(replace(GRAPH, x=x * np.float32(1 / 4_000)), "gat", scale="none", **ONCE)
