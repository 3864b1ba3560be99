"""Several labels for each node, and numbers: the same loop as by hand, scores, files, and what is refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from sklearn import metrics
from torch import nn
from torch_geometric.data import Data

import propreg
from communities import communities
from fitting.own_modules import SPLIT
from propreg import preg
from propreg.data.errors import DataError
from propreg.fitting.fit import fit
from propreg.fitting.scoring import OF_TASK

GRAPH = communities()
RNG = np.random.default_rng(0)
LABELS = np.stack([GRAPH.y == 0, GRAPH.y != 1, (GRAPH.y == 2) ^ (RNG.random(120) < 0.1)], axis=1).astype(np.float32)
LABELS[::11, 1] = np.nan
NUMBERS = (GRAPH.y - 1 + 0.3 * RNG.standard_normal(120)).astype(np.float32)
NUMBERS[5] = np.nan
QUICK: dict[str, Any] = {"mu": [0.3], "seeds": 2, "max_epochs": 15, "progress": False}


def data(y: Any, *, masks: bool = True) -> Any:
    found = Data(
        x=torch.from_numpy(np.asarray(GRAPH.x)), edge_index=torch.from_numpy(GRAPH.edge_index), y=torch.from_numpy(y)
    )
    if masks:
        known = torch.from_numpy(~np.isnan(y.reshape(120, -1)).all(axis=1))
        for part in ("train", "val", "test"):
            found[f"{part}_mask"] = torch.from_numpy(getattr(SPLIT, part)) & known
    return found


def module(outputs: int) -> Any:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = nn.Linear(8, outputs)

        def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
            h = self.a(x)
            out: torch.Tensor = h.index_add(0, edge_index[1], h[edge_index[0]])
            return out

    return Net


@pytest.mark.parametrize(
    ("task", "y", "phi"), [("multilabel", LABELS, "bernoulli"), ("regression", NUMBERS, "squared_error")]
)
def test_a_run_is_that_of_a_loop_by_hand(task: Any, y: Any, phi: Any) -> None:
    outputs = y.reshape(120, -1).shape[1]
    given = data(y)
    result = fit(given, module(outputs), task=task, scale="none", **QUICK)
    wanted = given.y.view(120, -1)[given.train_mask]
    known = ~wanted.isnan()
    if task == "regression":  # standardized on the training nodes
        numbers = wanted[known]
        wanted = (wanted - numbers.mean()) / numbers.std(correction=0)
    with torch.random.fork_rng(devices=[]):
        for run in result.runs:
            torch.manual_seed(run.replica.seed)
            net = module(outputs)()
            adam = torch.optim.Adam(net.parameters(), lr=0.01, weight_decay=5e-4)
            losses = []
            for _ in range(15):
                z = net(given.x, given.edge_index)
                mine = z[given.train_mask][known]
                if task == "multilabel":
                    loss = F.binary_cross_entropy_with_logits(mine, wanted[known])
                else:
                    loss = F.mse_loss(mine, wanted[known])
                loss = loss + run.replica.strength * preg(z, given.edge_index, phi=phi)
                adam.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                adam.step()
                losses.append(loss.item())
            np.testing.assert_allclose(run.history["loss"], losses[: len(run.history["loss"])], rtol=1e-4)


@pytest.mark.parametrize("model", ["gcn", "mlp", "gat", "appnp", "own"])
def test_labels_are_scored_predicted_and_saved(model: str, tmp_path: Path) -> None:
    given = data(LABELS)
    result = fit(given, module(3) if model == "own" else model, task="multilabel", **QUICK)
    assert result.judging.what == "test ROC-AUC"
    p = result.predict_proba()
    assert p.shape == (120, 3)
    assert ((p > 0) & (p < 1)).all()
    best = result.best_run
    test = np.asarray(given.test_mask)
    theirs = []
    for label in range(3):
        known = test & ~np.isnan(LABELS[:, label])
        theirs.append(metrics.roc_auc_score(LABELS[known, label], p[known, label]))
    assert result.test[result.mus.index(result.mu), 0, best.replica.seed] == pytest.approx(np.mean(theirs), abs=1e-6)
    assert (result.predict() == (p >= 0.5)).all()
    assert (result.predict(Data(x=given.x, edge_index=given.edge_index)) == result.predict()).all()
    assert (result.predict(given) == result.predict()).all()
    result.save(tmp_path / "model")
    read = propreg.load_model(tmp_path / "model", module(3)() if model == "own" else None)
    np.testing.assert_allclose(read(given.x, given.edge_index).sigmoid().detach(), p, atol=1e-5)
    assert "ROC-AUC" in result.summary()


def test_numbers_are_scored_and_predicted() -> None:
    given = data(NUMBERS)
    result = fit(given, "gcn", task="regression", **{**QUICK, "max_epochs": 60})
    found = result.predict()
    assert found.shape == (120, 1)
    test = np.asarray(given.test_mask)
    best = result.test[result.mus.index(result.mu), 0, result.best_run.replica.seed]
    assert best == pytest.approx(metrics.r2_score(NUMBERS[test], found[test, 0]), abs=1e-5)
    assert best > 0.5
    lower = fit(given, "gcn", task="regression", metric="rmse", **{**QUICK, "max_epochs": 60})
    assert lower.test.max() < NUMBERS[test].std()
    assert "(lower is better)" in lower.summary()
    with pytest.raises(ValueError, match="numbers have no probabilities"):
        result.predict_proba()
    with pytest.raises(ValueError, match="the table is of classes, but the task is regression"):
        result.predictions()


def test_splits_without_classes_are_shares_of_the_known_nodes() -> None:
    result = fit(data(NUMBERS, masks=False), "mlp", task="regression", splits=3, **QUICK)
    for split in result.splits.values():
        assert [int(mask.sum()) for mask in (split.train, split.val, split.test)] == [71, 24, 24]
    folds = fit(data(LABELS, masks=False), "mlp", task="multilabel", test="cv", splits=3, **QUICK)
    assert np.sum([split.test for split in folds.splits.values()], axis=0).tolist() == [1] * 120


def test_every_score_of_a_task_is_a_number() -> None:
    kinds: list[Any] = [("multilabel", LABELS), ("regression", NUMBERS)]
    for task, y in kinds:
        for name in OF_TASK[task]:
            result = fit(data(y), "mlp", task=task, metric=name, **{**QUICK, "max_epochs": 3})
            assert np.isfinite(result.test).all(), name


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"task": "ranking"}, ValueError, "task must be one of 'classes', 'multilabel', 'regression', got 'ranking'"),
        (
            {"method": "label_smoothing"},
            ValueError,
            "method='label_smoothing' is for classes, but",
        ),
        ({"model": "grand"}, ValueError, "model='grand' is for classes, but the task is multilabel"),
        ({"model": "correct-smooth"}, ValueError, "model='correct-smooth' is for classes"),
        ({"class_weight": "balanced"}, ValueError, "class_weight is for classes"),
        ({"metric": "balanced_accuracy"}, ValueError, "metric must be one of 'roc_auc'"),
    ],
)
def test_what_is_made_for_classes_is_refused(options: dict[str, Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        fit(data(LABELS), **{"task": "multilabel", **QUICK, **options})


def test_targets_that_cannot_be() -> None:
    with pytest.raises(DataError, match="y must hold 0 and 1 for task='multilabel'"):
        fit(data(LABELS * 2), task="multilabel", **QUICK)
    with pytest.raises(DataError, match=r"task='regression' needs a PyG Data with y \[nodes, labels\]"):
        fit(GRAPH, task="regression", **QUICK)


UNITS = np.stack([1e4 + 250 * NUMBERS, 0.003 * (GRAPH.y - 1)], axis=1).astype(np.float32)
"""Euros and meters."""


@pytest.mark.parametrize("model", ["gcn", "appnp", "own"])
def test_numbers_are_learned_and_predicted_in_units_of_their_own(model: str, tmp_path: Path) -> None:
    """A file takes them elsewhere, and what the numbers are measured in changes no training."""
    given, made = data(UNITS), module(2) if model == "own" else model
    settings: dict[str, Any] = {**QUICK, "max_epochs": 60, "lr": 0.02}
    result = fit(given, made, task="regression", **settings)
    found, test = result.predict(), np.asarray(given.test_mask)
    assert metrics.r2_score(UNITS[test], found[test]) > 0.5
    place = result.mus.index(result.mu), 0, result.best_run.replica.seed
    assert result.test[place] == pytest.approx(metrics.r2_score(UNITS[test], found[test]), abs=1e-4)
    module_alone = result.model(given.x, given.edge_index).detach()
    np.testing.assert_allclose(module_alone, found, rtol=1e-4, atol=1e-5)
    for name in ("model.safetensors", "model.npz"):
        result.save(tmp_path / name)
        read = propreg.load_model(tmp_path / name, made() if callable(made) else None)
        np.testing.assert_allclose(read(given.x, given.edge_index).detach(), module_alone, rtol=1e-6)
    other = fit(data(UNITS * np.float32(8)), made, task="regression", **settings)
    np.testing.assert_allclose(other.predict(), 8 * found, rtol=1e-4)


def test_numbers_are_standardized_on_the_training_nodes_of_each_split() -> None:
    """Not on those that it is judged by: other test targets leave every training as it is."""
    given, changed = data(UNITS, masks=False), UNITS.copy()
    nodes = np.random.default_rng(0).permutation(np.flatnonzero(~np.isnan(UNITS).any(axis=1)))
    splits = [(part[:40], part[40:60], nodes[100:]) for part in (nodes[:60], nodes[40:100])]
    changed[nodes[100:]] += 1e4
    settings: dict[str, Any] = {**QUICK, "task": "regression", "splits": splits, "scale": "none", "metric": "rmse"}
    one, other = fit(given, "mlp", **settings), fit(data(changed, masks=False), "mlp", **settings)
    np.testing.assert_array_equal(one.val, other.val)
    assert (other.test > one.test).all()
    units = result_units(one)
    np.testing.assert_allclose(units[0], UNITS[one.splits[one.best_run.replica.split].train].mean(axis=0), rtol=1e-5)
    again = fit(given, "mlp", refit="train+val", **settings)
    split = again.splits[again.best_run.replica.split]
    np.testing.assert_allclose(result_units(again)[0], UNITS[split.train | split.val].mean(axis=0), rtol=1e-5)


def result_units(result: propreg.FitResult) -> tuple[Any, Any]:
    targets = result.scaling.targets
    assert targets is not None
    return targets.mean, targets.deviation
