"""The npz format of a graph: what is taken, and what is said about what is not."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from propreg import DataError
from propreg.data.formats.npz import read_npz, write_npz
from propreg.data.graph import Graph, SparseFeatures
from propreg.data.own.load import read_graph
from propreg.data.own.npz import write_graph

EDGES = np.array([[0, 1, 1], [1, 0, 2]])
PLAIN: dict[str, NDArray[Any]] = {"edge_index": EDGES, "x": np.eye(3), "y": np.array([0, 1, -1])}
SPARSE: dict[str, NDArray[Any]] = {
    "edge_index": EDGES,
    "y": np.array([0, 1, -1]),
    "x_indptr": np.array([0, 1, 1, 3]),
    "x_indices": np.array([1, 0, 1]),
    "x_shape": np.array([3, 2]),
}


def test_three_arrays_are_enough(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "mine.npz", edge_index=EDGES.astype(np.uint8), x=np.eye(3, dtype=bool), y=[0, 1, -1])
    graph = read_graph(tmp_path / "mine.npz")
    assert graph.name == "mine"
    assert graph.edge_index.dtype == np.int64
    assert graph.edge_index.tolist() == EDGES.tolist()
    assert isinstance(graph.x, np.ndarray)
    assert graph.x.dtype == np.float32
    assert graph.split is None
    assert graph.num_classes == 2


def test_sparse_features_may_leave_their_ones_out(tmp_path: Path) -> None:
    write_npz(tmp_path / "mine.npz", SPARSE)
    x = read_graph(tmp_path / "mine.npz").x
    assert isinstance(x, SparseFeatures)
    assert x.values is None
    assert x.to_dense().tolist() == [[0, 1], [0, 0], [1, 1]]


MASK = np.array([True, False, False])
ERRORS: list[tuple[dict[str, NDArray[Any] | None], str]] = [
    ({"y": None}, "has no y: a graph needs edge_index, y and features"),
    ({"x": None}, "needs either x or x_indptr"),
    ({"x_indptr": np.zeros(4, int)}, "needs either x or x_indptr"),
    ({"color": np.zeros(3)}, "member 'color' is not in the format"),
    ({"format": np.array("propreg-graph-9")}, "has format 'propreg-graph-9' but only 'propreg-graph-1' is read"),
    ({"format": np.array(1)}, "format must be one text, got int64"),
    ({"sha256": np.array("0" * 64)}, "does not have the SHA-256 that it declares"),
    ({"edge_index": EDGES.T}, r"edge_index has shape \(3, 2\): it must be \[2, edges\]"),
    ({"edge_index": EDGES.astype(float)}, "node numbers must be integers"),
    (
        {"edge_index": EDGES + 1},
        r"node 3 is out of range for 3 nodes \(edge 2, .*; yours start at 1",
    ),
    ({"edge_index": EDGES - 1}, "node -1 is out of range"),
    ({"y": np.array([0, 1])}, "x has 3 rows but y has 2"),
    ({"y": np.array([0.0, 1, 2])}, "y must hold one class number per node"),
    ({"y": np.array([0, -2, 0])}, "y of node 1 is -2: number the classes from 0"),
    ({"y": np.array([0, 10**12, 0])}, "y of node 1 is 1000000000000"),
    (
        {"y": np.array([0, 1, 2]), "class_names": np.array(["a", "b"])},
        "y of node 2 is 2: .* from 0 to 1",
    ),
    ({"class_names": np.array(["a", "a"])}, "class_names holds 'a' twice"),
    ({"class_names": np.array(["a", ""])}, "class_names holds ''"),
    ({"class_names": np.array(3)}, "class_names must be a vector of texts"),
    ({"node_ids": np.array(["a", "b"])}, "has 2 node_ids for 3 nodes"),
    ({"node_ids": np.array([1, 2, 3])}, "node_ids must be a vector of texts, got int64"),
    ({"edge_weight": np.ones(2)}, "one number for each of the 3 edges"),
    ({"edge_weight": np.array([1, -1, 1])}, "edge_weight of edge 1 is -1: weights must be finite and not negative"),
    ({"edge_weight": np.array([1, 1, np.nan])}, "edge_weight of edge 2 is nan"),
    ({"edge_weight": np.array([1, 1, 1e300])}, r"edge_weight of edge 2 is 1e\+300"),
    ({"train_mask": np.array([1, 0, 0])}, r"train_mask must be bool \[3\], a mask over the nodes, got int64 \[3\]"),
    ({"val_mask": np.ones((3, 2), bool)}, "of several splits, pick one"),
    ({"train_mask": MASK, "test_mask": MASK}, "node 0 is in two of the masks"),
    ({"test_mask": ~MASK}, r"node 2 is in test_mask but has no label \(y = −1\): give it a label"),
    ({"x": np.full((3, 1), np.inf)}, r"x: row 0, column 0 \(from 0\) is inf"),
    ({"x": np.ones(3)}, "features must be a matrix"),
]


@pytest.mark.parametrize(("change", "says"), ERRORS)
def test_mistakes_are_named(tmp_path: Path, change: dict[str, NDArray[Any] | None], says: str) -> None:
    arrays = {name: array for name, array in (PLAIN | change).items() if array is not None}
    write_npz(tmp_path / "mine.npz", arrays)
    with pytest.raises(DataError, match=r"mine\.npz.*" + says):
        read_graph(tmp_path / "mine.npz")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"x_shape": np.array([3])}, "x_shape must be two integers"),
        ({"x_shape": np.array([4, 2])}, "indptr does not fit 4 rows"),
        ({"x_shape": np.array([3, 1])}, "column 1 is out of range"),
        ({"x_indptr": np.array([0, 2, 1, 3])}, "indptr decreases"),
        ({"x_values": np.ones(2)}, "3 values are needed"),
        ({"x_values": np.array([1, np.nan, 1])}, "NaN"),
    ],
)
def test_mistakes_in_sparse_features_are_named(tmp_path: Path, change: dict[str, NDArray[Any]], says: str) -> None:
    write_npz(tmp_path / "mine.npz", SPARSE | change)
    with pytest.raises(DataError, match=r"mine\.npz.*" + says):
        read_graph(tmp_path / "mine.npz")


def test_changed_arrays_are_noticed_by_the_checksum(tmp_path: Path) -> None:
    path = tmp_path / "mine.npz"
    write_graph(path, Graph("mine", EDGES, np.eye(3, dtype=np.float32), np.array([0, 1, -1])))
    arrays = read_npz(path)
    swapped = arrays["x"].view(">f4").astype("<f4")
    for change in ({"x": swapped}, {"y": arrays["y"][::-1]}, {"edge_index": arrays["edge_index"].astype(np.int32)}):
        write_npz(path, arrays | change)
        with pytest.raises(DataError, match="leave the member 'sha256' out if you changed the others"):
            read_graph(path)
        without = {name: array for name, array in (arrays | change).items() if name != "sha256"}
        write_npz(path, without)
        read_graph(path)


def test_what_could_not_be_read_is_not_written(tmp_path: Path) -> None:
    x, y = np.eye(3, dtype=np.float32), np.array([0, 1, -1])
    for graph, says in [
        (Graph("a", EDGES + 5, x, y), "out of range"),
        (Graph("a", EDGES, x * np.float32(np.nan), y), "is nan"),
        (Graph("a", EDGES, x, y, node_ids=("a", "b", "c\0")), "node_ids holds"),
        (Graph("a", EDGES, x, y, extra={"k": 1}), "extra"),
        (Graph("a\udcff", EDGES, x, y), "no text"),
    ]:
        with pytest.raises(DataError, match=says):
            write_graph(tmp_path / "mine.npz", graph)
    assert list(tmp_path.iterdir()) == []
