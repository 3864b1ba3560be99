"""Which graph is run on, with which splits, and what is said about it."""

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from communities import communities
from propreg.data.benchmarks.catalog import find
from propreg.data.benchmarks.locate import dataset_file
from propreg.data.errors import DataError
from propreg.data.graph import Graph, Split
from propreg.data.own.npz import write_graph
from propreg.data.scaling import Scaling
from propreg.data.splits import official_splits
from propreg.running.plan import load_own, load_source


def stored(graph: Graph, path: Path) -> Path:
    write_graph(path, graph)
    return path


def test_digits_have_ten_splits_and_pixels_up_to_one() -> None:
    found = load_source("digits")
    assert list(found.splits) == [str(i) for i in range(10)]
    assert found.quick
    assert isinstance(found.scale, Scaling)
    x = found.scale(found.graph.x)
    assert isinstance(x, np.ndarray)
    assert (x.min(), x.max()) == (0, 1)
    official = official_splits("digits")
    for i, split in enumerate(found.splits.values()):
        assert (split.test == official[i].test).all()
    assert len(load_source("digits", splits=2).splits) == 2


def test_splits_that_share_their_test_nodes_have_a_note() -> None:
    if dataset_file(find("acm")) is None:
        pytest.skip("acm is not there: set PROPREG_DATA to the folder that holds acm.npz")
    found = load_source("acm", splits=2)
    assert len({split.test.tobytes() for split in found.splits.values()}) == 1
    assert found.notes[0].startswith("The splits share training and test nodes and differ in validation nodes only")
    assert load_source("acm", splits=1).notes == load_source("digits").notes == ()


@pytest.mark.parametrize("name", ["cors", "ogbg-molhiv"])
def test_datasets_that_cannot_be_run_on(name: str) -> None:
    with pytest.raises(DataError, match=r"Did you mean 'cora'|choose a node dataset like cora"):
        load_source(name)
    with pytest.raises(DataError, match="10 official splits, got --splits 11"):
        load_source("digits", splits=11)


def test_a_graph_with_a_split_keeps_it(tmp_path: Path) -> None:
    graph = communities()
    split = Split(*(np.arange(120) % 4 == part for part in range(3)))
    path = stored(replace(graph, split=split), tmp_path / "own.npz")
    found = load_own(path)
    assert list(found.splits) == ["own"]
    assert (found.splits["own"].val == split.val).all()
    assert found.notes == ()
    with pytest.raises(DataError, match="leave --splits out"):
        load_own(path, splits=3)


def test_a_graph_without_one_gets_random_ones_and_small_classes_shrink(tmp_path: Path) -> None:
    path = stored(communities(nodes=300), tmp_path / "own.npz")
    found = load_own(path, splits=3)
    assert list(found.splits) == ["random-0", "random-1", "random-2"]
    assert all(int(split.train.sum()) == 60 for split in found.splits.values())
    small = load_own(stored(communities(nodes=60), path), splits=1)
    assert small.notes[0].startswith("3 of 3 classes have fewer than 51 labeled nodes")
    split = small.splits["random-0"]
    assert split.train.any()
    assert split.val.any()
    assert int(split.test.sum()) == 30


def test_a_folder_of_csv_files(tmp_path: Path) -> None:
    folder = tmp_path / "a graph"
    folder.mkdir()
    graph = communities(nodes=200, classes=2)
    with open(folder / "nodes.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "label", *(f"f{i}" for i in range(8))])
        writer.writerows([f"n{i}", f"class {graph.y[i]}", *row] for i, row in enumerate(np.asarray(graph.x).tolist()))
    with open(folder / "edges.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["source", "target"])
        writer.writerows([f"n{a}", f"n{b}"] for a, b in graph.edge_index.T.tolist() if a < b)
    found = load_own(folder)
    assert found.name == "a graph"
    assert found.graph.class_names == ("class 0", "class 1")
    assert found.graph.edge_index.shape == graph.edge_index.shape


def test_a_graph_of_one_class_is_refused(tmp_path: Path) -> None:
    path = stored(replace(communities(), y=np.zeros(120, np.int64)), tmp_path / "own.npz")
    with pytest.raises(DataError, match="all labeled nodes are of one class, so there is nothing to learn"):
        load_own(path)


def test_too_few_nodes_name_the_options(tmp_path: Path) -> None:
    three = Graph("three", np.array([[0, 1], [1, 2]]), np.eye(3, dtype=np.float32), np.array([0, 1, 0]))
    path = stored(three, tmp_path / "own.npz")
    with pytest.raises(DataError, match=r"3 labeled nodes are too few.*--train-per-class 1 --val-per-class 1"):
        load_own(path)
    six = Graph("six", np.array([[0, 1], [1, 2]]), np.eye(6, dtype=np.float32), np.arange(6) % 2)
    assert load_own(stored(six, path), train_per_class=1, val_per_class=1, splits=2).splits


def test_options_that_would_be_ignored_are_refused(tmp_path: Path) -> None:
    split = Split(*(np.arange(120) % 4 == part for part in range(3)))
    path = stored(replace(communities(), split=split), tmp_path / "own.npz")
    with pytest.raises(DataError, match="leave --train-per-class and --val-per-class out"):
        load_own(path, train_per_class=5, val_per_class=5)
    with pytest.raises(DataError, match=r"--directed is for a folder's edges\.csv"):
        load_own(path, directed=True)


def test_a_graph_without_labels_is_refused(tmp_path: Path) -> None:
    path = stored(replace(communities(), y=np.full(120, -1)), tmp_path / "own.npz")
    with pytest.raises(DataError, match="no node has a label"):
        load_own(path)


def test_edges_that_run_one_way_and_classes_without_a_node_are_said(tmp_path: Path) -> None:
    graph = communities(nodes=300)
    edges = graph.edge_index[:, graph.edge_index[0] < graph.edge_index[1]]
    doubtful = replace(graph, edge_index=edges, y=np.array([0, 1, 3])[graph.y])
    said = load_own(stored(doubtful, tmp_path / "own.npz")).notes
    assert len(said) == 2
    assert "none also runs the other way" in said[0]
    assert "list both directions of each edge" in said[0]
    assert said[1].startswith("No node is of class 2, though classes are numbered 0 to 3")
    assert load_own(stored(graph, tmp_path / "usual.npz")).notes == ()


def test_a_graph_that_is_said_to_be_directed_may_run_one_way(tmp_path: Path) -> None:
    rows = [f"{node},{node % 3},{node}.5" for node in range(9)]
    (tmp_path / "nodes.csv").write_text("\n".join(["id,label,height", *rows]))
    (tmp_path / "edges.csv").write_text("source,target\n0,3\n3,6\n1,4\n")
    found = load_own(tmp_path, directed=True, train_per_class=1, val_per_class=1)
    assert found.graph.edge_index.shape == (2, 3)
    assert not [note for note in found.notes if "the other way" in note]
