"""Predictions: of all nodes, of nodes without a label, of new graphs; and the table for people."""

import csv
import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import propreg
from communities import communities
from fitting.own_modules import QUICK, SPLIT, Base
from propreg.data.errors import DataError
from propreg.data.features import from_dense
from propreg.data.graph import Graph
from propreg.data.own.npz import write_graph
from propreg.data.own.pyg import to_data
from propreg.fitting.checkpoint import load_trained
from propreg.fitting.fit import fit
from propreg.fitting.predictions import COLUMNS, agreement, predictions_csv

NAMES = tuple(f"f{i}" for i in range(8))
KNOWN = replace(communities(), split=SPLIT, class_names=("ant", "bee", "cat"), feature_names=NAMES)
UNKNOWN = ~(SPLIT.train | SPLIT.val | SPLIT.test)
TEST = SPLIT.test & (np.arange(120) % 2 == 0)
GRAPH = replace(
    KNOWN,
    y=np.where(SPLIT.train | SPLIT.val | TEST, KNOWN.y, -1),
    split=replace(SPLIT, test=TEST),
    node_ids=tuple(f"node, {i}" for i in range(120)),
)
NEW = replace(communities(seed=5), feature_names=NAMES)


@pytest.mark.parametrize("model", ["gcn", "mlp", "gat", Base])
def test_every_node_is_predicted_as_by_the_module(model: Any) -> None:
    result = fit(GRAPH, model, **QUICK)
    for given, graph in ((None, GRAPH), (NEW, NEW), (to_data(NEW), NEW)):
        data = to_data(graph)
        expected = result.model(data.x, data.edge_index).softmax(-1).detach().numpy()
        np.testing.assert_allclose(result.predict_proba(given), expected, atol=1e-5)
        assert (result.predict(given) == expected.argmax(axis=1)).all()
    assert (result.predict()[TEST] == GRAPH.y[TEST]).mean() == pytest.approx(result.best_run.test)


def test_a_new_graph_needs_no_labels(tmp_path: Path) -> None:
    result, data = fit(GRAPH, **QUICK), to_data(NEW)
    expected = result.predict(NEW)
    assert (result.predict(Data(x=data.x, edge_index=data.edge_index)) == expected).all()
    np.savez(tmp_path / "new.npz", x=np.asarray(NEW.x), edge_index=NEW.edge_index)
    assert (result.predict(tmp_path / "new.npz") == expected).all()
    rows = [",".join(["id", *NAMES])]
    rows += [",".join([str(i), *map(repr, x)]) for i, x in enumerate(np.asarray(NEW.x).tolist())]
    (tmp_path / "nodes.csv").write_text("\n".join(rows))
    (tmp_path / "edges.csv").write_text("\n".join(["source,target", *(f"{a},{b}" for a, b in NEW.edge_index.T)]))
    assert (result.predict(str(tmp_path)) == expected).all()
    with pytest.raises(DataError, match="has no column 'label'"):
        propreg.load_graph(tmp_path)


def test_columns_of_other_order_are_found_by_name_and_missing_ones_named() -> None:
    result = fit(GRAPH, **QUICK)
    order = np.random.default_rng(0).permutation(8)
    x, names = np.asarray(NEW.x)[:, order], tuple(NAMES[i] for i in order)
    for features in (x, from_dense(x)):
        np.testing.assert_allclose(
            result.predict_proba(replace(NEW, x=features, feature_names=names)), result.predict_proba(NEW), atol=1e-5
        )
    with pytest.raises(DataError, match="has no feature 'f7', which the model was trained with"):
        result.predict(replace(NEW, x=np.asarray(NEW.x)[:, :7], feature_names=NAMES[:7]))
    with pytest.raises(DataError, match="has 7 features, but the model was trained with 8"):
        result.predict(replace(NEW, x=np.asarray(NEW.x)[:, :7], feature_names=()))


def test_a_model_of_a_weighted_graph_takes_one_without_weights_as_weights_of_1() -> None:
    weight = np.linspace(0.1, 2, GRAPH.edge_index.shape[1], dtype=np.float32)
    result = fit(replace(GRAPH, edge_weight=weight), **QUICK)
    ones = replace(NEW, edge_weight=np.ones(NEW.edge_index.shape[1], np.float32))
    np.testing.assert_allclose(result.predict_proba(NEW), result.predict_proba(ones), atol=1e-6)


def test_predicting_leaves_the_module_as_it_is() -> None:
    result = fit(GRAPH, **QUICK)
    expected = result.predict_proba(NEW)
    result.model.train()
    with torch.inference_mode():
        np.testing.assert_array_equal(result.predict_proba(NEW), expected)
    assert result.model.training


@pytest.mark.parametrize("kind", ["model.safetensors", "model.npz"])
def test_a_saved_model_predicts_alike_and_knows_the_classes(tmp_path: Path, kind: str) -> None:
    result = fit(GRAPH, **QUICK)
    result.save(tmp_path / kind)
    trained = load_trained(tmp_path / kind)
    np.testing.assert_array_equal(trained.probabilities(NEW), result.predict_proba(NEW))
    assert list(trained.class_names) == ["ant", "bee", "cat"]
    write_graph(tmp_path / "new.npz", NEW)
    np.testing.assert_array_equal(trained.probabilities(str(tmp_path / "new.npz")), result.predict_proba(NEW))


def read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_the_table_says_what_people_ask() -> None:
    result = fit(GRAPH, **QUICK)
    p, rows = result.predict_proba(), read(result.predictions())
    assert tuple(rows[0]) == COLUMNS
    assert [row["id"] for row in rows] == list(GRAPH.node_ids)
    best = p.argmax(axis=1)
    for node, row in enumerate(rows):
        label = int(GRAPH.y[node])
        assert row["label"] == ("" if label < 0 else GRAPH.class_names[label])
        parts = [part for part in ("train", "val", "test") if getattr(GRAPH.split, part)[node]]
        assert row["split"] == "".join(parts)
        assert row["predicted"] == GRAPH.class_names[best[node]]
        assert float(row["probability"]) == pytest.approx(p[node].max(), abs=1e-4)
        assert row["runner_up"] == GRAPH.class_names[np.argsort(p[node])[-2]]
        neighbors = GRAPH.edge_index[0, GRAPH.edge_index[1] == node]
        expected = f"{(best[neighbors] == best[node]).mean():.4f}" if len(neighbors) else ""
        assert row["agreeing_neighbors"] == expected


def test_the_split_is_that_of_the_run_that_predicts() -> None:
    options = {**QUICK, "splits": 3, "seeds": 1, "train_per_class": 5, "val_per_class": 5}
    result = fit(replace(KNOWN, split=None), **options)
    used = result.splits[result.best_run.replica.split]
    assert [row["split"] == "train" for row in read(result.predictions())] == used.train.tolist()


def test_a_graph_without_names_has_numbers() -> None:
    graph = Graph("", np.array([[0, 1], [1, 0]]), np.eye(2, dtype=np.float32), np.array([-1, 1]))
    rows = read(predictions_csv(graph, np.array([[0.25, 0.75], [0.5, 0.5]])))
    assert [row["predicted"] for row in rows] == ["1", "0"]
    assert [(row["id"], row["label"], row["runner_up"]) for row in rows] == [("0", "", "0"), ("1", "1", "1")]
    assert np.isnan(agreement(np.zeros((2, 0), np.int64), np.array([3]))).all()
