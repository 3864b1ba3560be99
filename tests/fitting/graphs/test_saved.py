"""Models of graphs in a file: whole, or refused in one sentence."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import propreg
from fitting.graphs.lists import listed
from propreg.data.errors import DataError
from propreg.data.formats.safetensors import read_safetensors, write_safetensors
from propreg.fitting.saved_file import content_digest

pytest.importorskip("torch_geometric")
WIDER = dict.fromkeys(("nodes.mean", "nodes.deviation"), np.ones(4, np.float32))
SMALL: dict[str, Any] = {"hidden": 8, "layers": 2, "max_epochs": 2, "splits": 1, "seeds": 1, "mu": [0.3]}


@pytest.mark.parametrize("classes", [0, 3])
@pytest.mark.parametrize("virtual_node", [False, True])
def test_a_saved_model_predicts_the_same(tmp_path: Path, classes: int, virtual_node: bool) -> None:
    graphs, path = listed(classes=classes), tmp_path / "model.safetensors"
    result = propreg.fit_graphs(graphs, **SMALL, virtual_node=virtual_node, preset="reference")
    result.save(path)
    np.testing.assert_array_equal(propreg.load_graph_model(path).predict(graphs), result.predict())
    first = path.read_bytes()
    propreg.load_graph_model(path).save(path)
    assert path.read_bytes() == first


def test_graphs_without_targets_and_alone_are_predicted_as_in_the_list() -> None:
    graphs = listed()
    result = propreg.fit_graphs(graphs, **SMALL)
    expected = result.predict()
    for place in (0, 1, 7):
        graph = graphs[place].clone()
        del graph.y
        if not graph.edge_index.numel():
            del graph.edge_attr
        np.testing.assert_allclose(result.predict([graph])[0], expected[place], rtol=1e-4)


def test_other_features_are_refused() -> None:
    result = propreg.fit_graphs(listed(), **SMALL)
    with pytest.raises(DataError, match="x has 4 columns, but the model was trained with 3"):
        result.predict(listed(columns=(4, 2)))
    with pytest.raises(DataError, match="edge_attr has 0 columns, but the model was trained with 2"):
        result.predict(listed(columns=(3, 0)))
    with pytest.raises(ValueError, match="predicts numbers, which have no probability"):
        result.predict_proba()


def test_damage_is_named(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    propreg.fit_graphs(listed(), **SMALL).save(path)
    tensors, texts = read_safetensors(path)
    for change, sentence in (
        ({"sha256": "0" * 64}, "does not match its SHA-256"),
        ({"format": "other"}, "is not a model of graphs"),
    ):
        write_safetensors(path, tensors, texts | change)
        with pytest.raises(DataError, match=sentence):
            propreg.load_graph_model(path)
    for settings, found, sentence in (
        ("{}", tensors, "its settings cannot be used"),
        (texts["settings"], {**tensors, "head.bias": np.full(1, np.nan, np.float32)}, "head.bias is missing or not"),
        (texts["settings"], {**tensors, **WIDER}, "it scales 4 of 3 columns"),
        (texts["settings"].replace('"layers": 2', '"layers": 99999999'), tensors, "its settings cannot be used"),
        (texts["settings"].replace('"nodes": 3', '"nodes": "3"'), tensors, "its settings cannot be used"),
        (texts["settings"].replace('"kind": "regression"', '"kind": "poetry"'), tensors, "its settings cannot be used"),
        (texts["settings"], {n: t for n, t in tensors.items() if n != "head.bias"}, "head.bias is missing or not"),
    ):
        about = {"format": texts["format"], "settings": settings}
        write_safetensors(path, found, about | {"sha256": content_digest(about, found)})
        with pytest.raises(DataError, match=sentence):
            propreg.load_graph_model(path)


def test_a_model_of_graphs_is_no_model_of_nodes(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    propreg.fit_graphs(listed(), **SMALL).save(path)
    with pytest.raises(DataError, match=r"is a model of whole graphs: read it with propreg\.load_graph_model"):
        propreg.load_model(path)


def test_many_graphs_are_predicted_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    result = propreg.fit_graphs(listed(), **SMALL)
    whole = result.predict()
    monkeypatch.setattr("propreg.fitting.graphs.model.TOGETHER", 7)
    np.testing.assert_allclose(result.predict(), whole, rtol=1e-4)


def test_torchs_random_state_is_left_as_it_was() -> None:
    before = torch.get_rng_state()
    propreg.fit_graphs(listed(), **SMALL)
    assert torch.equal(before, torch.get_rng_state())
