"""Models as safetensors files: what :mod:`fitting.test_saved` asks of npz files, and that both hold the same."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import propreg
from counting import Inputs
from damaged_files import check_damaged, damaged
from fitting.own_modules import DATA, EVERY, GRAPH, QUICK, Lazy, Scaled, Unregistered
from propreg.data.errors import DataError
from propreg.data.formats.safetensors import read_safetensors, write_safetensors
from propreg.engine import Model
from propreg.fitting.checkpoint import read_settings
from propreg.fitting.fit import fit

MODELS: list[Any] = ["gcn", "gat", "mlp", "appnp", Model("gcn", hidden=5, layers=4), Model("gat", heads=2, out_heads=3)]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("saved") / "model.safetensors"
    fit(GRAPH, "gcn", scale="standard", **QUICK).save(path)
    return path


@pytest.mark.parametrize("model", MODELS)
def test_both_formats_give_back_the_model(model: Any, tmp_path: Path) -> None:
    result = fit(GRAPH, model, **QUICK)
    expected = result.model(DATA.x, DATA.edge_index)
    for name in ("model.safetensors", "model", "model.npz"):
        result.save(tmp_path / name)
        assert torch.equal(propreg.load_model(tmp_path / name)(DATA.x, DATA.edge_index), expected)
    assert (tmp_path / "model").read_bytes() == (tmp_path / "model.safetensors").read_bytes()
    assert (tmp_path / "model.npz").read_bytes()[:2] == b"PK"
    assert read_settings(tmp_path / "model") == read_settings(tmp_path / "model.npz")


@pytest.mark.parametrize("factory", [factory for factory in EVERY if factory is not Unregistered])
def test_both_formats_give_back_a_state(factory: Any, tmp_path: Path) -> None:
    result = fit(GRAPH, factory, **QUICK)
    expected = result.model(DATA.x, DATA.edge_index)
    for name in ("model.safetensors", "model.npz"):
        result.save(tmp_path / name)
        new = factory()
        if factory is Lazy:
            new(DATA.x, DATA.edge_index)
        assert torch.equal(propreg.load_model(tmp_path / name, new)(DATA.x, DATA.edge_index), expected)


def test_the_safetensors_package_loads_the_state_dict(saved: Path) -> None:
    package = pytest.importorskip("safetensors.torch")
    ours, theirs = propreg.load_model(saved).state_dict(), package.load_file(saved)
    assert theirs.keys() == ours.keys()
    assert all(torch.equal(theirs[name], ours[name]) for name in ours)


def test_the_tensors_are_the_state_dict_and_the_metadata_the_settings(saved: Path) -> None:
    arrays, texts = read_safetensors(saved)
    state = propreg.load_model(saved).state_dict()
    assert arrays.keys() == state.keys()
    assert all((arrays[name] == t.numpy()).all() for name, t in state.items())
    assert texts.keys() == {"format", "settings", "sha256"}
    assert texts["format"] == "propreg-model-2"


def test_a_parameter_may_have_any_name(tmp_path: Path) -> None:
    class Named(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.sha256 = torch.nn.Parameter(torch.rand(8, 3))
            self.format = torch.nn.Parameter(torch.rand(3))

        def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:  # noqa: ARG002
            return x @ self.sha256 + self.format

    result = fit(GRAPH, Named, **QUICK)
    result.save(tmp_path / "model.safetensors")
    read = propreg.load_model(tmp_path / "model.safetensors", Named())
    assert torch.equal(read(DATA.x, DATA.edge_index), result.model(DATA.x, DATA.edge_index))
    arrays, texts = read_safetensors(tmp_path / "model.safetensors")
    write_safetensors(tmp_path / "model.safetensors", arrays | {"sha256": arrays["sha256"] + 1}, texts)
    with pytest.raises(DataError, match="does not match its SHA-256"):
        propreg.load_model(tmp_path / "model.safetensors", Named())


def test_damaged_files_are_one_sentence_or_the_same_model(saved: Path, tmp_path: Path, inputs: Inputs) -> None:
    content, path = saved.read_bytes(), tmp_path / "model.safetensors"
    expected = propreg.load_model(saved)(DATA.x, DATA.edge_index)

    def same() -> bool:
        return torch.equal(propreg.load_model(path)(DATA.x, DATA.edge_index), expected)

    check_damaged(path, damaged(content, 400, seed=5), same, 300)
    inputs(400)


@pytest.mark.parametrize(
    ("texts", "says"),
    [
        ({"format": "propreg-model-3"}, "newer than 'propreg-model-2': update propreg"),
        ({"format": "propreg-graph-1"}, "is not a model that propreg saved"),
        ({"format": "propreg-model-1"}, "is not a model that propreg saved"),
        ({"format": None}, "is not a model that propreg saved"),
        ({"settings": None}, "is not a model that propreg saved"),
        ({"sha256": None}, "is not a model that propreg saved"),
        ({"settings": "{}"}, "does not match its SHA-256"),
        ({"sha256": "0" * 64}, "does not match its SHA-256"),
    ],
)
def test_texts_that_cannot_be(saved: Path, tmp_path: Path, texts: dict[str, Any], says: str) -> None:
    arrays, about = read_safetensors(saved)
    changed = {name: text for name, text in (about | texts).items() if text is not None}
    write_safetensors(tmp_path / "model", arrays, changed)
    with pytest.raises(DataError, match=says):
        propreg.load_model(tmp_path / "model")


def test_a_safetensors_file_of_someone_elses(tmp_path: Path) -> None:
    write_safetensors(tmp_path / "other.safetensors", {"w": np.eye(2)}, {"format": "pt"})
    with pytest.raises(DataError, match="is not a model that propreg saved"):
        propreg.load_model(tmp_path / "other.safetensors")


def test_a_state_needs_its_module_and_a_model_none(saved: Path, tmp_path: Path) -> None:
    fit(GRAPH, Scaled, **QUICK).save(tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match="pass a new module"):
        propreg.load_model(tmp_path / "model.safetensors")
    with pytest.raises(DataError, match="holds the state of a user's module, which has no settings"):
        read_settings(tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match="leave module out"):
        propreg.load_model(saved, Scaled())
