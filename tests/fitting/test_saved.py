"""Saved models: equal logits after a round trip, and one sentence for whatever else a file may hold."""

import json
import pickle
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import propreg
from communities import communities
from damaged_files import check_damaged, damaged_npz
from propreg.data.errors import DataError
from propreg.data.formats.npz import read_npz, write_npz
from propreg.data.own.npz import members_digest
from propreg.data.own.pyg import to_data
from propreg.engine import Model
from propreg.fitting.checkpoint import read_settings

GRAPH = communities()
MODELS = {
    "gcn": "gcn",
    "gat": "gat",
    "mlp": "mlp",
    "appnp": "appnp",
    "deep gcn": Model("gcn", hidden=5, layers=4),
    "wide gat": Model("gat", hidden=3, heads=2, out_heads=3),
    "gcn with input dropout": Model("gcn", input_dropout=0.3),
}


def trained(model: Any, graph: Any = GRAPH, scale: Any = "auto") -> propreg.FitResult:
    options: dict[str, Any] = {"splits": 1, "seeds": 1, "train_per_class": 5, "val_per_class": 5, "max_epochs": 3}
    return propreg.fit(graph, model, 0.3, scale=scale, progress=False, **options)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("saved") / "model.npz"
    trained("gcn", scale="none").save(path)
    return path


@pytest.mark.parametrize("name", MODELS)
def test_a_round_trip_gives_equal_logits(name: str, tmp_path: Path) -> None:
    result = trained(MODELS[name])
    result.save(tmp_path / "model.npz")
    model = propreg.load_model(tmp_path / "model.npz")
    data = to_data(GRAPH)
    assert not model.training
    assert torch.equal(model(data.x, data.edge_index), result.model(data.x, data.edge_index))
    torch.manual_seed(0)
    first = model.train()(data.x, data.edge_index)
    torch.manual_seed(0)
    assert torch.equal(first, result.model.train()(data.x, data.edge_index)), "dropout rates are kept too"


def test_weighted_graphs(tmp_path: Path) -> None:
    graph = replace(GRAPH, edge_weight=np.linspace(0.1, 2, GRAPH.edge_index.shape[1], dtype=np.float32))
    result = trained("appnp", graph)
    result.save(tmp_path / "model.npz")
    data, model = to_data(graph), propreg.load_model(tmp_path / "model.npz")
    logits = model(data.x, data.edge_index, data.edge_weight)
    assert torch.equal(logits, result.model(data.x, data.edge_index, data.edge_weight))


def test_equal_models_give_equal_bytes_and_settings_can_be_read(tmp_path: Path) -> None:
    for name in "ab":
        trained("mlp").save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    settings = read_settings(tmp_path / "a")
    assert (settings.features, settings.classes, settings.architecture) == (8, 3, Model("mlp"))
    assert settings.about["method"] == "preg"
    assert settings.about["mu"] in (0.0, 0.3)


def test_nothing_in_the_file_is_a_pickle(saved: Path) -> None:
    with zipfile.ZipFile(saved) as archive:
        for name in archive.namelist():
            assert b"|O" not in archive.read(name)[:128]
    for array in np.load(saved, allow_pickle=False).values():
        assert array.dtype.kind in "fU"


def test_damaged_files_are_one_sentence_or_the_same_model(saved: Path, tmp_path: Path) -> None:
    content, path, data = saved.read_bytes(), tmp_path / "model.npz", to_data(GRAPH)
    expected = propreg.load_model(saved)(data.x, data.edge_index)

    def same() -> bool:
        return torch.equal(propreg.load_model(path)(data.x, data.edge_index), expected)

    check_damaged(path, damaged_npz(content, 400, seed=5), same, 300)


def changed(saved: Path, path: Path, **members: Any) -> Path:
    """A copy with other members (None: without) whose checksum is right."""
    arrays = {**read_npz(saved), **{name: np.asarray(a) for name, a in members.items() if a is not None}}
    arrays = {name: a for name, a in arrays.items() if members.get(name, a) is not None and name != "sha256"}
    write_npz(path, {**arrays, "sha256": np.array(members_digest(arrays))})
    return path


def settings_of(saved: Path, **changes: Any) -> str:
    raw = json.loads(str(read_npz(saved)["settings"]))
    for name, value in changes.items():
        (raw["architecture"] if name in raw["architecture"] else raw)[name] = value
    return json.dumps(raw)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"name": "transformer"}, "model must be one of"),
        ({"hidden": 10**12}, "a size is out of range"),
        ({"hidden": 63}, "not float32"),
        ({"hidden": 64.5}, "hidden must be a whole number"),
        ({"hidden": True}, "hidden must be a whole number"),
        ({"layers": 10**9}, "arrays for 1000000000 layers"),
        ({"layers": 3}, "arrays for 3 layers"),
        ({"name": "mlp"}, "other arrays than a mlp"),
        ({"features": -1}, "a size is out of range"),
        ({"features": "8"}, "a size is out of range"),
        ({"classes": 4}, "not float32"),
        ({"dropout": 2}, "dropout is 2"),
        ({"dropout": None}, "dropout is None"),
        ({"weighted": 1}, "another type"),
        ({"about": []}, "another type"),
        ({"architecture": 3}, "must be a JSON object"),
        ({"unknown": 1}, "unexpected keyword"),
        ({"scale": "log"}, "scale is 'log'"),
        ({"scale": "standard"}, "scale is 'standard'"),
        ({"class_names": ["a"]}, "class_names are 1, not 3"),
        ({"feature_names": "abcdefgh"}, "feature_names are not texts"),
    ],
)
def test_settings_that_cannot_be(saved: Path, tmp_path: Path, change: dict[str, Any], says: str) -> None:
    path = changed(saved, tmp_path / "model.npz", settings=settings_of(saved, **change))
    with pytest.raises(DataError, match=says) as caught:
        propreg.load_model(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("members", "says"),
    [
        ({"format": "propreg-model-3"}, "newer than 'propreg-model-2': update propreg"),
        ({"format": "propreg-graph-1"}, "is not a model that propreg saved"),
        ({"format": None}, "is not a model that propreg saved"),
        ({"settings": None}, "is not a model that propreg saved"),
        ({"settings": "{"}, "its settings cannot be used"),
        ({"settings": "[1]"}, "its settings cannot be used"),
        ({"settings": 3.0}, "is not a model that propreg saved"),
        ({"module_0__bias": None}, "arrays for 2 layers"),
        ({"module_9__bias": np.zeros(3, np.float32)}, "other arrays than a gcn"),
        ({"module_0__bias": np.zeros(64)}, "is float64"),
        ({"module_0__bias": np.full(64, np.nan, np.float32)}, "NaN or infinite weight"),
    ],
)
def test_members_that_cannot_be(saved: Path, tmp_path: Path, members: dict[str, Any], says: str) -> None:
    path = changed(saved, tmp_path / "model.npz", **members)
    with pytest.raises(DataError, match=says):
        propreg.load_model(path)


def test_other_files(saved: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no such file"):
        propreg.load_model(tmp_path / "nothing.npz")
    other = tmp_path / "other.npz"
    np.savez(other, y=np.arange(3))
    with pytest.raises(DataError, match="is not a model that propreg saved"):
        propreg.load_model(other)
    other.write_bytes(pickle.dumps({"model": 1}))
    with pytest.raises(DataError):
        propreg.load_model(other)
    arrays = read_npz(saved)
    arrays["module_0__bias"] = arrays["module_0__bias"] + 1
    write_npz(other, arrays)
    with pytest.raises(DataError, match="does not match its SHA-256"):
        propreg.load_model(other)


def test_a_setting_that_the_weights_depend_on_is_needed(saved: Path, tmp_path: Path) -> None:
    raw = json.loads(settings_of(saved))
    del raw["architecture"]["hidden"]
    with pytest.raises(DataError, match="the architecture lacks hidden"):
        propreg.load_model(changed(saved, tmp_path / "model.npz", settings=json.dumps(raw)))
