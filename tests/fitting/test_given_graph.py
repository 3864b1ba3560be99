"""A ``Graph`` made by hand: whatever of it does not fit together is one sentence before anything is trained."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from communities import communities
from propreg.data.errors import DataError
from propreg.data.features import from_dense
from propreg.fitting.fit import fit

GRAPH = communities()
X, EDGES, Y = np.asarray(GRAPH.x), GRAPH.edge_index, GRAPH.y
SPARSE = from_dense(X)
COUNT = EDGES.shape[1]


def with_end(node: int) -> Any:
    edges = EDGES.copy()
    edges[1, 5] = node
    return edges


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"x": X[:-3]}, "x has 117 rows but y has 120: both need one per node"),
        ({"x": from_dense(X[:-3])}, "x has 117 rows but y has 120"),
        ({"x": replace(SPARSE, indptr=SPARSE.indptr[:-1])}, "the indptr of x does not fit 120 rows"),
        ({"x": torch.from_numpy(X)}, r"x must be a NumPy array, got a Tensor: for a tensor, pass tensor.numpy\(\)"),
        ({"x": X[:, 0]}, r"x must be numbers \[nodes, features\], got float32 \[120\]"),
        ({"x": X.astype(str)}, r"x must be numbers \[nodes, features\], got <U"),
        ({"x": np.where(X > 1, np.inf, X)}, "hold a NaN or infinite number"),
        (
            {"edge_index": with_end(120)},
            r"edge_index: node 120 is out of range for 120 nodes \(edge 5, from .* to 120\): number",
        ),
        ({"edge_index": with_end(-1)}, r"edge_index: node -1 is out of range for 120 nodes \(edge "),
        (
            {"edge_index": EDGES.T},
            r"edge_index must be int64 \[2, edges\], source over target, got int64 \[\d+, 2\]",
        ),
        ({"edge_index": EDGES.astype(np.int32)}, r"edge_index must be int64 \[2, edges\], .* got int32"),
        ({"edge_index": torch.from_numpy(EDGES)}, "edge_index must be a NumPy array, got a Tensor"),
        ({"y": Y.astype(np.int32)}, r"y must be the classes of the nodes, int64 \[nodes\], got int32 \[120\]"),
        ({"y": Y[:, None]}, r"int64 \[nodes\], got int64 \[120, 1\]"),
        ({"y": Y.tolist()}, "y must be a NumPy array, got a list"),
        ({"edge_weight": np.ones(3, np.float32)}, r"got float32 of shape \(3,\)"),
        ({"edge_weight": -np.ones(COUNT, np.float32)}, "edge_weight of edge 0 is -1.0"),
    ],
)
@pytest.mark.parametrize("model", ["gcn", "mlp"])
def test_parts_that_do_not_fit_are_one_sentence(model: str, changed: dict[str, Any], says: str) -> None:
    with pytest.raises(DataError, match=says) as caught:
        fit(replace(GRAPH, **changed), model, 0.1, method="label_smoothing", seeds=1, max_epochs=2, progress=False)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("communities")


@pytest.mark.parametrize("x", [SPARSE, X.astype(np.float64), np.asfortranarray(X), (10 * X).astype(np.int64)])
def test_features_of_any_kind_of_number_are_taken(x: Any) -> None:
    given = replace(GRAPH, x=x)
    assert fit(given, "gcn", 0.1, splits=1, seeds=1, train_per_class=5, val_per_class=5, max_epochs=2).finished
