"""Models of the user's own: their state goes to a file and comes back in a new module, or one sentence says why not."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import propreg
from damaged_files import check_damaged, damaged_npz
from fitting.own_modules import DATA, EVERY, GRAPH, QUICK, Base, Frozen, Lazy, Scaled, Tied, Unregistered
from propreg.data.errors import DataError
from propreg.data.formats.npz import read_npz, write_npz
from propreg.data.own.npz import members_digest
from propreg.data.scaling import Scaling
from propreg.fitting.checkpoint import About, read_settings, write_state
from propreg.fitting.fit import fit

KEPT = [factory for factory in EVERY if factory is not Unregistered]  # of which no file knows


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("saved") / "model.npz"
    fit(GRAPH, Scaled, **QUICK).save(path)
    return path


@pytest.mark.parametrize("factory", KEPT)
def test_a_round_trip_gives_equal_logits(factory: Any, tmp_path: Path) -> None:
    result = fit(GRAPH, factory, **QUICK)
    result.save(tmp_path / "model.npz")
    torch.manual_seed(99)
    new = factory()
    if factory is Lazy:
        new(DATA.x, DATA.edge_index)
    read = propreg.load_model(tmp_path / "model.npz", new)
    assert read is new
    assert not read.training
    assert torch.equal(read(DATA.x, DATA.edge_index), result.model(DATA.x, DATA.edge_index))
    read.train()(DATA.x, DATA.edge_index).sum().backward()


def test_equal_states_give_equal_bytes_without_a_pickle(saved: Path, tmp_path: Path) -> None:
    fit(GRAPH, Scaled, **QUICK).save(tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == saved.read_bytes()
    arrays = np.load(saved, allow_pickle=False)
    assert {array.dtype.kind for array in arrays.values()} == {"f", "i", "U"}
    assert str(arrays["format"]) == "propreg-state-2"
    settings = json.loads(str(arrays["settings"]))
    assert settings["about"].keys() == {"method", "preset", "mu"}
    assert {"a.weight", "scale", "norm.running_mean"} < set(settings["names"])


def test_half_precision_comes_back(tmp_path: Path) -> None:
    kept = Base()
    kept.register_buffer("table", torch.rand(3).bfloat16())
    write_state(tmp_path / "model.npz", kept, About({}), Scaling())
    other = Base()
    other.register_buffer("table", torch.zeros(3).bfloat16())
    read = propreg.load_model(tmp_path / "model.npz", other)
    assert torch.equal(dict(read.named_buffers())["table"], dict(kept.named_buffers())["table"])


def test_complex_numbers_are_refused(tmp_path: Path) -> None:
    module = Base()
    module.register_buffer("phase", torch.zeros(2, dtype=torch.complex64))
    with pytest.raises(ValueError, match=r"'phase' of the model is torch.complex64, which cannot be saved"):
        write_state(tmp_path / "model.npz", module, About({}), Scaling())


def wider() -> nn.Module:
    module = Scaled()
    module.b = nn.Linear(6, 4)
    return module


def whole() -> nn.Module:
    module = Scaled()
    module.scale = torch.zeros(8, dtype=torch.int64)
    return module


@pytest.mark.parametrize(
    ("module", "error", "says"),
    [
        (None, ValueError, "holds the state of a model of your own, but not its code: pass a new module"),
        (Scaled, TypeError, r"module must be a torch.nn.Module, got <class .*>: make one"),
        (Base(), ValueError, "the file has 'norm.bias' but the module does not: make the module that was trained"),
        (Tied(), ValueError, "but the module does not: make the module that was trained"),
        (Frozen(), ValueError, "does not: make the module that was trained"),
        (wider(), ValueError, r"'b.weight' is float32 \[3, 6\] in the file but torch.float32 \[4, 6\] in the module"),
        (whole(), ValueError, r"'scale' is float32 \[8\] in the file but torch.int64 \[8\] in the module"),
        (Lazy(), ValueError, "'a.weight' of module is lazy and has no size: call the module once"),
    ],
)
def test_a_module_that_does_not_fit(saved: Path, module: Any, error: type[Exception], says: str) -> None:
    before = None if not isinstance(module, Base) or isinstance(module, Lazy) else module.a.weight.clone()
    with pytest.raises(error, match=says) as caught:
        propreg.load_model(saved, module)
    assert "\n" not in str(caught.value)
    if before is not None:
        assert torch.equal(module.a.weight, before), "it is left as it was"


def test_a_model_of_ours_needs_no_module(tmp_path: Path) -> None:
    fit(GRAPH, "mlp", **QUICK).save(tmp_path / "model.npz")
    with pytest.raises(ValueError, match="holds a mlp, which is built from it: leave module out"):
        propreg.load_model(tmp_path / "model.npz", Base())


def test_it_has_no_settings_to_build_from(saved: Path) -> None:
    with pytest.raises(DataError, match="holds the state of a user's module, which has no settings"):
        read_settings(saved)


@pytest.mark.parametrize(
    ("members", "says"),
    [
        ({"format": "propreg-state-3"}, "newer than 'propreg-state-2': update propreg"),
        ({"settings": "{"}, "its settings cannot be used: save the model again"),
        ({"settings": '{"names": 3}'}, "its settings cannot be used"),
        ({"settings": '{"names": ["a"]}'}, "its settings cannot be used"),
        ({"settings": "[]"}, "its settings cannot be used"),
    ],
)
def test_members_that_cannot_be(saved: Path, tmp_path: Path, members: dict[str, str], says: str) -> None:
    arrays = read_npz(saved) | {name: np.array(text) for name, text in members.items()}
    arrays.pop("sha256")
    write_npz(tmp_path / "model.npz", {**arrays, "sha256": np.array(members_digest(arrays))})
    with pytest.raises(DataError, match=says):
        propreg.load_model(tmp_path / "model.npz", Scaled())


def test_damaged_files_are_one_sentence_or_the_same_state(saved: Path, tmp_path: Path) -> None:
    content, path = saved.read_bytes(), tmp_path / "model.npz"
    expected = propreg.load_model(saved, Scaled())(DATA.x, DATA.edge_index)

    def same() -> bool:
        return torch.equal(propreg.load_model(path, Scaled())(DATA.x, DATA.edge_index), expected)

    check_damaged(path, damaged_npz(content, 150, seed=5), same, 100)
