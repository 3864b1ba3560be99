"""``GraphClassifier`` is an estimator: what scikit-learn asks of one, where a graph stands for the matrix."""

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import ParameterGrid

import propreg
from fitting.own_modules import DATA, GRAPH, SPLIT
from propreg.data.errors import DataError
from propreg.fitting.estimator import GraphClassifier
from propreg.fitting.fit import fit

QUICK: dict[str, Any] = {"mu": 0.3, "seeds": 2, "max_epochs": 10}


def test_it_is_the_fit_of_the_same_settings() -> None:
    classifier = GraphClassifier("gcn", **QUICK).fit(DATA)
    expected = fit(DATA, "gcn", progress=False, **QUICK)
    np.testing.assert_array_equal(classifier.predict_proba(), expected.predict_proba())
    np.testing.assert_array_equal(classifier.predict(DATA), expected.predict())
    assert classifier.classes_.tolist() == [0, 1, 2]
    assert classifier.n_features_in_ == 8
    place = expected.mus.index(expected.mu), 0, expected.best_run.replica.seed
    assert classifier.score(DATA) == pytest.approx(expected.test[place])


def test_parameters_and_clones_are_those_of_scikit_learn() -> None:
    classifier = GraphClassifier("mlp", mu=[0.1, 0.2], seeds=4, options={"lr": 0.02})
    again = clone(classifier)
    assert again is not classifier
    assert again.get_params() == classifier.get_params()
    assert again.set_params(model="gcn", seeds=1).get_params()["model"] == "gcn"
    assert is_classifier(again)
    assert "GraphClassifier(" in repr(classifier)
    with pytest.raises(NotFittedError):
        classifier.predict(DATA)
    scores = [clone(classifier).set_params(**{**QUICK, **grid}).fit(DATA).score(DATA) for grid in GRID]
    assert len(set(scores)) > 1


GRID = list(ParameterGrid({"model": ["mlp", "gcn"]}))


def test_labels_may_be_texts_and_masks_node_numbers() -> None:
    names = np.array(["red", "green", "blue"])[GRAPH.y].astype(object)
    names[SPLIT.test] = None
    train, val = np.flatnonzero(SPLIT.train), np.flatnonzero(SPLIT.val)
    classifier = GraphClassifier("gcn", **QUICK).fit(DATA, names, masks=(train, val))
    assert classifier.classes_.tolist() == ["blue", "green", "red"]
    predicted = classifier.predict(DATA)
    truth = np.array(["red", "green", "blue"])[GRAPH.y]
    assert classifier.score(DATA, truth) == pytest.approx((predicted == truth).mean())
    assert classifier.score(DATA, names) == pytest.approx((predicted == truth)[~SPLIT.test].mean())
    assert classifier.result_.judging.part == "validation"
    with pytest.raises(DataError, match="y has 3 labels for 120 nodes"):
        classifier.fit(DATA, names[:3])


def test_options_reach_the_fit_and_other_tasks_do_not() -> None:
    classifier = GraphClassifier("mlp", options={"max_epochs": 3, "refit": "train+val"}, mu=0.3, seeds=1).fit(DATA)
    assert classifier.result_.refit is not None
    data = DATA.clone()
    data.y = torch.stack([DATA.y == 0, DATA.y == 1], dim=1).float()
    with pytest.raises(ValueError, match="GraphClassifier is for classes"):
        GraphClassifier("mlp", options={"task": "multilabel"}, **QUICK).fit(data)
    assert propreg.GraphClassifier is GraphClassifier
