"""PyG's Data in and out."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from propreg import DataError, load_graph
from propreg.data.graph import SparseFeatures
from propreg.data.own.load import read_graph
from propreg.data.own.pyg import data_class

EDGES = torch.tensor([[0, 1, 1], [1, 0, 2]])
Y = torch.tensor([0, 1, -1])


def data(**changes: Any) -> Any:
    parts = {"x": torch.eye(3), "edge_index": EDGES, "y": Y} | changes
    return data_class()(**{name: part for name, part in parts.items() if part is not None})


def test_a_plain_data_is_taken_as_it_is() -> None:
    graph = read_graph(data(edge_attr=torch.ones(3, 4)))
    assert graph.edge_index.tolist() == EDGES.tolist()
    assert graph.y.tolist() == [0, 1, -1]
    assert graph.split is None
    assert graph.edge_weight is None
    assert graph.name == ""


@pytest.mark.parametrize("x", [torch.eye(3).double(), torch.eye(3).bfloat16(), torch.eye(3).bool(), np.eye(3)])
def test_any_number_type_will_do(x: Any) -> None:
    found = read_graph(data(x=x, y=Y[:, None].int(), edge_index=EDGES.int())).x
    assert isinstance(found, np.ndarray)
    assert found.dtype == np.float32
    assert found.tolist() == np.eye(3).tolist()


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support", "ignore:Sparse invariant checks")
def test_sparse_features_stay_sparse() -> None:
    for x in (torch.eye(3).to_sparse(), torch.eye(3).to_sparse_csr()):
        found = read_graph(data(x=x)).x
        assert isinstance(found, SparseFeatures)
        assert found.to_dense().tolist() == np.eye(3).tolist()
    with pytest.raises(DataError, match=r"layout torch\.sparse_csc"):
        read_graph(data(x=torch.eye(3).to_sparse_csc()))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"x": None}, "has no x"),
        ({"y": None}, "has no y"),
        ({"edge_index": None}, "has no edge_index"),
        ({"edge_index": EDGES + 1}, "node 3 is out of range"),
        ({"edge_index": EDGES.float()}, "must be integers"),
        ({"edge_index": torch.eye(3).to_sparse()}, "edge_index has layout"),
        ({"y": torch.rand(3)}, "y must hold one class number per node"),
        ({"y": torch.zeros(2, dtype=torch.long)}, "x has 3 rows but y has 2"),
        ({"x": torch.full((3, 1), torch.nan)}, "row 0, column 0 .* is nan"),
        ({"x": "features"}, "features must be a matrix"),
        ({"x": [[1], [1, 2]]}, "x is not an array"),
        ({"edge_weight": torch.tensor([1.0, -1, 0])}, "edge_weight of edge 1 is -1"),
        ({"train_mask": torch.ones(3, dtype=torch.bool)}, "node 2 is in train_mask but has no label"),
        ({"train_mask": torch.zeros(3, 10, dtype=torch.bool)}, "of several splits, pick one"),
        ({"class_names": "ab"}, "class_names must be a list of texts, not str"),
        ({"class_names": [1, 2]}, "class_names holds 1"),
    ],
)
def test_mistakes_are_named(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(DataError, match="^Data.*" + says):
        load_graph(data(**changes))


def test_a_folder_becomes_data(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("id,label,split,f\na,x,train,1\nb,y,test,0\nc,,,2\n")
    (tmp_path / "edges.csv").write_text("source,target,weight\na,b,2\n")
    found = load_graph(tmp_path)
    assert found.validate()
    assert found.edge_index.tolist() == [[0, 1], [1, 0]]
    assert found.edge_weight.tolist() == [2, 2]
    assert found.train_mask.tolist() == [True, False, False]
    assert found.x.dtype == torch.float32
    assert found.node_ids == ["a", "b", "c"]
    assert found.num_nodes == 3
    sparse = load_graph(str(tmp_path), features="sparse", directed=True)
    assert sparse.x.layout == torch.sparse_csr
    assert sparse.edge_index.tolist() == [[0], [1]]
    assert load_graph(sparse).x.layout == torch.strided
    with pytest.raises(ValueError, match="features must be one of 'dense', 'sparse'"):
        load_graph(tmp_path, features="packed")  # type: ignore[arg-type]
