"""The reader of the GNN benchmark's npz files, against PyG's own."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.io import read_npz

from data.raw_files import sample_graph, write_benchmark
from propreg.data.benchmarks.gnn_benchmark import read_benchmark
from propreg.data.errors import DataError
from propreg.data.graph import SparseFeatures
from propreg.data.own.pyg import to_data


@pytest.mark.parametrize("seed", range(3))
def test_equals_pyg(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "raw.npz"
    write_benchmark(path, sample_graph(seed), seed=seed)
    ours, theirs = to_data(read_benchmark(path, "cs")), read_npz(str(path), to_undirected=True)
    for key in ("x", "edge_index", "y"):
        assert torch.equal(ours[key], theirs[key]), key


def test_counts_become_ones_and_stay_sparse(tmp_path: Path) -> None:
    write_benchmark(tmp_path / "raw.npz", sample_graph())
    x = read_benchmark(tmp_path / "raw.npz", "cs").x
    assert isinstance(x, SparseFeatures)
    assert x.values is None


def test_explicit_zeros_and_repeated_places_are_as_pyg_has_them(tmp_path: Path) -> None:
    path = tmp_path / "raw.npz"
    arrays: dict[str, Any] = {
        "adj_data": np.array([1.0, 0.0, 1.0]), "adj_indices": np.array([1, 2, 0]), "adj_indptr": np.array([0, 2, 3, 3]),
        "adj_shape": np.array([3, 3]), "attr_data": np.array([2.0, 0.0, 1.0, 1.0, -1.0]),
        "attr_indices": np.array([1, 0, 1, 1, 0]), "attr_indptr": np.array([0, 2, 4, 5]),
        "attr_shape": np.array([3, 2]), "labels": np.array([0, 1, 1]),
    }  # fmt: skip
    np.savez(path, **arrays)
    ours, theirs = to_data(read_benchmark(path, "cs")), read_npz(str(path), to_undirected=True)
    for key in ("x", "edge_index", "y"):
        assert torch.equal(ours[key], theirs[key]), key


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"adj_indices": lambda a: a + 640}, "out of range"),
        ({"attr_indices": lambda a: a - 40}, "out of range"),
        ({"attr_indices": lambda a: a.astype(np.float64)}, "vector of integers"),
        ({"attr_indptr": lambda a: a[::-1]}, "does not fit|goes down"),
        ({"attr_data": lambda a: a * np.nan}, "NaN or infinite"),
        ({"attr_data": lambda a: a[:-1]}, "values are needed"),
        ({"attr_shape": lambda _: np.array([2**62, 2**62])}, "impossible|does not fit"),
        ({"attr_shape": lambda a: a[:1]}, "does not hold two integers"),
        ({"adj_shape": lambda a: a + 1}, "does not fit"),
        ({"labels": lambda a: a[:-1]}, "do not fit"),
        ({"labels": lambda a: a - 9}, "not classes"),
        ({"labels": lambda a: a.astype(np.float32)}, "do not fit"),
        ({"labels": None}, "no array 'labels'"),
    ],
)
def test_wrong_content_is_refused(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    path = tmp_path / "raw.npz"
    write_benchmark(path, sample_graph())
    with np.load(path) as file:
        arrays = {key: file[key] for key in file.files if key != "node_names"}
    ((key, function),) = change.items()
    if function is None:
        del arrays[key]
    else:
        arrays[key] = function(arrays[key])
    np.savez(path, **arrays)
    with pytest.raises(DataError, match=message):
        read_benchmark(path, "cs")
