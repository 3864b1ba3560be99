"""``metric=``, ``class_weight=``, ``refit=``, ``time_limit=``, ``callbacks=``, ``watch=``, ``regularizer=``."""

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from communities import communities
from fitting.own_modules import DATA, GRAPH, SPLIT, Base
from propreg.data.graph import Graph, Split
from propreg.data.splits import random_split
from propreg.engine import Method, Model, Problem, Protocol, Replica, Result, train_all
from propreg.engine.ops import cross_entropy
from propreg.fitting.fit import fit
from propreg.fitting.result import FitResult
from propreg.fitting.scoring import SCORES
from propreg.fitting.verdict import judge
from propreg.methods.gmnn import GmnnModel

QUICK: dict[str, Any] = {"mu": [0.3, 0.6], "seeds": 2, "max_epochs": 12, "progress": False}
OPTIONS: Any = list(SCORES)


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("model", ["gcn", Base])
def test_runs_are_scored_chosen_and_compared_by_the_metric(name: str, model: Any) -> None:
    result, score = fit(GRAPH, model, metric=name, **QUICK), SCORES[name]
    assert result.judging.what == f"test {score.title}"
    p = result.predict_proba()
    best = result.best_run
    place = result.mus.index(result.mu), 0, best.replica.seed
    assert result.test[place] == pytest.approx(score.compute(GRAPH.y[SPLIT.test], p[SPLIT.test]), abs=1e-5)
    assert result.val[place] == pytest.approx(score.compute(GRAPH.y[SPLIT.val], p[SPLIT.val]), abs=1e-5)
    assert score.sign * result.val[place] == pytest.approx((score.sign * result.val[place[0]]).max())
    means = score.sign * result.val.mean(axis=(1, 2))
    assert result.mus[int(np.argmax(means))] == result.mu
    gain = score.sign * (result.test[result.mus.index(result.mu)] - result.test[0]).mean()
    assert result.difference.mean == pytest.approx(gain)
    if name != "accuracy":
        assert f"test {score.title}:" in result.summary()


@pytest.mark.parametrize("name", ["roc_auc", "average_precision"])
def test_a_metric_that_validation_does_not_define_is_refused_before_the_training(name: Any) -> None:
    alike = replace(SPLIT, val=SPLIT.val & (GRAPH.y == 0))
    with pytest.raises(ValueError, match=f"metric='{name}' is not defined where all validation nodes have the same"):
        fit(replace(GRAPH, split=alike), metric=name, **QUICK)
    result = fit(replace(GRAPH, split=alike), metric=name, select="loss", **QUICK)
    assert np.isnan(result.val).all()
    assert not np.isnan(result.test).any()


def test_a_metric_that_is_never_a_number_is_what_the_error_is_about() -> None:
    with pytest.raises(RuntimeError, match="or give a metric that is a number on the validation nodes"):
        fit(GRAPH, metric=lambda y, p: float("nan"), **QUICK)  # noqa: ARG005


def test_log_loss_is_no_percentage_and_lower_is_better() -> None:
    text = fit(GRAPH, "gcn", metric="log_loss", **QUICK).summary()
    assert "in test log loss (lower is better)" in text
    assert "points" not in text


def test_a_metric_of_ones_own() -> None:
    def mistakes(y: Any, p: Any) -> float:
        return float((p.argmax(axis=1) != y).sum())

    result = fit(GRAPH, "gcn", metric=(mistakes, "lower"), **QUICK)
    count = int(SPLIT.test.sum())
    lossy = fit(GRAPH, "gcn", metric="balanced_accuracy", **QUICK)  # the same epochs
    assert ((result.test >= 0) & (result.test <= count)).all()
    assert [run.epoch for run in result.runs] == [run.epoch for run in lossy.runs]
    accuracies = np.array([run.test for run in result.runs]).reshape(result.test.shape)
    np.testing.assert_allclose(result.test, np.round(count * (1 - accuracies)))
    with pytest.raises(TypeError, match="metric must return a number"):
        fit(GRAPH, "gcn", metric=lambda y, p: "good", **QUICK)  # type: ignore[arg-type, return-value]  # noqa: ARG005


def rare(nodes: int = 300) -> Graph:
    """Two classes, one of them of a tenth of the nodes."""
    graph = communities(nodes=nodes, classes=2, same=0.6, seed=2)
    y = (np.arange(nodes) % 10 == 0).astype(np.int64)
    x = np.random.default_rng(0).standard_normal((nodes, 8)).astype(np.float32)
    x[:, 0] += 2 * y
    k = np.arange(nodes) // 10 % 3
    return replace(graph, x=x, y=y, split=Split(k == 0, k == 1, k == 2))


def test_balanced_weights_are_those_of_torch() -> None:
    split = random_split(rare().y, 7, 5, 0)
    some = replace(split, train=split.train & (np.arange(300) % 20 > 0))
    graph, both = rare(), {"a": split, "b": some}
    problem = Problem(graph, both, "cpu", balanced=True)
    z = torch.randn(2, 300, 2, generator=torch.Generator().manual_seed(0))
    targets = problem.targets([Replica(split="a"), Replica(split="b")])
    for row, (found, part) in enumerate(zip(cross_entropy(z, targets), both.values(), strict=True)):
        train = torch.from_numpy(part.train)
        y = torch.from_numpy(graph.y)[train]
        expected = F.cross_entropy(z[row][train], y, weight=1 / torch.bincount(y).float())
        assert found.item() == pytest.approx(expected.item(), abs=1e-6)


def test_a_rare_class_is_found_with_balanced_weights() -> None:
    graph = rare()
    options = {**QUICK, "max_epochs": 60, "metric": "balanced_accuracy"}
    plain, balanced = (fit(graph, "mlp", class_weight=w, **options).test[0].mean() for w in (None, "balanced"))
    assert balanced > plain + 0.05


def test_another_name_of_method() -> None:
    one, two = fit(GRAPH, method="laplacian", **QUICK), fit(GRAPH, regularizer="laplacian", **QUICK)
    np.testing.assert_array_equal(one.test, two.test)
    assert two.method == "laplacian"
    with pytest.raises(ValueError, match="'laplacian' is not 'label_smoothing': pass one"):
        fit(GRAPH, method="label_smoothing", regularizer="laplacian", **QUICK)
    with pytest.raises(ValueError, match="regularizer must be one of"):
        fit(GRAPH, regularizer="laplacan", **QUICK)


def test_refit_counts_the_epochs_of_the_reported_phase() -> None:
    """GMNN's E-step is its third phase, after 4 + 3 epochs; the epochs of a run count all of them."""
    model = GmnnModel(hidden=4, pretraining=4, m_step=3)
    result = fit(GRAPH, model, refit="train+val", scale="none", **QUICK)
    assert result.refit is not None
    chosen = [run for run in result.runs if run.replica.strength == result.mu]
    assert {run.before for run in chosen} == {7}
    assert result.refit.epoch == 7 + round(float(np.mean([run.epoch - 7 for run in chosen])))
    assert result.refit.epochs == result.refit.epoch <= 7 + QUICK["max_epochs"]


@pytest.mark.parametrize("model", ["gcn", Base])
def test_refit_trains_on_both_for_the_mean_number_of_epochs(model: Any) -> None:
    result = fit(GRAPH, model, refit="train+val", scale="none", **QUICK)
    assert result.refit is not None
    chosen = [run for run in result.runs if run.replica.strength == result.mu]
    epochs = round(float(np.mean([run.epoch for run in chosen])))
    assert (result.refit.epoch, result.refit.replica) == (epochs, result.best_run.replica)
    if model == "gcn":
        both = {"own": replace(SPLIT, train=SPLIT.train | SPLIT.val)}
        problem = Problem(GRAPH, both, "cpu")
        protocol = Protocol(rule="last", max_epochs=epochs)
        ((_, run),) = train_all(problem, Model(), Method("preg"), [result.best_run.replica], protocol)
        assert run.test == pytest.approx(result.refit.test)
    right = (result.model(DATA.x, DATA.edge_index).argmax(-1) == DATA.y).numpy()
    assert right[SPLIT.test].mean() == pytest.approx(result.refit.test)
    same = fit(GRAPH, model, scale="none", **QUICK)
    np.testing.assert_array_equal(result.test, same.test)


def test_the_result_so_far_can_be_watched() -> None:
    seen: list[FitResult] = []
    whole = fit(GRAPH, "gcn", watch=lambda so_far: seen.append(so_far()), **QUICK)
    assert [len(each.runs) for each in seen] == list(range(1, len(whole.runs) + 1))
    assert not any(each.finished for each in seen)
    np.testing.assert_array_equal(seen[-1].test, whole.test)
    np.testing.assert_array_equal(seen[-1].probabilities, whole.probabilities)
    same = fit(GRAPH, "gcn", **QUICK)
    np.testing.assert_array_equal(same.test, whole.test)
    with pytest.raises(ValueError, match="watch is for the built-in models: use callbacks with a model of your own"):
        fit(GRAPH, Base, watch=print, **QUICK)


def test_a_time_limit_returns_what_is_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[Result] = []
    whole = fit(GRAPH, Base, time_limit=600, callbacks=[runs.append], **QUICK)
    assert whole.finished
    assert sorted(map(repr, (run.replica for run in runs))) == sorted(repr(run.replica) for run in whole.runs)

    seconds = itertools.count()  # one at each look
    monkeypatch.setattr("propreg.fitting.fit.monotonic", lambda: float(next(seconds)))
    part = fit(GRAPH, Base, time_limit=40, **QUICK)
    assert not part.finished
    assert len(part.runs) in (2, 3)
    assert judge(part).sentence
    with pytest.raises(ValueError, match="time_limit ended before any training was finished"):
        fit(GRAPH, Base, time_limit=5, **QUICK)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"class_weight": "equal"}, "class_weight must be one of 'balanced' or None, got 'equal'"),
        ({"refit": "all"}, "refit must be one of 'train\\+val' or None, got 'all'"),
        ({"test": "loo"}, "test must be one of 'cv' or None, got 'loo'"),
        ({"time_limit": -1}, "time_limit must be a finite number of at least 0"),
    ],
)
def test_what_means_nothing(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        fit(GRAPH, **{**QUICK, **wrong})
