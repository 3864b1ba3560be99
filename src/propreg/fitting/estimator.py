"""``GraphClassifier``: :func:`propreg.fit` as an estimator of scikit-learn, with a graph in place of a matrix."""

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from propreg.data.errors import DataError
from propreg.data.graph import Graph
from propreg.data.scaling import Scale
from propreg.fitting.fit import fit
from propreg.fitting.predictions import extra_of, unlabeled_graph
from propreg.fitting.result import FitResult
from propreg.fitting.splits import as_split
from propreg.fitting.targets import without_labels

if TYPE_CHECKING:
    from propreg.engine.spec import Model


class GraphClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Classifies the nodes of a graph; ``get_params``, ``set_params`` and ``clone`` are scikit-learn's.

    Args:
        model, mu, method, scale, metric, class_weight, splits, seeds, max_epochs, device: As for :func:`propreg.fit`.
        options: Further arguments of :func:`propreg.fit`, by name.

    Attributes:
        classes_: The classes, sorted.
        result_: The result of the fit.
        n_features_in_: The number of features.

    Example:
        >>> import propreg
        >>> data = propreg.load_dataset("digits", split=0)
        >>> classifier = propreg.GraphClassifier("mlp", mu=0.3, seeds=1, max_epochs=20).fit(data)
        >>> classifier.predict(data).shape, classifier.score(data) > 0.5
        ((1797,), True)
    """

    def __init__(
        self,
        model: "str | Model | Any" = "gcn",
        mu: Any = "auto",
        *,
        method: Any = "preg",
        scale: Scale = "auto",
        metric: Any = None,
        class_weight: str | None = None,
        splits: Any = None,
        seeds: int | None = None,
        max_epochs: int | None = None,
        device: Any = "auto",
        options: dict[str, Any] | None = None,
    ) -> None:
        self.model = model
        self.mu = mu
        self.method = method
        self.scale = scale
        self.metric = metric
        self.class_weight = class_weight
        self.splits = splits
        self.seeds = seeds
        self.max_epochs = max_epochs
        self.device = device
        self.options = options

    def fit(self, graph: Any, y: Any = None, *, masks: Any = None) -> "GraphClassifier":
        """Tune and train.

        Args:
            graph: A PyG ``Data``, the result of :func:`propreg.load_graph`, or the path of a graph.
            y: A class for each node, numbers or texts, in place of the graph's; −1, None or NaN for unknown.
            masks: (train, val) or (train, val, test), masks or node numbers, in place of ``splits``.

        Returns:
            The estimator.
        """
        data = graph
        if y is not None:
            labels, names = _encoded(y)
            bare = unlabeled_graph(without_labels(graph))
            if len(labels) != bare.num_nodes:
                raise DataError(f"y has {len(labels)} labels for {bare.num_nodes} nodes: give one for each.")
            texts = tuple(map(str, names))
            data = replace(bare, y=labels, class_names=texts, split=None, digests={}, extra=extra_of(graph))
        given = {name: value for name, value in self.get_params(deep=False).items() if name != "options"}
        if masks is not None:
            whole = data if isinstance(data, Graph) else unlabeled_graph(without_labels(data))
            given["splits"] = [as_split(masks, whole, "masks")]
        self.result_: FitResult = fit(data, **{"progress": False, **given, **(self.options or {})})
        found = self.result_.graph
        if found is None or self.result_.task != "classes":
            raise ValueError("GraphClassifier is for classes: call propreg.fit for other tasks.")
        self.classes_ = names if y is not None else np.array(found.class_names or range(found.num_classes))
        self.n_features_in_ = found.num_features
        return self

    def predict(self, graph: Any = None) -> NDArray[Any]:
        """The class of each node, one of :attr:`classes_`; None: the nodes of the training's graph."""
        check_is_fitted(self)
        found: NDArray[Any] = self.classes_[self.result_.predict(graph)]
        return found

    def predict_proba(self, graph: Any = None) -> NDArray[np.float32]:
        """The probability of each class for each node [nodes, classes]."""
        check_is_fitted(self)
        return self.result_.predict_proba(graph)

    def score(self, graph: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The accuracy on the nodes with a label, those of ``y`` or else of the graph's test mask, if it has one."""
        check_is_fitted(self)
        predicted = self.result_.predict(graph)
        if y is None:
            found = unlabeled_graph(graph)
            labels = found.y
            chosen = found.split.test if found.split is not None and found.split.test.any() else labels >= 0
        else:
            place = {name: number for number, name in enumerate(self.classes_.tolist())}
            labels = np.array([place.get(label, -1) for label in np.asarray(y).tolist()])
            chosen = np.array([label in place for label in np.asarray(y).tolist()])
        if not chosen.any():
            raise DataError("no node has a label to score on: pass y, or a graph with labels.")
        right = (predicted == labels)[chosen]
        return float(np.average(right, weights=None if sample_weight is None else np.asarray(sample_weight)[chosen]))


def _encoded(y: Any) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Numbers of classes, −1 for unknown, and the classes in order.

    Example:
        >>> _encoded(["b", None, "a"])[0].tolist(), _encoded(np.array([5, -1, 3]))[1].tolist()
        ([1, -1, 0], [3, 5])
    """
    given = column_or_1d(np.asarray(y.detach().cpu() if hasattr(y, "detach") else y), warn=True)
    unknown = [label in (None, -1) or (isinstance(label, float) and math.isnan(label)) for label in given.tolist()]
    known = ~np.array(unknown, np.bool_)
    labels = np.full(len(given), -1, np.int64)
    check_classification_targets(np.array(given[known].tolist()))
    names, labels[known] = np.unique(np.array(given[known].tolist()), return_inverse=True)
    return labels, names
