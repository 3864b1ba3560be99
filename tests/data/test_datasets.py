"""load_dataset and load_node_graph on small made-up data: options, places, errors."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.loader import DataLoader

import propreg
from data.raw_files import CLASSES, entry_of, molecule_entry, sample_graph, sample_molecules
from propreg import DataError
from propreg.data.benchmarks import catalog, verify
from propreg.data.benchmarks.cache import (
    read_molecules,
    read_nodes,
    read_splits,
    write_molecules,
    write_nodes,
    write_splits,
)
from propreg.data.benchmarks.catalog import Part
from propreg.data.benchmarks.load import load_molecules, load_node_graph
from propreg.data.benchmarks.locate import cache_folder, search_path
from propreg.data.benchmarks.molecules import MoleculeDataset
from propreg.data.graph import SparseFeatures
from propreg.data.splits import official_splits, random_split


@pytest.fixture
def cora(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache with a small stand-in for cora and its splits."""
    nowhere.mkdir(parents=True)
    graph = sample_graph(values="float", gaps=2)
    splits = [random_split(graph.y, 5, 5, seed) for seed in range(10)]
    entry = entry_of(graph, "planetoid", splits=splits, raw_splits=catalog.NODE_SETS["cora"].raw_splits)
    monkeypatch.setitem(catalog.NODE_SETS, "cora", entry)
    write_nodes(nowhere / "cora.npz", graph)
    write_splits(nowhere / "cora_splits.npz", "cora", splits)
    return nowhere


def test_a_dense_pyg_data_is_the_default(cora: Path) -> None:
    data, honest = propreg.load_dataset("cora"), sample_graph(values="float", gaps=2)
    assert isinstance(honest.x, SparseFeatures)
    assert torch.equal(data.x, torch.from_numpy(honest.x.to_dense()))
    assert torch.equal(data.edge_index, torch.from_numpy(honest.edge_index[::-1].copy()))
    assert data.edge_index.is_contiguous()
    assert (data.x.dtype, data.y.dtype, data.edge_index.dtype) == (torch.float32, torch.int64, torch.int64)
    assert data.train_mask.sum() == 16
    assert data.validate()
    assert cora.exists()


def test_sparse_features_are_never_dense(cora: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dense = propreg.load_dataset("cora").x
    monkeypatch.setattr(SparseFeatures, "to_dense", lambda _: pytest.fail("made dense"))
    x = propreg.load_dataset("cora", features="sparse", normalize_features=True).x
    assert x.layout == torch.sparse_csr
    assert torch.allclose(x.to_dense(), dense / dense.sum(dim=1, keepdim=True).clamp(min=1))
    assert cora.exists()


@pytest.mark.usefixtures("cora")
def test_splits_by_number_and_all_together() -> None:
    splits = official_splits("cora")
    data = propreg.load_dataset("cora", split=4)
    assert torch.equal(data.val_mask, torch.from_numpy(splits[4].val))
    table = propreg.load_dataset("cora", split="official")
    assert table.train_mask.shape == (640, 10)
    assert torch.equal(table.train_mask[:, 4], data.train_mask)
    assert load_node_graph("cora", split=np.int64(4)).digests.keys() == {"edges", "features", "labels", "split_4"}  # type: ignore[arg-type]
    assert load_node_graph("cora").digests.keys() == {"edges", "features", "labels", "public_split"}


@pytest.mark.usefixtures("cora")
def test_labels_follow_the_split_unless_told() -> None:
    nodes = sample_graph(gaps=2).extra["unlabeled"]
    assert propreg.load_dataset("cora").y[nodes].tolist() == [0, 0]
    assert propreg.load_dataset("cora", split=0).y[nodes].tolist() == [CLASSES - 1] * 2
    assert propreg.load_dataset("cora", split=0, labels="pyg").y[nodes].tolist() == [0, 0]
    assert propreg.load_dataset("cora", labels="authors").y[nodes].tolist() == [CLASSES - 1] * 2


@pytest.mark.usefixtures("cora")
@pytest.mark.parametrize(
    "options",
    [{"features": "csr"}, {"labels": "mine"}, {"split": 10}, {"split": -1}, {"split": "random"}, {"split": True}],
)
def test_bad_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        propreg.load_dataset("cora", **options)


def test_unknown_names() -> None:
    with pytest.raises(DataError, match=r"'pubmd'. Did you mean 'pubmed'\? Known are: digits, cora"):
        propreg.load_dataset("pubmd")
    with pytest.raises(DataError, match="Known are"):
        propreg.load_dataset("zzzzzz")
    with pytest.raises(TypeError, match="named by a string"):
        propreg.load_dataset(7)  # type: ignore[arg-type]
    assert catalog.find("Amazon-Photo") is catalog.find("amazon_photo") is catalog.find("photo")
    assert catalog.find("molhiv") is catalog.find("ogbg_molhiv") is catalog.find("ogbg-molhiv")


def test_one_kind_is_not_the_other(cora: Path) -> None:
    assert cora.exists()
    with pytest.raises(DataError, match="one graph, not molecules"):
        load_molecules("cora")
    with pytest.raises(DataError, match="many graphs, not one"):
        load_node_graph("ogbg-molhiv")
    with pytest.raises(ValueError, match="do not apply"):
        propreg.load_dataset("ogbg-molhiv", features="sparse")


def test_without_a_public_split(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nowhere.mkdir(parents=True)
    graph = replace(sample_graph(), name="photo", split=None)
    monkeypatch.setitem(catalog.NODE_SETS, "photo", entry_of(graph, "gnn-benchmark"))
    write_nodes(nowhere / "photo.npz", graph)
    data = propreg.load_dataset("photo")
    assert "train_mask" not in data
    assert torch.equal(data.edge_index, torch.from_numpy(graph.edge_index))
    with pytest.raises(DataError, match="photo has no public split"):
        load_node_graph("photo", split="public")


def test_places_are_tried_in_order(cora: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert search_path() == [cora] == [cache_folder()]
    monkeypatch.setenv("PROPREG_DATA", str(tmp_path / "env"))
    with pytest.raises(DataError, match=r"PROPREG_DATA names .*/env, which is not a folder"):
        propreg.load_dataset("cora")
    (tmp_path / "env").mkdir()
    assert search_path(tmp_path / "root") == [tmp_path / "root", tmp_path / "env", cora]
    for place in ("env", "root"):  # a damaged file in an earlier place is met first
        (tmp_path / place).mkdir(exist_ok=True)
        (tmp_path / place / "cora.npz").write_bytes(b"damaged")
        with pytest.raises(DataError, match=str(tmp_path / place)):
            propreg.load_dataset("cora", root=tmp_path / "root")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache_folder() == Path.home() / ".cache" / "propreg"


@pytest.mark.parametrize(
    ("platform", "variable", "expected"),
    [
        ("win32", "LOCALAPPDATA", "propreg"),
        ("darwin", "HOME", "Library/Caches/propreg"),
        ("linux", "XDG_CACHE_HOME", "propreg"),
    ],
)
def test_the_cache_is_where_the_system_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, platform: str, variable: str, expected: str
) -> None:
    monkeypatch.setattr("propreg.data.benchmarks.locate.sys.platform", platform)
    monkeypatch.setenv(variable, str(tmp_path))
    assert cache_folder() == tmp_path / expected


@pytest.mark.parametrize("published", [True, False])
@pytest.mark.parametrize("part", ["edges", "features", "labels", "authors_labels", "public_split"])
@pytest.mark.usefixtures("cora")
def test_other_content_of_any_part_is_refused(monkeypatch: pytest.MonkeyPatch, part: str, published: bool) -> None:
    entry = catalog.NODE_SETS["cora"]
    known = replace(entry, parts={**entry.parts, part: Part(("0" * 64,), published)})
    monkeypatch.setitem(catalog.NODE_SETS, "cora", known)
    of = "" if published else " of the copy that the recorded results were computed on"
    with pytest.raises(DataError, match=f"{part.replace('_', ' ')} are not those of cora .*expected 0{{16}}{of}"):
        load_node_graph("cora")


@pytest.mark.usefixtures("cora")
def test_a_part_that_is_not_in_the_catalog_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = catalog.NODE_SETS["cora"]
    parts = {part: known for part, known in entry.parts.items() if part != "public_split"}
    monkeypatch.setitem(catalog.NODE_SETS, "cora", replace(entry, parts=parts))
    with pytest.raises(DataError, match="has a public split, which cora does not"):
        load_node_graph("cora")


@pytest.mark.parametrize("name", ["cs", "physics", "computers", "photo"])
@pytest.mark.parametrize("part", ["labels", "edges", "features"])
def test_changes_of_the_benchmark_graphs_are_refused(benchmarks: Path, name: str, part: str) -> None:
    entry = catalog.NODE_SETS[name]
    graph = read_nodes(benchmarks / f"{entry.file}.npz", name)
    assert isinstance(graph.x, SparseFeatures)
    if part == "labels":
        y = graph.y.copy()
        one, two = np.flatnonzero(y == 0)[:300], np.flatnonzero(y == 1)[:300]
        y[one], y[two] = 1, 0
        changed = replace(graph, y=y)
    elif part == "edges":
        changed = replace(graph, edge_index=np.where(graph.edge_index < 2, 1 - graph.edge_index, graph.edge_index))
    else:
        changed = replace(graph, x=replace(graph.x, indices=graph.x.indices[::-1].copy()))
    verify.verify_nodes(graph, entry, "file")
    with pytest.raises(DataError, match=f"file: the {part} are not those of {name}"):
        verify.verify_nodes(changed, entry, "file")


def test_nodes_round_trip(tmp_path: Path) -> None:
    graph = sample_graph(values="float", gaps=2)
    write_nodes(tmp_path / "a.npz", graph)
    read = read_nodes(tmp_path / "a.npz", graph.name)
    assert entry_of(read, "planetoid") == entry_of(graph, "planetoid")
    write_nodes(tmp_path / "b.npz", read)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_splits_and_molecules_round_trip(tmp_path: Path) -> None:
    graph, data = sample_graph(), sample_molecules()
    splits = [random_split(graph.y, 5, 5, seed) for seed in range(10)]
    write_splits(tmp_path / "s.npz", "cora", splits)
    read = read_splits(tmp_path / "s.npz", "cora", graph.num_nodes)
    assert all(np.array_equal(a.val, b.val) for a, b in zip(read, splits, strict=True))
    write_molecules(tmp_path / "m.npz", data)
    again = read_molecules(tmp_path / "m.npz", data.name)
    assert molecule_entry(again) == molecule_entry(data)
    assert (again.smiles, again.task_names) == (data.smiles, data.task_names)


def test_molecules_are_a_list_of_graphs(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = sample_molecules()
    nowhere.mkdir(parents=True)
    monkeypatch.setitem(catalog.MOLECULE_SETS, data.name, molecule_entry(data))
    write_molecules(nowhere / "ogbg_molesol.npz", data)
    dataset = propreg.load_dataset("molesol")
    assert isinstance(dataset, MoleculeDataset)
    assert (len(dataset), dataset.num_tasks, dataset.metric, dataset.task_type) == (12, 3, "rmse", "regression")
    assert "12 graphs" in repr(dataset)
    assert [graph.num_nodes for graph in dataset] == data.num_nodes.tolist()
    assert torch.equal(dataset[-1].x, dataset[11].x)
    assert torch.equal(dataset[0].y.isnan(), torch.from_numpy(np.isnan(data.y[:1])))
    assert dataset[3].edge_index.shape == (2, 0)  # a single atom
    train = dataset[dataset.split["train"]]
    assert (len(train), train.split) == (len(data.split["train"]), {})
    assert torch.equal(train.y.isnan(), dataset.y[dataset.split["train"]].isnan())
    assert train.smiles == [data.smiles[i] for i in data.split["train"]]
    assert [len(dataset[pick]) for pick in (slice(2, 5), [1, 4], np.array([], int), torch.tensor([3]), [])] == [
        3,
        2,
        0,
        1,
        0,
    ]
    assert len(dataset[torch.arange(12) < 4]) == 4
    batch = next(iter(DataLoader(dataset, batch_size=12)))
    assert batch.x.shape == (data.num_nodes.sum(), 9)
    assert batch.y.shape == (12, 3)
    with pytest.raises(IndexError):
        dataset[12]


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_torch_and_pyg_are_not_needed_for_arrays() -> None:
    code = """
import sys
sys.modules["torch"] = sys.modules["torch_geometric"] = sys.modules["scipy"] = None
from propreg.data.benchmarks.load import load_node_graph
print(load_node_graph("digits").num_nodes, "sklearn" in sys.modules)
"""
    assert run(code).strip() == "1797 False"


def test_without_pyg_one_sentence_says_so() -> None:
    code = """
import sys
sys.modules["torch_geometric"] = None
import propreg
try:
    propreg.load_dataset("digits")
except ImportError as error:
    print(error)
"""
    assert "needs torch_geometric: run pip install torch_geometric, or use" in run(code)
