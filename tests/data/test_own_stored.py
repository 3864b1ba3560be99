"""Stored graphs: what is written is read, batches are cut from files, and damage and changes are noticed."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from damaged_files import peak
from own_graphs import assert_same
from propreg import DataError, load_graph
from propreg.data.features import from_dense
from propreg.data.graph import Graph, Split
from propreg.data.own import open_stored, read_graph, stored, write_stored
from propreg.data.own.pyg import to_data
from propreg.jsonio import canonical, parse
from propreg.scale import Loader

NODES = 50


def graph(*, sparse: bool = False) -> Graph:
    rng = np.random.default_rng(0)
    edges = rng.integers(NODES, size=(2, 300))
    edges = edges[:, np.lexsort(edges)]  # ordered by target, as stored
    x = (rng.random((NODES, 7)) < 0.3).astype(np.float32) * rng.random((NODES, 1), np.float32)
    part = rng.integers(0, 4, NODES)
    return Graph(
        "small",
        edges,
        from_dense(x) if sparse else x,
        rng.integers(0, 2, NODES),
        rng.random(300, np.float32),
        Split(part == 1, part == 2, part == 3),
        ("a", "é"),
        tuple(f"n{i}" for i in range(NODES)),
        feature_names=tuple("abcdefg"),
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_stored(tmp_path / "graph", graph())
    return tmp_path / "graph"


@pytest.mark.parametrize("sparse", [False, True])
def test_what_is_written_is_read(tmp_path: Path, sparse: bool) -> None:
    given = graph(sparse=sparse)
    write_stored(tmp_path / "g", given)
    assert_same(replace(read_graph(tmp_path / "g"), digests={}), graph())
    assert os.listdir(tmp_path) == ["g"], "nothing temporary stays"
    little = Graph("", np.zeros((2, 0), np.int64), np.zeros((1, 1), np.float32), np.array([-1]))
    write_stored(tmp_path / "little", little)
    assert read_graph(tmp_path / "little").edge_weight is None


def test_batches_are_those_of_the_graph_in_memory(folder: Path) -> None:
    data = to_data(graph())
    for stored_batch, batch in zip(
        Loader(folder, [3, 2], batch_size=20), Loader(data, [3, 2], batch_size=20), strict=True
    ):
        for key in ("n_id", "edge_index", "edge_weight", "x", "y", "train_mask", "degree"):
            assert torch.equal(stored_batch[key], batch[key]), key


def test_features_stay_on_disk(tmp_path: Path) -> None:
    x = np.zeros((1000, 5000), np.float32)  # 20 MB
    write_stored(tmp_path / "g", Graph("", np.zeros((2, 0), np.int64), x, np.zeros(1000, np.int64)))
    assert peak(lambda: next(iter(Loader(tmp_path / "g", [1], batch_size=10))))[1] < 4 << 20
    data = load_graph(tmp_path / "g")
    data.x[0, 0] = 1  # a copy of the page: the file stays as it is
    open_stored(tmp_path / "g").verify()


def test_a_change_during_training_is_noticed(folder: Path) -> None:
    loader = Loader(folder, [2], batch_size=10)
    batches = iter(loader)
    next(batches)
    np.save(folder / "y.npy", np.zeros(NODES, np.int64))
    with pytest.raises(DataError, match=r"y\.npy: changed while it was in use.*: train again"):
        next(batches)
    opened = open_stored(folder)
    (folder / "x.npy").unlink()
    with pytest.raises(DataError, match=r"x\.npy: changed while it was in use"):
        opened.check()


@pytest.mark.parametrize("file", ["start", "source", "weight", "x", "y", "train_mask", "node_ids"])
def test_damage_is_noticed(folder: Path, file: str) -> None:
    path = folder / f"{file}.npy"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"graph\.json|do not fit together"):
        read_graph(folder)
    path.write_bytes(content[:-1])
    with pytest.raises(DataError, match="is not a whole C-ordered array"):
        open_stored(folder)
    np.save(path, np.zeros((2, 3), np.complex128 if file == "node_ids" else np.float64))
    with pytest.raises(DataError, match=r"holds float64|has type '<c16'"):
        open_stored(folder)
    path.unlink()
    with pytest.raises(DataError, match="there is no such file"):
        open_stored(folder)


def test_files_that_do_not_fit_are_refused(folder: Path) -> None:
    for name, array in (
        ("y", np.zeros(NODES - 1, np.int64)),
        ("weight", np.zeros(3, np.float32)),
        ("start", np.zeros(NODES + 1, np.int64)),
        ("start", np.zeros(0, np.int64)),
    ):
        before = (folder / f"{name}.npy").read_bytes()
        np.save(folder / f"{name}.npy", array)
        with pytest.raises(DataError, match="its files do not fit together"):
            open_stored(folder)
        (folder / f"{name}.npy").write_bytes(before)


def test_another_description_is_refused(folder: Path) -> None:
    about = parse((folder / "graph.json").read_bytes())
    for text, says in (
        ("{", "is not JSON"),
        ("[]", "is not of format"),
        (canonical(about | {"format": "propreg-stored-graph-2"}), "update propreg or convert"),
        (canonical(about | {"sha256": {"../x.npy": ""}}), "does not describe a graph"),
        (canonical(about | {"class_names": [1]}), "does not describe a graph"),
        (canonical(about | {"name": None}), "does not describe a graph"),
    ):
        (folder / "graph.json").write_text(text)
        with pytest.raises(DataError, match=says):
            open_stored(folder)


def test_what_cannot_be_written_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "there").mkdir()
    with pytest.raises(DataError, match="already exists"):
        write_stored(tmp_path / "there", graph())
    with pytest.raises(DataError, match="only classes of nodes fit the format"):
        write_stored(tmp_path / "g", replace(graph(), extra={"a": 1}))

    def full(*_: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(stored, "_write", full)
    with pytest.raises(DataError, match="cannot be written: No space left on device"):
        write_stored(tmp_path / "g", graph())
    assert os.listdir(tmp_path) == ["there"]
