"""By what strengths are picked on validation: formulas by hand, against scikit-learn, and in a fit."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import accuracy_score, balanced_accuracy_score, log_loss

from fitting.own_modules import GRAPH, SPLIT, Base
from propreg.cli import run as command
from propreg.engine.spec import Measures, PartMeasures, Replica, Result
from propreg.engine.training.measures import measure
from propreg.fitting.fit import fit
from propreg.fitting.measured import Measured, measures_of, picked_by
from propreg.fitting.picking import SELECTIONS, class_frequencies, picking_score
from propreg.fitting.result import FitResult
from propreg.fitting.verdict import judge

OPTIONS: Any = SELECTIONS
QUICK: dict[str, Any] = {"mu": [0.3, 0.9], "seeds": 2, "max_epochs": 12, "progress": False}


def part(count: tuple[int, ...], right: tuple[int, ...], predicted: tuple[int, ...], nll: float = 0.0) -> PartMeasures:
    return PartMeasures(count, right, predicted, nll, 0.0, ())


def test_class_frequencies_by_hand() -> None:
    # Of 10 nodes each, 9, 8 and 6 are right. Class 0: t = 0.9, f = (13 − 9) / 20 = 0.2; class 1: t = 0.8, f = 0.05;
    # class 2: t = 0.6, f = 0.1. The model predicts shares 0.55, 0.35 and 0.1 of the others: (0.55 − 0.2) / 0.7 = 0.5,
    # (0.35 − 0.05) / 0.75 = 0.4, (0.1 − 0.1) / 0.5 = 0; their sum is 0.9.
    found = class_frequencies([part((10, 10, 10), (9, 8, 6), (13, 9, 8))], [(55, 35, 10)])
    np.testing.assert_allclose(found, [5 / 9, 4 / 9, 0.0], atol=1e-12)


def test_frequencies_are_found_again_where_each_class_errs_alike() -> None:
    """Two classes, 90 and 70 % recognized: of shares 0.8 and 0.2, 0.8 · 0.9 + 0.2 · 0.3 = 0.78 are predicted as 0."""
    found = class_frequencies([part((100, 100), (90, 70), (120, 80))], [(780, 220)])
    np.testing.assert_allclose(found, [0.8, 0.2], atol=1e-12)


def test_the_runs_of_a_split_are_counted_together() -> None:
    one, other = part((10, 10), (9, 8), (11, 9)), part((10, 10), (7, 8), (9, 11))
    both = class_frequencies([one, other], [(70, 30), (50, 50)])
    together = class_frequencies([part((20, 20), (16, 16), (20, 20))], [(120, 80)])
    np.testing.assert_allclose(both, together)


def test_a_class_that_is_not_recognized_counts_as_predicted() -> None:
    # Class 1 is predicted as often of class 0 as of itself, and t − f = 0 for both.
    found = class_frequencies([part((10, 10), (5, 5), (10, 10))], [(70, 30)])
    np.testing.assert_allclose(found, [0.7, 0.3])


@pytest.mark.parametrize("model", ["perfect", "one class alone"])
def test_frequencies_are_shares_of_one_whatever_the_model(model: str) -> None:
    right = (10, 10, 10) if model == "perfect" else (10, 0, 0)
    said = (10, 10, 10) if model == "perfect" else (30, 0, 0)
    found = class_frequencies([part((10, 10, 10), right, said)], [said])
    assert found.sum() == pytest.approx(1)
    assert (found >= 0).all()


def test_scores_by_hand() -> None:
    val = part((6, 2, 0), (3, 2, 0), (3, 4, 1), nll=4.0)
    weights = np.array([0.2, 0.3, 0.5])
    found = {select: picking_score(select, val, weights) for select in OPTIONS}
    assert found == {
        "accuracy": pytest.approx(5 / 8),
        "balanced": pytest.approx((1 / 2 + 1) / 2),
        "reweighted": pytest.approx((0.2 * 1 / 2 + 0.3 * 1) / 0.5),  # class 2 has no validation node
        "loss": pytest.approx(-4.0 / 8),
    }


def test_without_any_frequency_the_nodes_of_validation_count() -> None:
    assert picking_score("reweighted", part((6, 2), (3, 2), (4, 4)), np.zeros(2)) == pytest.approx(5 / 8)


def test_reweighted_by_the_frequencies_of_validation_is_accuracy_and_by_equal_ones_balanced() -> None:
    rng = np.random.default_rng(0)
    logits, y = rng.standard_normal((90, 4)), rng.integers(4, size=90)
    val = measure(torch.from_numpy(logits), torch.from_numpy(y))
    assert val is not None
    guess, p = logits.argmax(1), torch.from_numpy(logits).softmax(1).numpy()
    assert picking_score("reweighted", val, np.bincount(y) / 90) == pytest.approx(accuracy_score(y, guess))
    assert picking_score("reweighted", val, np.full(4, 0.25)) == pytest.approx(balanced_accuracy_score(y, guess))
    assert picking_score("balanced", val, np.zeros(4)) == pytest.approx(balanced_accuracy_score(y, guess))
    assert picking_score("loss", val, np.zeros(4)) == pytest.approx(-log_loss(y, p), rel=1e-5)


def test_reweighted_picks_what_is_right_on_frequent_classes_and_balanced_on_rare_ones() -> None:
    """Validation has two nodes of each class, the others are mostly of class 0: the plain model's predictions count."""
    plain, frequent, rare = ([[1, 1], [1, 0]], [[2, 0], [2, 0]], [[0, 2], [1, 2]])
    runs: list[Result | None] = []
    measured: dict[Replica, Any] = {}
    for strength, counts in enumerate((plain, frequent, rare)):
        for split, right in enumerate(counts):
            mine = part((2, 2), (right[0], right[1]), (2 + right[0] - right[1], 2 - right[0] + right[1]))
            run = Result(Replica(0, str(split), strength=float(strength)), 0.5, 0.5, 1, 1)
            runs.append(run)
            measured[run.replica] = Measured(0.5, 0.5, Measures(mine, mine), (90, 10))
    by = {
        select: picked_by(select, runs, (3, 2, 1), lambda run: measured[run.replica]).mean(axis=(1, 2))
        for select in OPTIONS
    }
    assert int(by["balanced"].argmax()) == 2
    assert int(by["reweighted"].argmax()) == 1


@cache
def usual_fit(model: Any) -> FitResult:
    return fit(GRAPH, model, **QUICK)


@pytest.mark.parametrize("select", OPTIONS)
@pytest.mark.parametrize("model", ["gcn", Base])
def test_a_fit_picks_by_the_score_and_changes_nothing_else(select: Any, model: Any) -> None:
    usual, result = usual_fit(model), fit(GRAPH, model, select=select, **QUICK)
    assert result.settings["select"] == select
    np.testing.assert_array_equal(result.val, usual.val)
    np.testing.assert_array_equal(result.test, usual.test)
    assert [run.epoch for run in result.runs] == [run.epoch for run in usual.runs], "the epoch is the protocol's"
    assert result.mus[int(np.round(result.picking.mean(axis=(1, 2)), 12).argmax())] == result.mu
    if select == "accuracy":
        np.testing.assert_allclose(result.picking, usual.val)
        assert (result.mu, judge(result)) == (usual.mu, judge(usual))
    for place, run in enumerate(result.runs):
        if run.replica.strength in result.predicted and select == "balanced":
            guess = result.predicted[run.replica.strength][0, run.replica.seed][SPLIT.val]
            expected = balanced_accuracy_score(GRAPH.y[SPLIT.val], guess)
            at = result.mus.index(run.replica.strength), 0, run.replica.seed
            assert result.picking[at] == pytest.approx(expected), place


def test_only_the_labels_of_validation_are_used() -> None:
    """Other labels outside training and validation change neither the scores nor the strength."""
    y = GRAPH.y.copy()
    y[SPLIT.test] = np.random.default_rng(1).integers(0, 3, int(SPLIT.test.sum()))
    y[np.flatnonzero(SPLIT.test)[:3]] = [0, 1, 2]
    same = dict.fromkeys(("edges", "features", "labels"), "0")  # random streams depend on a graph's digests
    graphs = (replace(GRAPH, y=labels, digests=same) for labels in (GRAPH.y, y))
    one, two = (fit(graph, "gcn", select="reweighted", **QUICK) for graph in graphs)
    np.testing.assert_array_equal(one.picking, two.picking)
    assert one.mu == two.mu


def test_the_nodes_outside_training_and_validation_are_those_that_count() -> None:
    z = torch.eye(3)[torch.arange(120) % 3]
    y = torch.from_numpy(GRAPH.y)
    _, predicted = measures_of(z, y, SPLIT)
    outside = ~(SPLIT.train | SPLIT.val)
    assert predicted == tuple(np.bincount(np.arange(120)[outside] % 3, minlength=3))
    whole = type(SPLIT)(~SPLIT.val, SPLIT.val, SPLIT.val)
    assert measures_of(z, y, whole)[1] == (40, 40, 40), "where there are none, all nodes"


def test_folds_pick_by_it_too() -> None:
    result = fit(GRAPH, "gcn", select="loss", test="cv", splits=3, **QUICK)
    assert result.judging.nested
    assert judge(result).pair is not None


def test_what_cannot_be_picked_by_is_an_error() -> None:
    with pytest.raises(
        ValueError, match=r"^select must be one of 'accuracy', 'balanced', 'reweighted', 'loss' or None"
    ):
        fit(GRAPH, "gcn", select="rare", **QUICK)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^select is for classes, but the task is regression: leave it out"):
        fit(GRAPH, "gcn", select="loss", task="regression", **QUICK)


def test_the_command_knows_the_same_names() -> None:
    assert command.SELECTIONS == SELECTIONS
