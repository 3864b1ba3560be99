"""Modules with any forward: edge attributes, edge weights, a Data; in training, after it, and from a file."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

import propreg
from fitting.own_modules import GRAPH, QUICK, Base
from propreg.data.errors import DataError
from propreg.data.own.pyg import to_data
from propreg.engine.models.module_inputs import Inputs
from propreg.fitting.fit import fit

E = GRAPH.edge_index.shape[1]
RNG = np.random.default_rng(0)
WEIGHT = np.asarray(RNG.uniform(0.1, 1, E), np.float32)
WIDE = replace(GRAPH, x=np.asarray(GRAPH.x) * 100 + 7)


def data(**more: Any) -> Any:
    found = to_data(WIDE)
    for name, value in more.items():
        found[name] = value
    return found


class Attributes(Base):
    """Neighbors count as their edge's attributes say."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(2, 1)

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor) -> Tensor:  # type: ignore[override]
        sent = self.a(x)[edge_index[0]] * self.gate(edge_attr).sigmoid()
        out: Tensor = self.b(torch.zeros(len(x), 6).index_add(0, edge_index[1], sent).relu())
        return out


class Reordered(Attributes):
    def forward(self, edge_attr: Tensor, x: Tensor, edge_index: Tensor) -> Tensor:  # type: ignore[override]
        return super().forward(x, edge_index, edge_attr)


class Whole(Attributes):
    def forward(self, data: Any) -> Tensor:  # type: ignore[override]
        return super().forward(data.x, data.edge_index, data.edge_attr)


class Weighted(Base):
    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        sent = self.a(x)[edge_index[0]]
        sent = sent if edge_weight is None else sent * edge_weight.unsqueeze(1)
        out: Tensor = self.b(torch.zeros(len(x), 6).index_add(0, edge_index[1], sent).relu())
        return out


class Features(Base):
    def forward(self, x: Tensor) -> Tensor:  # type: ignore[override]
        out: Tensor = self.b(self.a(x).relu())
        return out


ATTR = torch.from_numpy(RNG.standard_normal((E, 2)))  # float64, as people have it


@pytest.mark.parametrize(
    ("factory", "inputs"),
    [
        (Attributes, ("x", "edge_index", "edge_attr")),
        (Reordered, ("edge_attr", "x", "edge_index")),
        (Whole, None),
        (Whole, ("data",)),
    ],
)
def test_edge_attributes_reach_the_model(factory: Any, inputs: Any, tmp_path: Path) -> None:
    given = data(edge_attr=ATTR)
    result = fit(given, factory, inputs=inputs, **QUICK)
    expected = fit(given, Attributes, inputs=("x", "edge_index", "edge_attr"), **QUICK)
    np.testing.assert_allclose(result.test, expected.test)
    np.testing.assert_allclose(result.predict_proba(), expected.predict_proba(), atol=1e-5)
    np.testing.assert_allclose(result.predict_proba(given), expected.predict_proba(), atol=1e-5)
    assert (
        result.predict_proba().argmax(1).tolist()
        == result.predicted[result.mu][0, result.best_run.replica.seed].tolist()
    )
    raw = data(edge_attr=ATTR.float())
    tensors = {"x": raw.x, "edge_index": raw.edge_index, "edge_attr": raw.edge_attr}
    call = (raw,) if factory is Whole else tuple(tensors[name] for name in inputs)
    result.save(tmp_path / "own.safetensors")
    read = propreg.load_model(tmp_path / "own.safetensors", factory())
    for module in (result.model, read):
        np.testing.assert_allclose(module(*call).softmax(-1).detach(), expected.predict_proba(), atol=1e-5)
    assert float(raw.x.max()) > 100, "the data is left as it is"
    other = data(edge_attr=ATTR.flip(0))
    assert not np.allclose(result.predict_proba(other), expected.predict_proba())


def test_edge_weights_reach_a_model_that_takes_them() -> None:
    weighted, plain = data(edge_weight=torch.from_numpy(WEIGHT)), data()
    result = fit(weighted, Weighted, **QUICK)  # without a warning, which would be an error
    assert result.inputs == Inputs(keywords=("edge_weight",))
    module = result.model
    direct = module(weighted.x, weighted.edge_index, edge_weight=weighted.edge_weight).softmax(-1).detach()
    np.testing.assert_allclose(result.predict_proba(), direct, atol=1e-5)
    ones = data(edge_weight=torch.ones(E))
    np.testing.assert_allclose(result.predict_proba(plain), result.predict_proba(ones), atol=1e-5)
    assert fit(plain, Weighted, **QUICK).inputs == Inputs()
    with pytest.warns(UserWarning, match="but a model of your own, forward"):
        fit(replace(GRAPH, edge_weight=WEIGHT), Base, **QUICK)


def test_a_forward_of_features_alone() -> None:
    result = fit(data(), Features, **QUICK)
    assert result.inputs == Inputs(("x",))
    np.testing.assert_allclose(result.model(data().x).softmax(-1).detach(), result.predict_proba(), atol=1e-5)


def test_resuming_knows_the_further_tensors(tmp_path: Path) -> None:
    names = ("x", "edge_index", "edge_attr")
    first = fit(data(edge_attr=ATTR), Attributes, inputs=names, resume=tmp_path, **QUICK)
    again = fit(data(edge_attr=ATTR), Attributes, inputs=names, resume=tmp_path, **QUICK)
    other = fit(data(edge_attr=ATTR + 1), Attributes, inputs=names, resume=tmp_path, **QUICK)
    assert first.kept == again.kept
    assert first.kept != other.kept
    np.testing.assert_array_equal(first.val, again.val)


def test_what_cannot_be_given() -> None:
    with pytest.raises(DataError, match="inputs names 'edge_attr', but the graph has only 'edge_index', 'x': put the"):
        fit(data(), Attributes, inputs=("x", "edge_index", "edge_attr"), **QUICK)
    with pytest.raises(TypeError, match="inputs must be names of tensors"):
        fit(data(), Attributes, inputs="x", **QUICK)
    with pytest.raises(ValueError, match="inputs is for a model of your own"):
        fit(data(), "gcn", inputs=("x",), **QUICK)
    result = fit(data(edge_attr=ATTR), Attributes, inputs=("x", "edge_index", "edge_attr"), **QUICK)
    with pytest.raises(DataError, match="inputs names 'edge_attr'"):
        result.predict(Data(x=data().x, edge_index=data().edge_index))
