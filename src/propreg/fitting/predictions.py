"""What a trained model predicts for the nodes of a graph, and as a table for people."""

import csv
import io
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from propreg.data.errors import DataError
from propreg.data.graph import MASKS, PARTS, Graph, SparseFeatures, Split, Task
from propreg.data.own.load import read_graph
from propreg.data.own.pyg import sparse_tensor
from propreg.engine.models.module_inputs import Inputs, tensors_of
from propreg.engine.models.user_module import parted
from propreg.engine.torch_modes import ordinary_modes
from propreg.fitting.targets import without_labels

if TYPE_CHECKING:
    from torch_geometric.data import Data

COLUMNS = ("id", "label", "split", "predicted", "probability", "runner_up", "agreeing_neighbors")


@dataclass(frozen=True, eq=False)
class Trained:
    """A trained model and what it was trained on.

    Args:
        module: Its module, ``forward(x, edge_index)``.
        features: The number of its features.
        weighted: Whether ``forward`` takes edge weights, too.
        class_names, feature_names: Of the graph it was trained on, if it has them.
        inputs: What a module of the user's own is called with; None for a built-in model.
        task: What it predicts.
    """

    module: nn.Module
    features: int
    weighted: bool = False
    class_names: Sequence[str] = ()
    feature_names: Sequence[str] = ()
    inputs: Inputs | None = None
    task: Task = "classes"

    def probabilities(self, data: "Data | Graph | str | os.PathLike[str]") -> NDArray[np.float32]:
        """The probability of each class or label for each node [nodes, classes], or numbers; no labels are needed."""
        graph = unlabeled_graph(without_labels(data))
        graph = replace(graph, x=self._columns(graph), extra=graph.extra or extra_of(data))
        device = next((t.device for t in [*self.module.parameters(), *self.module.buffers()]), torch.device("cpu"))
        was_training = self.module.training
        with ordinary_modes(device), torch.no_grad():
            try:
                given, named = self._arguments(graph, device)
                logits = parted(self.module.eval()(*given, **named))[0]
            finally:
                self.module.train(was_training)
            found: NDArray[np.float32] = activated(logits.float(), self.task).cpu().numpy()
        return found

    def _arguments(self, graph: Graph, device: torch.device) -> tuple[tuple[Any, ...], dict[str, Any]]:
        needs_weights = self.weighted or (self.inputs is not None and "edge_weight" in self.inputs.keywords)
        if needs_weights and graph.edge_weight is None:
            graph = replace(graph, edge_weight=np.ones(graph.edge_index.shape[1], np.float32))
        if self.inputs is not None:
            return self.inputs.arguments(tensors_of(graph, device))
        x = graph.x
        features = sparse_tensor(x) if isinstance(x, SparseFeatures) else torch.from_numpy(np.asarray(x, np.float32))
        given = [features, torch.from_numpy(graph.edge_index)]
        if self.weighted and graph.edge_weight is not None:
            given.append(torch.from_numpy(graph.edge_weight))
        return tuple(t.to(device) for t in given), {}

    def _columns(self, graph: Graph) -> "NDArray[np.float32] | SparseFeatures":
        """The features in the order of the training."""
        names, where = list(self.feature_names), graph.name or "the graph"
        if names and graph.feature_names:
            place = {name: number for number, name in enumerate(graph.feature_names)}
            if lacks := [name for name in names if name not in place]:
                raise DataError(f"{where}: has no feature {lacks[0]!r:.80}, which the model was trained with: add it.")
            if names == list(graph.feature_names):
                return graph.x
            x = graph.x.to_dense() if isinstance(graph.x, SparseFeatures) else graph.x
            return x[:, [place[name] for name in names]]
        if graph.num_features != self.features:
            raise DataError(
                f"{where}: has {graph.num_features} features, but the model was trained with {self.features}: give "
                "each node the features of the training, in its order."
            )
        return graph.x


def activated(logits: Tensor, task: Task) -> Tensor:
    """Probabilities of logits, or the predicted numbers."""
    if task == "regression":
        return logits
    return logits.softmax(-1) if task == "classes" else logits.sigmoid()


def unlabeled_graph(
    data: "Data | Graph | str | os.PathLike[str]", *, directed: bool = False, columns: Mapping[str, str] | None = None
) -> Graph:
    """A graph whose nodes may all be without a label."""
    return data if isinstance(data, Graph) else read_graph(data, directed=directed, labeled=False, columns=columns)


def extra_of(data: Any) -> dict[str, Tensor]:
    """The tensors of a PyG ``Data`` beside those that a :class:`Graph` has."""
    if isinstance(data, Graph | str | os.PathLike) or not hasattr(data, "to_dict"):
        return {}
    known = {"x", "edge_index", "edge_weight", "y", *MASKS}
    return {name: t for name, t in data.to_dict().items() if isinstance(t, Tensor) and name not in known}


def agreement(edge_index: NDArray[np.int64], predicted: NDArray[np.int64]) -> NDArray[np.float64]:
    """The share of each node's neighbors with its own prediction; NaN without a neighbor. Self-loops do not count.

    Example:
        >>> agreement(np.array([[0, 1, 2, 0], [1, 0, 1, 0]]), np.array([4, 4, 7])).tolist()
        [1.0, 0.5, nan]
    """
    source, target = edge_index[:, edge_index[0] != edge_index[1]]
    count = np.bincount(target, minlength=len(predicted))
    same = np.bincount(target, weights=predicted[source] == predicted[target], minlength=len(predicted))
    with np.errstate(invalid="ignore"):
        return same / count


def predictions_csv(
    graph: Graph, probabilities: NDArray[np.floating[Any]], class_names: Sequence[str] = (), split: Split | None = None
) -> str:
    """One line per node with the columns :data:`COLUMNS`.

    Args:
        graph: The graph. A node without an id has its number.
        probabilities: Of each class [nodes, classes].
        class_names: The names of the classes; without them, their numbers.
        split: What each node was used for in the training.
    """
    names = list(class_names) or [str(c) for c in range(probabilities.shape[1])]
    given_names = list(graph.class_names) or names
    order = np.argsort(-probabilities, axis=1, kind="stable")
    best, second = order[:, 0], order[:, min(1, order.shape[1] - 1)]
    share = agreement(graph.edge_index, best)
    parts = np.full(graph.num_nodes, "", dtype="U5")
    for part in PARTS if split is not None else ():
        parts[getattr(split, part)] = part
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(COLUMNS)
    for node in range(graph.num_nodes):
        label = int(graph.y[node])
        rows.writerow(
            [
                graph.node_ids[node] if graph.node_ids else node,
                "" if label < 0 else given_names[label] if label < len(given_names) else label,
                parts[node],
                names[best[node]],
                f"{probabilities[node, best[node]]:.4f}",
                names[second[node]] if len(names) > 1 else "",
                "" if np.isnan(share[node]) else f"{share[node]:.4f}",
            ]
        )
    return text.getvalue()
