"""A folder of CSV files: what it says, and what is said about its mistakes."""

from pathlib import Path

import numpy as np
import pytest

from propreg import DataError
from propreg.data.formats.npz import write_npz
from propreg.data.graph import Graph, SparseFeatures
from propreg.data.own.load import read_graph

NODES = "id,label,split,f,g\na,x,train,1,0.5\nb,y,val,2,-1e-3\nc,x,test,.5,+3.\nd,,,0,0\n"
EDGES = "source,target\na,b\nc,b\n"


def folder(path: Path, nodes: str | bytes = NODES, edges: str | bytes = EDGES) -> Path:
    for name, text in (("nodes.csv", nodes), ("edges.csv", edges)):
        (path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def read(path: Path, nodes: str | bytes = NODES, edges: str | bytes = EDGES, *, directed: bool = False) -> Graph:
    return read_graph(folder(path, nodes, edges), directed=directed)


def dense(graph: Graph) -> list[list[float]]:
    assert isinstance(graph.x, np.ndarray)
    rows: list[list[float]] = graph.x.tolist()
    return rows


def test_the_folder_s_content(tmp_path: Path) -> None:
    graph = read(tmp_path)
    assert graph.name == tmp_path.name
    assert graph.node_ids == ("a", "b", "c", "d")
    assert graph.class_names == ("x", "y")
    assert graph.y.tolist() == [0, 1, 0, -1]
    assert dense(graph) == [[1, 0.5], [2, np.float32(-1e-3)], [0.5, 3], [0, 0]]
    assert graph.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert graph.edge_weight is None
    assert graph.split is not None
    assert [graph.split.train.tolist(), graph.split.val.tolist(), graph.split.test.tolist()] == [
        [True, False, False, False],
        [False, True, False, False],
        [False, False, True, False],
    ]
    assert sorted(graph.digests) == ["edges", "features", "labels", "splits"]


def test_a_directed_folder_keeps_its_directions(tmp_path: Path) -> None:
    graph = read(tmp_path, edges="source,target\nc,b\na,b\na,b\nd,d\n", directed=True)
    assert graph.edge_index.tolist() == [[0, 2, 3], [1, 1, 3]]


def test_repeated_edges_are_merged(tmp_path: Path) -> None:
    graph = read(tmp_path, edges="source,target\na,b\nb,a\na,b\nc,c\n")
    assert graph.edge_index.tolist() == [[0, 1, 2], [1, 0, 2]]


def test_weights_follow_their_edges(tmp_path: Path) -> None:
    graph = read(tmp_path, edges="weight,target,source\n.5,b,a\n2,c,b\n2e0,b,c\n0,d,d\n")
    assert graph.edge_index.tolist() == [[0, 1, 1, 2, 3], [1, 0, 2, 1, 3]]
    assert graph.edge_weight is not None
    assert graph.edge_weight.tolist() == [0.5, 0.5, 2, 2, 0]
    graph = read(tmp_path, edges="source,target,weight\na,b,1\nb,a,2\n", directed=True)
    assert graph.edge_weight is not None
    assert graph.edge_weight.tolist() == [1, 2]


@pytest.mark.parametrize("weight", ["", ",weight"])
def test_a_graph_may_have_no_edges(tmp_path: Path, weight: str) -> None:
    assert read(tmp_path, edges=f"source,target{weight}").edge_index.shape == (2, 0)


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (["10", "9", "-1", "+3"], ("-1", "+3", "9", "10")),
        (["10", "9", "b", "3"], ("10", "3", "9", "b")),
        (["1", "01", "", "1"], ("01", "1")),
        (["", "", "", ""], ()),
    ],
)
def test_classes_are_numbered_in_order(tmp_path: Path, labels: list[str], names: tuple[str, ...]) -> None:
    rows = (f"{node},{label},1\n" for node, label in zip("abcd", labels, strict=True))
    graph = read(tmp_path, "id,label,f\n" + "".join(rows))
    assert graph.class_names == names
    assert graph.y.tolist() == [names.index(label) if label else -1 for label in labels]


def test_without_a_split_there_is_none(tmp_path: Path) -> None:
    assert read(tmp_path, "id,label,f\na,x,1\nb,y,1\nc,,1\n").split is None
    assert read(tmp_path, "id,label,split,f\na,x,,1\nb,y,,1\nc,,,1\n").split is None


def test_the_ways_people_write_csv(tmp_path: Path) -> None:
    nodes = (
        b'\xef\xbb\xbf ID ,"Label",f,Split\r\n\r\n"a, ""b""\nc", x ,\t1 ,Valid\r\n  \r\n\xc3\xa9,"",2,\r\n01,x,3,TRAIN'
    )
    graph = read(tmp_path, nodes, b'\xef\xbb\xbfsource,target\r"a, ""b""\nc",01\r\r\xc3\xa9 , 01')
    assert graph.node_ids == ('a, "b"\nc', "é", "01")
    assert dense(graph) == [[1], [2], [3]]
    assert graph.split is not None
    assert graph.split.val.tolist() == [True, False, False]
    assert graph.edge_index.tolist() == [[0, 1, 2, 2], [2, 2, 0, 1]]


N3 = "id,label,split,f\n"
NODE_ERRORS = [
    ("", r"nodes\.csv: is empty: its first line must be id,label"),
    (" \n\n", r"nodes\.csv: is empty"),
    (N3, r"nodes\.csv: has a header but no nodes"),
    ("id,split,f\na,train,1\n", r"line 1: has no column 'label'"),
    ("id,label,train_mask,f\na,x,1,1\n", r"line 1: column 'train_mask' looks like a mask.*one column split"),
    ("id|label|f\na|x|1\n", r"line 1: has no column 'id' but 'id\|label\|f'.*separated by commas.* like --columns id="),
    (",id,label\n0,a,x\n", r"line 1: column 1 has no name"),
    ("id,label,f,f\na,x,1,1\n", r"line 1: two columns are named 'f'"),
    ("id,label,ID\na,x,1\n", r"line 1: two columns are named 'id'"),
    (N3 + "a,x,train,1\nb,x,train\n", r"line 3: has 3 values but the header has 4 columns"),
    (N3 + "a,x,train,1,2\n", r"line 2: has 5 values"),
    (N3 + '"a\nb",x,,1\n\na,x,,1\n"a",x,,1\n', r"line 6: id 'a' is also in line 5"),
    (N3 + " ,x,,1\n", r"line 2: id is empty"),
    (
        N3 + "a,x,,1\nb,,train,1\n",
        r"line 3: node 'b' is in train but has no label: write its label, or",
    ),
    (N3 + "a, ,test,1\n", r"line 2: node 'a' is in test but has no label"),
    (N3 + "a,x,training,1\n", r"line 2: split is 'training': write train, val, test or nothing"),
    (N3 + "a,x,,nan\n", r"line 2: feature 'f' is nan: give a finite number"),
    (N3 + "a,x,,-Infinity\n", r"line 2: feature 'f' is -Infinity: give a finite"),
    (N3 + "a,x,,\n", r"line 2: feature 'f' is empty: give a number"),
    (N3 + "a,x,,1_0\n", r"line 2: feature 'f' is '1_0', not a number"),
    (N3 + "a,x,,0x1\n", r"line 2: feature 'f' is '0x1', not a number"),
    (N3 + "a,x,,1 2\n", r"line 2: feature 'f' is '1 2', not a number"),
    (N3 + "a,x,,٣\n", r"line 2: feature 'f' is '٣', not a number"),
    (N3 + "a,x,,1\nb,x,,1e39\n", r"line 3: feature 'f' is too large for float32"),
    (N3 + 'a,x,,1\nb,"x"y,,1\n', r"line 3: is not CSV"),
    (N3 + 'a,x,,1\n\n"b,x,,1\nc,x,,1\n', r"line 4: is not CSV .*check the double quotes"),
    (N3.encode() + b"a,x,,1\n\xff,x,,1\n", r"line 3: is not UTF-8 text: save the file as UTF-8"),
    (N3.replace("\n", "\r").encode() + b"a,x,,1\r\xff,x,,1\r", r"line 3: is not UTF-8"),
    (N3.encode("utf-16"), r"line 1: is not UTF-8"),
    (N3 + "a\0b,x,,1\n", r"line 2: the id 'a\\x00b' holds a NUL"),
    (N3 + "a" * 1001 + ",x,,1\n", r"line 2: the id has 1001 characters: at most 1000"),
    (N3 + "a" * 200_000 + ",x,,1\n", r"line 2: is not CSV \(field larger"),
]


@pytest.mark.parametrize(("nodes", "says"), NODE_ERRORS)
def test_mistakes_in_nodes(tmp_path: Path, nodes: str | bytes, says: str) -> None:
    with pytest.raises(DataError, match=r"nodes\.csv.*" + says.removeprefix(r"nodes\.csv")) as caught:
        read(tmp_path, nodes)
    assert "\n" not in str(caught.value)


EDGE_ERRORS = [
    ("", r"edges\.csv: is empty: its first line must be source,target"),
    ("a,b\nb,c\n", r"line 1: has no column 'source' but 'a', 'b': the first line must be source,target"),
    ("source,target,color\na,b,red\n", r"line 1: column 'color' is not known"),
    (EDGES + "a,e\n", r"line 4: target 'e' is not an id in nodes\.csv: add the node there, or delete the edge"),
    (EDGES + "\n\nB,a\n", r"line 6: source 'B' is not an id"),
    (EDGES + "a,\n", r"line 4: target is empty"),
    (EDGES + "a\n", r"line 4: has 1 values but the header has 2 columns"),
    (EDGES + "a,b,1\n", r"line 4: has 3 values"),
    ("source,target,weight\na,b,1\na,c,-1\n", r"line 3: weight is -1: weights must not be negative"),
    ("source,target,weight\na,b,NaN\n", r"line 2: weight is NaN: give a finite number"),
    ("source,target,weight\na,b,1e40\n", r"line 2: weight is 1e40, too large"),
    ("source,target,weight\na,b,\n", r"line 2: weight is empty"),
    ("source,target,weight\na,b,one\n", r"line 2: weight is 'one', not a number"),
    (
        "source,target,weight\na,b,1\nc,b,1\nb,a,2\n",
        r"line 4: repeats the edge of line 2 with another weight",
    ),
    (EDGES.encode() + b"a,\xe9\n", r"line 4: is not UTF-8"),
    (EDGES + 'a,"b\n', r"line 4: is not CSV"),
]


@pytest.mark.parametrize(("edges", "says"), EDGE_ERRORS)
def test_mistakes_in_edges(tmp_path: Path, edges: str | bytes, says: str) -> None:
    with pytest.raises(DataError, match=r"edges\.csv.*" + says.removeprefix(r"edges\.csv")) as caught:
        read(tmp_path, edges=edges)
    assert "\n" not in str(caught.value)


def test_an_unknown_integer_id_is_found_on_its_line(tmp_path: Path) -> None:
    nodes = "id,label,f\n" + "".join(f"{node},x,1\n" for node in range(10))
    edges = "source,target\n" + "1,2\n" * 400_000 + "3,10\n" + "1,2\n" * 10
    with pytest.raises(DataError, match=r"line 400002: target '10' is not an id"):
        read(tmp_path, nodes, edges)


def test_mistakes_in_the_folder(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"has no edges\.csv"):
        read_graph(tmp_path)
    folder(tmp_path, "id,label\na,x\nb,x\n", "source,target\na,b\n")
    with pytest.raises(DataError, match=r"nodes\.csv: has no feature columns, and there is no features\.npy"):
        read_graph(tmp_path)
    with pytest.raises(DataError, match="give the folder that holds"):
        read_graph(tmp_path / "edges.csv")
    with pytest.raises(DataError, match="no such file or folder"):
        read_graph(tmp_path / "absent")
    (tmp_path / "graph.txt").touch()
    with pytest.raises(DataError, match="neither a folder nor an"):
        read_graph(tmp_path / "graph.txt")
    for strange in ("a\0b", "x" * 5000):
        with pytest.raises(DataError, match="no"):
            read_graph(strange)
    with pytest.raises(TypeError, match="a graph is a folder"):
        read_graph(3)
    (tmp_path / "nodes.csv").unlink()
    (tmp_path / "nodes.csv").mkdir()
    with pytest.raises(DataError, match=r"nodes\.csv: is not an ordinary file"):
        read_graph(tmp_path)


TWO = "id,label\na,x\nb,y\n"
PAIR = "source,target\na,b\n"


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int8, np.bool_, ">f8"])
def test_features_beside_the_nodes(tmp_path: Path, kind: str) -> None:
    x = np.array([[1, 0, 1], [0, 0, 1]], kind)
    np.save(tmp_path / "features.npy", np.asfortranarray(x))
    assert dense(read(tmp_path, TWO, PAIR)) == x.astype(float).tolist()
    (tmp_path / "features.npy").unlink()
    np.savez_compressed(tmp_path / "features.npz", anything=x)
    assert dense(read(tmp_path, TWO, PAIR)) == x.astype(float).tolist()


def test_sparse_features_beside_the_nodes(tmp_path: Path) -> None:
    csr = {"indptr": np.array([0, 2, 3]), "indices": np.array([2, 0, 1]), "shape": np.array([2, 4])}
    expected = [[3, 0, 2, 0], [0, 5, 0, 0]]
    for arrays in (
        csr | {"data": np.array([2.0, 3, 5]), "format": np.array(b"csr")},
        {f"x_{name}": part for name, part in csr.items()} | {"x_values": np.array([2, 3, 5])},
    ):
        write_npz(tmp_path / "features.npz", arrays)
        graph = read(tmp_path, TWO, PAIR)
        assert isinstance(graph.x, SparseFeatures)
        assert graph.x.to_dense().tolist() == expected
        assert graph.x.indices.tolist() == [0, 2, 1]


def test_scipy_s_files_are_read(tmp_path: Path) -> None:
    sparse = pytest.importorskip("scipy.sparse")
    x = sparse.random(2, 5, density=0.5, format="csr", dtype=np.float32)
    sparse.save_npz(tmp_path / "features.npz", x)
    graph = read(tmp_path, TWO, PAIR)
    assert isinstance(graph.x, SparseFeatures)
    np.testing.assert_array_equal(graph.x.to_dense(), x.toarray())
    sparse.save_npz(tmp_path / "features.npz", x.tocsc())
    with pytest.raises(DataError, match="format 'csc': save it as csr"):
        read(tmp_path, TWO, PAIR)


@pytest.mark.parametrize(
    ("x", "says"),
    [
        (np.ones((3, 2)), "has 3 rows but nodes.csv has 2 nodes"),
        (np.ones(2), r"must be a matrix .* got float64 of shape \(2,\)"),
        (np.array([["a"], ["b"]]), "of numbers"),
        (np.array([[1.0], [np.nan]]), r"row 1, column 0 \(from 0\) is nan"),
        (np.array([[1.0], [1e300]]), r"row 1, column 0 \(from 0\) is 1e\+300, too large for float32"),
    ],
)
def test_mistakes_in_features(tmp_path: Path, x: np.ndarray, says: str) -> None:
    np.save(tmp_path / "features.npy", x)
    with pytest.raises(DataError, match=r"features\.npy: .*" + says):
        read(tmp_path, TWO, PAIR)
    (tmp_path / "features.npy").unlink()
    np.savez(tmp_path / "features.npz", x=x)
    with pytest.raises(DataError, match=r"features\.npz: .*" + says):
        read(tmp_path, TWO, PAIR)


def test_features_come_from_one_place(tmp_path: Path) -> None:
    np.save(tmp_path / "features.npy", np.ones((4, 2)))
    with pytest.raises(DataError, match=r"features\.npy and in nodes\.csv \(column 'f'\): take one"):
        read(tmp_path)
    np.savez(tmp_path / "features.npz", x=np.ones((2, 2)))
    with pytest.raises(DataError, match=r"both features\.npy and features\.npz"):
        read(tmp_path, TWO, PAIR)
    (tmp_path / "features.npy").unlink()
    np.savez(tmp_path / "features.npz", x=np.ones((2, 2)), y=np.ones(2))
    with pytest.raises(DataError, match="holds x, y: give one matrix"):
        read(tmp_path, TWO, PAIR)
