"""The Planetoid reader against PyG's own, and against hostile files."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.io import read_planetoid_data

from data.raw_files import py2, py2_array, py2_csr, py2_graph, py2_int, sample_graph, write_planetoid
from propreg.data.benchmarks.planetoid import read_planetoid
from propreg.data.edges import undirected
from propreg.data.errors import DataError
from propreg.data.formats.pickles import load_pickle
from propreg.data.graph import Graph, SparseFeatures
from propreg.data.own.pyg import to_data


def same_as_pyg(graph: Graph, folder: Path, prefix: str) -> None:
    theirs = read_planetoid_data(str(folder), prefix)
    ours = to_data(graph)
    for key in ("x", "y", "train_mask", "val_mask", "test_mask"):
        assert torch.equal(ours[key], theirs[key]), key
    assert torch.equal(ours.edge_index.flip(0), theirs.edge_index)  # PyG sorts by target


@pytest.mark.filterwarnings("ignore:.*scipy.sparse.csr:DeprecationWarning")
@pytest.mark.parametrize(("values", "dtype"), [("binary", "<f4"), ("float", "<f4"), ("float", "<f8")])
@pytest.mark.parametrize("seed", range(3))
def test_equals_pyg(tmp_path: Path, seed: int, values: str, dtype: str) -> None:
    write_planetoid(tmp_path, sample_graph(seed, values=values), seed=seed, dtype=dtype)
    same_as_pyg(read_planetoid(tmp_path, "cora"), tmp_path, "cora")


@pytest.mark.filterwarnings("ignore:.*scipy.sparse.csr:DeprecationWarning")
def test_nodes_missing_from_the_test_index_are_kept_as_empty_rows(tmp_path: Path) -> None:
    sample = sample_graph(gaps=3)
    graph = Graph("citeseer", sample.edge_index, sample.x, sample.y, split=sample.split, extra=sample.extra)
    write_planetoid(tmp_path, graph)
    read = read_planetoid(tmp_path, "citeseer")
    same_as_pyg(read, tmp_path, "citeseer")
    assert read.extra["unlabeled"].tolist() == sample.extra["unlabeled"].tolist()
    assert read.y[read.extra["unlabeled"]].tolist() == [0, 0, 0]


def test_features_stay_sparse(tmp_path: Path) -> None:
    sample = sample_graph()
    write_planetoid(tmp_path, sample)
    x = read_planetoid(tmp_path, "cora").x
    assert isinstance(x, SparseFeatures)
    assert x.values is None


HOSTILE = {
    "os.system": py2(b"cos\nsystem\nU\x04true\x85R"),
    "posix.system": py2(b"cposix\nsystem\nU\x04true\x85R"),
    "__builtin__.eval": py2(b"c__builtin__\neval\nU\x011\x85R"),
    "numpy.core.multiarray.scalar": py2(b"cnumpy.core.multiarray\nscalar\n)R"),
    "copy_reg._reconstructor": py2(b"ccopy_reg\n_reconstructor\n)R"),
    "subprocess.Popen": py2(b"csubprocess\nPopen\nU\x04true\x85\x81"),
    "numpy.load": py2(b"cnumpy\nload\nU\x04true\x85R"),
    "scipy.sparse.csr.__loader__": py2(b"cscipy.sparse.csr\n__loader__\n)R"),
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("part", ["allx", "ally", "graph"])
def test_a_hostile_pickle_is_refused_by_name(tmp_path: Path, name: str, part: str) -> None:
    write_planetoid(tmp_path, sample_graph())
    (tmp_path / f"ind.cora.{part}").write_bytes(HOSTILE[name])
    with pytest.raises(DataError, match=f"names {name}.*was not run"):
        read_planetoid(tmp_path, "cora")


def test_allowed_names_are_never_called() -> None:
    made, _ = load_pickle(py2(b"cnumpy\ndtype\nU\x02f4\x85R"), "file", lambda *_: True)
    assert type(made).__name__ == "Made"
    made, _ = load_pickle(py2(b"cos\nsystem\nU\x04true\x85R"), "file", lambda *_: True)
    assert type(made).__name__ == "Made"


ODD = {
    "a mark in the memo": py2(b"(q\x01N"),
    "a text longer than the file": b"\x80\x02T\xff\xff\xff\x7fabc.",
    "an endless number": py2(b"L" + b"9" * 5000 + b"\n"),
    "a negative length": b"\x80\x02T\xff\xff\xff\xffabc.",
    "protocol 4": b"\x80\x04N.",
    "an unknown instruction": b"\x80\x02\xffN.",
    "nothing": b"",
    "no end": b"\x80\x02N",
    "two values": py2(b"NN"),
    "a mark as a value": py2(b"("),
    "state for a number": py2(b"K\x01}b"),
    "a call of a number": py2(b"K\x01)R"),
    "an unknown memo": py2(b"h\x07"),
    "a list as a key": py2(b"}]K\x01s"),
    "items for None": py2(b"NK\x01a"),
    "bytes that are no text": py2(b"X\x01\x00\x00\x00\xff"),
    "a name that is no text": py2(b"c\xff\n\xff\n"),
    "a text without quotes": py2(b"Sabc\n"),
    "more instructions than allowed": b"\x80\x02" + b"N0" * 10 + b"(" * 2_100_000 + b".",
}


@pytest.mark.parametrize("case", ODD)
def test_an_odd_pickle_is_refused(case: str) -> None:
    with pytest.raises(DataError):
        load_pickle(ODD[case], "file", lambda *_: False)


SHARED = b")" + b"".join(b"q%ch%c\x86" % (k, k) for k in range(1, 90))  # pairs of pairs …: 2^89 of them, once unfolded


def test_it_is_small() -> None:
    assert len(py2(SHARED)) < 460


DEEP = {
    "shared tuples": SHARED,
    "lists": b"]" * 99 + b"a" * 98,
    "tuples": b")" + b"\x85" * 2_000,
    "calls": b")" + b"cnumpy\ndtype\nq\x01" + b")R" + b"\x85" * 99,
    "states": b"".join(b"cnumpy\ndtype\n)R" for _ in range(99)) + b"b" * 98,
    "dictionaries": b"}K\x01" * 99 + b"N" + b"s" * 99,
    "a list in itself": b"]q\x01h\x01a",
    "a list in a tuple in it": b"]q\x01h\x01\x85a",
    "an object as its own state": b"cnumpy\ndtype\n)Rq\x01h\x01b",
    "a wide list many times": b"(" + b"N" * 2_000 + b"lq\x01(" + b"h\x01" * 2_000 + b"t",
    "a list changed in its holder": b"]q\x01\x85h\x01Na",
    "references": b"N" + b"Q" * 99,
}


@pytest.mark.parametrize("case", DEEP)
def test_what_unfolds_without_end_is_refused(case: str) -> None:
    with pytest.raises(DataError):
        load_pickle(py2(DEEP[case]), "file", lambda *_: True)


@pytest.mark.parametrize("part", ["allx", "ally", "graph"])
@pytest.mark.parametrize("case", DEEP)
def test_what_unfolds_without_end_is_no_dataset(tmp_path: Path, case: str, part: str) -> None:
    write_planetoid(tmp_path, sample_graph())
    (tmp_path / f"ind.cora.{part}").write_bytes(py2(DEEP[case]))
    with pytest.raises(DataError) as caught:
        read_planetoid(tmp_path, "cora")
    assert len(str(caught.value)) < 400


def test_shared_values_are_read() -> None:
    value, _ = load_pickle(py2(b"(K\x01K\x02lq\x01h\x01h\x01\x87"), "file", lambda *_: False)
    assert value == ([1, 2], [1, 2], [1, 2])


@pytest.mark.parametrize("shape", [SHARED, b"(" + b"K\x01" * 500 + b"t"])
def test_a_shape_is_not_printed(tmp_path: Path, shape: bytes) -> None:
    write_planetoid(tmp_path, sample_graph())
    body = py2_array(np.zeros((2, 4), np.int32))
    assert b"(K\x02K\x04t" in body
    (tmp_path / "ind.cora.ally").write_bytes(py2(body.replace(b"(K\x02K\x04t", shape)))
    with pytest.raises(DataError) as caught:
        read_planetoid(tmp_path, "cora")
    assert len(str(caught.value)) < 400
    assert "1, 1" not in str(caught.value)


def test_a_memo_index_of_four_billion_costs_nothing() -> None:
    assert load_pickle(py2(b"Nr\xff\xff\xff\xff"), "file", lambda *_: False)[0] is None


def test_protocol_0_is_understood() -> None:
    text = b"(dp0\nI1\n(lp1\nI2\naL3L\nasV\\u00e9\nF1.5\nsS'a\\x01'\nI01\ns."
    value, end = load_pickle(text, "file", lambda *_: False)
    assert value == {1: [2, 3], "é": 1.5, b"a\x01": True}
    assert end == len(text)


def big(shape: tuple[int, ...]) -> bytes:
    """An array that declares another shape than it holds."""
    return py2_array(np.zeros((2, 4), np.int32)).replace(b"(K\x02K\x04t", b"(" + b"".join(map(py2_int, shape)) + b"t")


@pytest.mark.parametrize(
    ("part", "body", "message"),
    [
        ("ally", big((2_000_000_000, 4)), "declares 32000000000 bytes but holds 32"),
        ("ally", big((-2, -4)), "shape"),
        ("ally", py2_array(np.zeros((2, 2, 2), np.int32)), "shape"),
        ("ally", py2_array(np.full((580, 4), 2, np.int32)), "zeros and ones"),
        ("ally", py2_array(np.zeros((5, 4), np.int32)), "do not fit together"),
        ("ally", py2_array(np.ones((580, 4), np.int32)), "two classes"),
        ("ally", py2_graph({}), "does not hold an array"),
        ("ally", py2_array(np.zeros((2, 4), np.int32)).replace(b"\x02i4", b"\x02O8"), "plain numbers"),
        ("allx", py2_array(np.zeros((2, 4), np.int32)), "does not hold a sparse matrix"),
        ("graph", py2_array(np.zeros((2, 4), np.int32)), "not a table of neighbors"),
        ("graph", py2_graph({0: [1], 1: [0], 2: [9999]}), "out of range"),
        ("graph", py2_graph({0: [1]}), "one direction only"),
        ("graph", py2(b"}")[2:-1] + b"K\x01K\x02s", "not a table of neighbors"),
    ],
)
def test_wrong_content_is_refused(tmp_path: Path, part: str, body: bytes, message: str) -> None:
    write_planetoid(tmp_path, sample_graph())
    (tmp_path / f"ind.cora.{part}").write_bytes(py2(body))
    with pytest.raises(DataError, match=message):
        read_planetoid(tmp_path, "cora")


@pytest.mark.parametrize(
    ("indices", "indptr", "message"),
    [
        ([0, 99], [0, 2], "column 99 is out of range"),
        ([0, -1], [0, 2], "column -1 is out of range"),
        ([0, 1], [0, 3], "does not fit"),
        ([0, 1], [1, 2], "does not fit"),
        ([0, 1], [0, 5, 2], "indptr decreases"),
    ],
)
def test_csr_arrays_that_do_not_fit_are_refused(
    tmp_path: Path, indices: list[int], indptr: list[int], message: str
) -> None:
    write_planetoid(tmp_path, sample_graph())
    x = SparseFeatures(np.array(indptr), np.array(indices, np.int32), None, (len(indptr) - 1, 30))
    (tmp_path / "ind.cora.allx").write_bytes(py2(py2_csr(x)))
    with pytest.raises(DataError, match=message):
        read_planetoid(tmp_path, "cora")


@pytest.mark.parametrize(
    ("text", "message"),
    [("", "no node"), ("12\nx\n", "one node number"), ("580\n580\n", "twice"), ("99999999999999999999\n", "number"),
     ("580\n2000000000\n", "fit|up to"), ("-4\n", "out of range")],
)  # fmt: skip
def test_a_wrong_test_index_is_refused(tmp_path: Path, text: str, message: str) -> None:
    write_planetoid(tmp_path, sample_graph())
    (tmp_path / "ind.cora.test.index").write_text(text)
    with pytest.raises(DataError, match=message):
        read_planetoid(tmp_path, "cora")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    write_planetoid(tmp_path, sample_graph())
    (tmp_path / "ind.cora.ty").unlink()
    with pytest.raises(DataError, match=r"ind\.cora\.ty: there is no such file"):
        read_planetoid(tmp_path, "cora")


def test_fortran_order_is_understood(tmp_path: Path) -> None:
    graph = sample_graph()
    write_planetoid(tmp_path, graph)
    one_hot = np.eye(4, dtype=np.int32)[graph.y[:580]]
    (tmp_path / "ind.cora.ally").write_bytes(py2(py2_array(one_hot, fortran=True)))
    assert read_planetoid(tmp_path, "cora").y.tolist() == graph.y.tolist()


def test_undirected_is_symmetric() -> None:
    rng = np.random.default_rng(0)
    edges = undirected(rng.integers(0, 9, 30), rng.integers(0, 9, 30), 9, "edges")
    assert set(map(tuple, edges.T.tolist())) == set(map(tuple, edges[::-1].T.tolist()))
