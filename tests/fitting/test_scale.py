"""Features are scaled in the training and by the model that comes back, which takes them as the graph has them."""

import copy
import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import propreg
from fitting.own_modules import DATA, GRAPH, QUICK, Base
from propreg.data.features import from_dense
from propreg.data.graph import Graph
from propreg.data.own.pyg import to_data
from propreg.data.scaling import scaling_of
from propreg.fitting.fit import fit

WIDE = replace(GRAPH, x=np.asarray(GRAPH.x) * np.array([40_000, *[1] * 7], np.float32) + np.float32(5))
WORDS = replace(GRAPH, x=(np.asarray(GRAPH.x) > 1.2).astype(np.float32))


@pytest.mark.parametrize("model", ["gcn", "mlp", "gat", "appnp", Base])
@pytest.mark.parametrize(("graph", "kind"), [(WIDE, "standard"), (WORDS, "rows")])
def test_scaling_is_what_scaling_by_hand_is(model: Any, graph: Graph, kind: str) -> None:
    result = fit(graph, model, **QUICK)
    assert result.scaling.kind == kind
    x = scaling_of(graph.x)(graph.x)
    by_hand = fit(replace(graph, x=x), model, scale="none", **QUICK)
    np.testing.assert_allclose(result.val, by_hand.val)
    np.testing.assert_allclose(result.test, by_hand.test)
    raw, scaled = to_data(graph).x, to_data(replace(graph, x=x)).x
    expected = by_hand.model(scaled, DATA.edge_index)
    assert torch.allclose(result.model(raw, DATA.edge_index), expected, atol=1e-5)


@pytest.mark.parametrize("graph", [WIDE, WORDS])
@pytest.mark.parametrize("model", ["gcn", Base])
def test_a_saved_model_takes_raw_features(graph: Graph, model: Any, tmp_path: Path) -> None:
    result, x = fit(graph, model, **QUICK), to_data(graph).x
    expected = result.model(x, DATA.edge_index)
    for name in ("model.safetensors", "model.npz"):
        result.save(tmp_path / name)
        new = Base() if model is Base else None
        for _ in range(2):  # into the same module twice
            read = propreg.load_model(tmp_path / name, new)
            assert torch.equal(read(x, DATA.edge_index), expected)


@pytest.mark.parametrize("graph", [WIDE, WORDS])
def test_sparse_features_are_scaled_alike(graph: Graph) -> None:
    sparse = replace(graph, x=from_dense(np.asarray(graph.x)))
    result, alike = fit(graph, "gcn", **QUICK), fit(sparse, "gcn", **QUICK)
    np.testing.assert_allclose(alike.val, result.val, atol=0.05)
    z = alike.model(to_data(sparse, features="sparse").x, DATA.edge_index)
    assert torch.allclose(z, alike.model(to_data(graph).x, DATA.edge_index), atol=1e-5)


def test_a_copy_of_a_module_of_ones_own_scales_once() -> None:
    result, x = fit(WIDE, Base, **QUICK), to_data(WIDE).x
    expected = result.model(x, DATA.edge_index)
    assert torch.equal(copy.deepcopy(result.model)(x, DATA.edge_index), expected)
    torch.save(result.model, file := io.BytesIO())
    file.seek(0)
    assert torch.equal(torch.load(file, weights_only=False)(x, DATA.edge_index), expected)
    assert torch.equal(result.model(x=x, edge_index=DATA.edge_index), expected)


@pytest.mark.parametrize("scale", ["auto", "standard", "rows", "none"])
@pytest.mark.filterwarnings("ignore:features are as large as")
def test_load_dataset_gives_a_loop_of_ones_own_what_fit_trains_on(scale: Any) -> None:
    raw = propreg.load_dataset("digits", split=0)
    result = propreg.fit(raw, "mlp", 0.5, scale=scale, seeds=1, max_epochs=1, lr=0.001, progress=False)
    scaled = propreg.load_dataset("digits", scale=scale, split=0)
    np.testing.assert_array_equal(scaled.x, result.scaling(raw.x.numpy()))
    sparse = propreg.load_dataset("digits", scale=scale, features="sparse", split=0).x
    np.testing.assert_allclose(sparse.to_dense(), scaled.x, atol=1e-6)
    assert torch.equal(scaled.x, raw.x) == (scale == "none")


def test_load_dataset_scales_once() -> None:
    with pytest.raises(ValueError, match="normalize_features and scale both change x: pass one of them"):
        propreg.load_dataset("digits", normalize_features=True, scale="rows")
    with pytest.raises(ValueError, match=r"scale must be one of .*Did you mean 'rows'"):
        propreg.load_dataset("digits", scale="row")  # type: ignore[arg-type]
