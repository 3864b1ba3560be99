"""Graphs from data frames, NetworkX, files with other separators and names: the same graph as from a folder."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import propreg
from propreg.data.errors import DataError
from propreg.data.own.load import load_graph, read_graph

pandas = pytest.importorskip("pandas")
networkx = pytest.importorskip("networkx")

NODES = """id,label,split,height,width
ann,cat,train,1.5,0
bob,dog,train,0.5,2
cas,dog,test,0,1
dee,,,1,0.1
"""
EDGES = "source,target,weight\nann,bob,1\nbob,cas,0.25\ncas,dee,3\n"


def folder(path: Path, nodes: str = NODES, edges: str = EDGES) -> Path:
    path.mkdir(exist_ok=True)
    (path / "nodes.csv").write_text(nodes, encoding="utf-8")
    (path / "edges.csv").write_text(edges, encoding="utf-8")
    return path


def frames() -> tuple[Any, Any]:
    nodes = pandas.DataFrame(
        {
            "id": ["ann", "bob", "cas", "dee"],
            "label": ["cat", "dog", "dog", None],
            "split": ["train", "train", "test", None],
            "height": [1.5, 0.5, 0.0, 1.0],
            "width": np.array([0, 2, 1, 0.1], np.float32),
        }
    )
    edges = pandas.DataFrame({"source": ["ann", "bob", "cas"], "target": ["bob", "cas", "dee"], "weight": [1, 0.25, 3]})
    return nodes, edges


def same(found: Any, expected: Any) -> None:
    """Equal in every part."""
    assert set(found.keys()) - {"name"} == set(expected.keys()) - {"name"}
    for name, value in expected:
        if isinstance(value, torch.Tensor):
            assert torch.equal(found[name], value), name
        elif name != "name":
            assert found[name] == value, name


@pytest.mark.parametrize("directed", [False, True])
def test_frames_are_the_folder(tmp_path: Path, directed: bool) -> None:
    expected = load_graph(folder(tmp_path / "g"), directed=directed)
    same(load_graph(*frames(), directed=directed), expected)
    nodes, edges = frames()
    same(load_graph(nodes.set_index("id"), edges, directed=directed), expected)


def test_whole_numbers_stay_whole_beside_missing_ones() -> None:
    """A column of integers in which some are missing is one of floats in pandas."""
    nodes = pandas.DataFrame({"label": [3, None, 10], "flag": [True, False, True], "x": [1, 2, 3]})
    data = load_graph(nodes, pandas.DataFrame({"source": [0, 1], "target": [1, 2]}))
    assert data.class_names == ["3", "10"]
    assert data.y.tolist() == [0, -1, 1]
    assert data.node_ids == ["0", "1", "2"]
    assert data.x.tolist() == [[1, 1], [0, 2], [1, 3]]


def made_networkx(kind: Any) -> Any:
    graph = kind(name="animals")
    nodes, edges = frames()
    for row in nodes.itertuples():
        graph.add_node(row.id, kind=row.label, split=row.split, height=row.height, width=row.width)
    for row in edges.itertuples():
        graph.add_edge(row.source, row.target, weight=row.weight)
    return graph


@pytest.mark.parametrize("directed", [False, True])
def test_networkx_is_the_folder(tmp_path: Path, directed: bool) -> None:
    graph = made_networkx(networkx.DiGraph if directed else networkx.Graph)
    found = load_graph(graph, columns={"label": "kind"})
    same(found, load_graph(folder(tmp_path / "g"), directed=directed))
    assert found.name == "animals"


def test_networkx_vectors_are_features_and_unusual_nodes_have_ids() -> None:
    graph = networkx.path_graph(3)
    for node in graph:
        graph.nodes[node].update(id="no id", label=f"c{node % 2}", x=np.arange(2) + node, age=node)
    data = load_graph(graph)
    assert data.feature_names == ["x0", "x1", "age"]
    assert data.x.tolist() == [[0, 1, 0], [1, 2, 1], [2, 3, 2]]
    assert data.node_ids == ["0", "1", "2"]
    assert data.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    club = networkx.karate_club_graph()
    with pytest.raises(DataError, match=r"^the table of nodes: has no features: add a number, or several, to each"):
        load_graph(club, columns={"label": "club"})
    networkx.set_node_attributes(club, {node: np.eye(34)[node] for node in club}, "x")
    data = load_graph(club, columns={"label": "club"})
    assert (data.num_nodes, data.num_features, data.class_names) == (34, 34, ["Mr. Hi", "Officer"])
    assert propreg.fit(data, "gcn", 0.5, train_per_class=4, val_per_class=4, splits=2, seeds=1, max_epochs=5).finished


@pytest.mark.parametrize("separator", [";", "\t"])
def test_other_separators_are_read(tmp_path: Path, separator: str) -> None:
    nodes, edges = NODES.replace(",", separator), EDGES.replace(",", separator)
    nodes = nodes.replace("dog", f'"d{separator} og"')
    found = read_graph(folder(tmp_path / "g", nodes, edges))
    assert found.class_names == ("cat", f"d{separator} og")
    same(load_graph(folder(tmp_path / "h", NODES.replace(",", separator), edges)), load_graph(folder(tmp_path / "i")))


def test_a_comma_in_quotes_separates_nothing(tmp_path: Path) -> None:
    found = read_graph(folder(tmp_path / "g", 'id;label;"size, in m, of it"\n1;a;2\n2;b;3\n', "source;target\n1;2\n"))
    assert found.feature_names == ("size, in m, of it",)


def test_other_names_of_columns_and_files(tmp_path: Path) -> None:
    nodes = NODES.replace("id,label,split", "who,species,part")
    edges = EDGES.replace("source,target,weight", "from,to,strength")
    names = {
        "id": "who", "label": "species", "split": "part", "source": "from", "target": "to", "weight": "strength",
    }  # fmt: skip
    expected = load_graph(folder(tmp_path / "g"))
    same(load_graph(folder(tmp_path / "h", nodes, edges), columns=names), expected)
    people, friends = tmp_path / "people.csv", tmp_path / "friends.tsv"
    people.write_text(nodes)
    friends.write_text(edges.replace(",", "\t"))
    same(load_graph(people, friends, columns=names), expected)
    left, right = frames()
    renamed = left.rename(columns=names), right.rename(columns=names)
    same(load_graph(*renamed, columns=names), expected)


@pytest.mark.parametrize(
    ("columns", "error", "says"),
    [
        (
            {"label": "kind"},
            DataError,
            "line 1: has no column 'kind', which columns names for label, but 'id', 'label'",
        ),
        ({"label": "height"}, DataError, "columns names 'height' for label, but there is a column 'label', too"),
        ({"labels": "kind"}, ValueError, "a key of columns must be one of .*Did you mean 'label'"),
    ],
)
def test_wrong_names_are_one_sentence(
    tmp_path: Path, columns: dict[str, str], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        load_graph(folder(tmp_path / "g"), columns=columns)


def test_what_is_no_graph() -> None:
    nodes, edges = frames()
    with pytest.raises(TypeError, match="one data frame is not a graph: pass two"):
        load_graph(nodes)
    with pytest.raises(
        TypeError, match="nodes and edges are two files or two pandas data frames, got a DataFrame and a"
    ):
        load_graph(nodes, "edges.csv")
    with pytest.raises(DataError, match=r"the table of nodes, line 2: feature 'city' is 'Rome', not a number"):
        load_graph(nodes.assign(city="Rome"), edges)
    with pytest.raises(DataError, match=r"the table of edges, line 4: target 'eve' is not an id"):
        load_graph(nodes, edges.replace("dee", "eve"))
    graph = made_networkx(networkx.Graph)
    del graph.edges["ann", "bob"]["weight"]
    with pytest.raises(DataError, match="2 of 3 have a weight: give all of them one, or none"):
        load_graph(graph, columns={"label": "kind"})
    data = load_graph(nodes, edges)
    with pytest.raises(ValueError, match="columns is for tables and NetworkX graphs"):
        load_graph(data, columns={"label": "kind"})
