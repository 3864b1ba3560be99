"""Features are scaled in the training and by the model that comes back, which takes them as the graph has them."""

import copy
import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import propreg
from communities import communities
from fitting.own_modules import DATA, GRAPH, QUICK, Base
from propreg.data.features import from_dense
from propreg.data.graph import Graph
from propreg.data.own.pyg import to_data
from propreg.data.scaling import scaling_of
from propreg.fitting.fit import fit
from propreg.running.plan import load_source

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


@pytest.mark.filterwarnings("ignore:features are as large as")
def test_one_column_of_40000_is_no_trouble() -> None:
    """Left as it is, it drowns the others."""
    graph = communities(nodes=300, same=0.95)
    wide = replace(graph, x=np.hstack([np.asarray(graph.x), 40_000 + 9_000 * np.sin(np.arange(300))[:, None]]))
    wide = replace(wide, x=wide.x.astype(np.float32))  # type: ignore[union-attr]
    options: dict[str, Any] = {"splits": 2, "seeds": 1, "max_epochs": 60, "progress": False}
    x = np.asarray(wide.x, np.float64)
    x = ((x - x.mean(0)) / x.std(0)).astype(np.float32)
    default = fit(wide, "gcn", 0.2, **options).test.mean()
    by_hand, raw = (fit(each, "gcn", 0.2, scale="none", **options).test.mean() for each in (replace(wide, x=x), wide))
    assert default == pytest.approx(by_hand, abs=0.02)
    assert default > raw + 0.2


def test_the_saved_model_knows_names(tmp_path: Path) -> None:
    from propreg.fitting.checkpoint import read_settings

    names = tuple(f"f{i}" for i in range(8))
    fit(replace(WIDE, class_names=("a", "b", "c"), feature_names=names), **QUICK).save(tmp_path / "model")
    settings = read_settings(tmp_path / "model")
    assert (settings.class_names, settings.feature_names) == (["a", "b", "c"], list(names))
    assert (settings.scale, settings.versions) == (
        "standard",
        {"propreg": propreg.__version__, "torch": torch.__version__},
    )


def test_the_run_on_the_digits_takes_pixels() -> None:
    source = load_source("digits", splits=1)
    result = fit(source.graph, "gcn", 0.2, scale=source.scale, splits=source.splits, seeds=1, max_epochs=2)
    data = to_data(source.graph)
    assert float(data.x.max()) == 16

    class Sixteenth(nn.Module):
        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            out: Tensor = result.model(16 * x, edge_index)
            return out

    x = data.x / 16
    assert torch.equal(Sixteenth()(x, data.edge_index), result.model(data.x, data.edge_index))
    first = next(module for module in result.model.modules() if type(module).__name__ == "Standardize")
    assert torch.equal(first(data.x), x)
