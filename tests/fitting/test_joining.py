"""Several graphs as one: the same numbers as the block-diagonal graph, and training on some to test on others."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch

from communities import communities
from propreg.data.errors import DataError
from propreg.data.features import from_dense
from propreg.data.graph import Split
from propreg.data.own.pyg import to_data
from propreg.fitting.fit import fit
from propreg.fitting.joining import joined

K = np.arange(60) // 3 % 3
SPLIT = Split(K == 0, K == 1, K == 2)
GRAPHS = [replace(communities(nodes=60, seed=seed), split=SPLIT) for seed in range(3)]
QUICK: dict[str, Any] = {"mu": [0.3], "seeds": 2, "max_epochs": 8, "progress": False}


def test_a_list_is_the_block_diagonal_graph_of_pyg() -> None:
    many = [to_data(replace(graph, name="")) for graph in GRAPHS]
    batch = Batch.from_data_list(many)
    one = joined(GRAPHS, ["", "", ""])
    assert (one.edge_index == batch.edge_index.numpy()).all()
    assert (one.x == batch.x.numpy()).all()
    assert (one.y == batch.y.numpy()).all()
    assert one.split is not None
    assert (one.split.val == batch.val_mask.numpy()).all()
    np.testing.assert_array_equal(fit(many, "gcn", **QUICK).test, fit(one, "gcn", **QUICK).test)


def test_training_on_some_graphs_and_testing_on_another() -> None:
    bare = [replace(graph, split=None) for graph in GRAPHS]
    bare[2] = replace(bare[2], y=np.where(np.arange(60) % 5, bare[2].y, -1))
    result = fit({"train": bare[:1], "val": bare[1], "test": [bare[2]]}, "gcn", **QUICK)
    split = result.splits["own"]
    assert [int(mask.sum()) for mask in (split.train, split.val, split.test)] == [60, 60, 48]
    assert split.train[:60].all()
    assert split.val[60:120].all()
    right = (result.predict(bare[2]) == bare[2].y)[bare[2].y >= 0].mean()
    assert right == pytest.approx(result.test[result.mus.index(result.mu), 0, result.best_run.replica.seed])


def test_sparse_features_weights_ids_and_further_tensors() -> None:
    parts = [
        replace(
            graph,
            x=from_dense(np.asarray(graph.x)),
            edge_weight=np.ones(graph.edge_index.shape[1], np.float32),
            node_ids=tuple(map(str, range(60))),
            extra={
                "edge_attr": torch.ones(graph.edge_index.shape[1], 2),
                "pos": torch.zeros(60, 3),
                "k": torch.ones(7),
            },
        )
        for graph in GRAPHS
    ]
    one = joined(parts, ["", "", ""])
    assert (one.x.to_dense() == np.concatenate([np.asarray(graph.x) for graph in GRAPHS])).all()  # type: ignore[union-attr]
    assert one.edge_weight is not None
    assert len(one.edge_weight) == one.edge_index.shape[1]
    assert one.node_ids[60] == "1/0"
    assert {name: len(t) for name, t in one.extra.items()} == {"edge_attr": one.edge_index.shape[1], "pos": 180}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"x": np.ones((60, 3), np.float32)}, "graph 1 has num_features 3, but graph 0 has 8: make them alike"),
        ({"class_names": ("a", "b", "c")}, "graph 1 has class_names"),
        ({"edge_weight": np.ones(GRAPHS[1].edge_index.shape[1], np.float32)}, "differ in having edge weights"),
    ],
)
def test_graphs_that_do_not_fit_together(change: dict[str, Any], says: str) -> None:
    with pytest.raises(DataError, match=says):
        fit([GRAPHS[0], replace(GRAPHS[1], **change)], **QUICK)


def test_no_graph() -> None:
    with pytest.raises(DataError, match="data is an empty list"):
        fit([], **QUICK)
