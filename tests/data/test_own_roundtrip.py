"""What is written is read: as npz, as a folder, as PyG's Data."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from own_graphs import assert_same, graphs, write_folder
from propreg.data.digests import digest_edges, digest_features
from propreg.data.features import from_dense
from propreg.data.graph import Graph, SparseFeatures
from propreg.data.own.load import load_graph, read_graph
from propreg.data.own.npz import read_graph_npz, write_graph

Factory = pytest.TempPathFactory


@settings(deadline=None, max_examples=60)
@given(graph=graphs())
def test_npz_keeps_everything(graph: Graph, tmp_path_factory: Factory) -> None:
    path = tmp_path_factory.mktemp("npz") / "graph.npz"
    write_graph(path, graph)
    found = read_graph_npz(path)
    assert_same(found, graph, name=bool(graph.name))
    assert found.name == (graph.name or "graph")
    write_graph(path.with_name("again.npz"), graph)
    assert path.read_bytes() == path.with_name("again.npz").read_bytes()


@settings(deadline=None, max_examples=60)
@given(graph=graphs(plain=True), directed=st.booleans(), terminator=st.sampled_from(["\n", "\r\n", "\r"]))
def test_a_folder_says_everything(graph: Graph, directed: bool, terminator: str, tmp_path_factory: Factory) -> None:
    folder = tmp_path_factory.mktemp("folder")
    write_folder(folder, graph, directed=directed, terminator=terminator)
    assert_same(read_graph(folder, directed=directed), graph, name=False)


@settings(deadline=None, max_examples=40)
@given(graph=graphs(), features=st.sampled_from(["dense", "sparse"]))
def test_data_keeps_everything(graph: Graph, features: str, tmp_path_factory: Factory) -> None:
    path = tmp_path_factory.mktemp("npz") / "graph.npz"
    write_graph(path, graph)
    data = load_graph(path, features=features)  # type: ignore[arg-type]
    found, honest = read_graph(data), read_graph(path)
    assert found.digests == honest.digests
    assert isinstance(found.x, SparseFeatures) == (features == "sparse")
    if isinstance(found.x, SparseFeatures) == isinstance(honest.x, SparseFeatures):
        assert_same(found, honest)
    assert found.node_ids == honest.node_ids
    assert found.class_names == honest.class_names


@settings(deadline=None)
@given(graph=graphs())
def test_digests_do_not_depend_on_the_form(graph: Graph) -> None:
    x = graph.x.to_dense() if isinstance(graph.x, SparseFeatures) else graph.x
    assert digest_features(x) == digest_features(from_dense(x))
    order = np.lexsort(graph.edge_index[::-1])
    weight = None if graph.edge_weight is None else graph.edge_weight[order]
    shuffled = graph.edge_index[:, ::-1], None if graph.edge_weight is None else graph.edge_weight[::-1]
    expected = digest_edges(*shuffled)
    assert digest_edges(graph.edge_index[:, order], weight) == expected
    assert digest_edges(graph.edge_index, graph.edge_weight) == expected


def test_files_are_read_without_torch(tmp_path: Path) -> None:
    graph = Graph("pair", np.array([[0, 1], [1, 0]]), np.eye(2, dtype=np.float32), np.array([0, 1]))
    write_graph(tmp_path / "pair.npz", graph)
    code = (
        "import sys; from propreg.data.own.load import read_graph; read_graph(sys.argv[1]); "
        "print('torch' in sys.modules)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "pair.npz")]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "False\n"
