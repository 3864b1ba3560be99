"""``GraphClassifier`` is an estimator: what scikit-learn asks of one, where a graph stands for the matrix."""

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import ParameterGrid
from sklearn.utils.estimator_checks import estimator_checks_generator
from sklearn.utils.validation import check_is_fitted, validate_data

import propreg
from fitting.own_modules import DATA, GRAPH, SPLIT
from propreg.data.errors import DataError
from propreg.data.own.pyg import data_class
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


class OnPoints(GraphClassifier):
    """The estimator on a matrix of points, each linked to the next one: what scikit-learn's checks can call.

    The checks of the matrix itself are scikit-learn's own, as a graph's are those of its reader.
    """

    def fit(self, graph: Any, y: Any = None, *, masks: Any = None) -> Any:
        validate_data(self, graph, y)
        return super().fit(_linked(graph), y, masks=masks)

    def predict(self, graph: Any = None) -> Any:
        return super().predict(self._graph(graph))

    def predict_proba(self, graph: Any = None) -> Any:
        return super().predict_proba(self._graph(graph))

    def score(self, graph: Any, y: Any = None, sample_weight: Any = None) -> float:
        return super().score(self._graph(graph), y, sample_weight)

    def _graph(self, points: Any) -> Any:
        check_is_fitted(self)
        return _linked(validate_data(self, points, reset=False))


def _linked(points: Any) -> Any:
    points = np.asarray(points, np.float32)
    numbers = np.arange(len(points))
    ring = np.stack([numbers, np.roll(numbers, 1)])
    edges = torch.from_numpy(np.concatenate([ring, ring[::-1]], axis=1))
    return data_class()(x=torch.tensor(points), edge_index=edges)


CANNOT = {
    "check_classifiers_classes": "its classes are −1 and 1, and here −1 is a node without a label",
    "check_class_weight_classifiers": "it passes a dict, and class_weight is 'balanced' or None",
    "check_array_api_input": "an MLP and a GNN compute with torch, whatever holds the features",
}
"""Of scikit-learn's checks, those that cannot apply, and why."""
POINTS = OnPoints("mlp", mu=0.3, seeds=1, max_epochs=40, options={"test": "cv", "splits": 3, "lr": 0.1})
CHECKS = [(check.func.__name__, check) for _, check in estimator_checks_generator(POINTS)]
QUICK_CHECKS = {
    "check_estimator_cloneable", "check_estimator_repr", "check_no_attributes_set_in_init", "check_mixin_order",
    "check_estimators_unfitted", "check_do_not_raise_errors_in_init_or_set_params", "check_get_params_invariance",
    "check_parameters_default_constructible", "check_set_params", "check_valid_tag_types", "check_dict_unchanged",
    "check_dont_overwrite_parameters", "check_estimators_overwrite_params", "check_n_features_in",
    "check_classifiers_regression_target", "check_estimators_nan_inf", "check_requires_y_none",
}  # fmt: skip
"""The others train several times, and wait for ``make slow``."""


def test_the_names_of_checks_are_those_of_scikit_learn() -> None:
    assert (CANNOT.keys() | QUICK_CHECKS) <= {name for name, _ in CHECKS}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("name", "check"),
    [
        pytest.param(name, check, id=f"{name}-{i}", marks=[] if name in QUICK_CHECKS else [pytest.mark.slow])
        for i, (name, check) in enumerate(CHECKS)
        if name not in CANNOT
    ],
)
def test_scikit_learns_checks(name: str, check: Any) -> None:  # noqa: ARG001
    check(clone(POINTS))
