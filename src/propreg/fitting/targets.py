"""Targets that are no classes: several yes/no labels of each node, or numbers, from a ``Data``."""

import copy
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from propreg import _errors
from propreg.data.errors import DataError
from propreg.data.graph import MASKS, Graph, Task
from propreg.data.splits import ranks
from propreg.engine.regularizers import REGULARIZERS
from propreg.engine.spec import Method, Model

TASKS: tuple[Task, ...] = ("classes", "multilabel", "regression")
PHI: dict[str, str] = {"multilabel": "bernoulli", "regression": "squared_error"}
SHARES = 0.6, 0.2  # of the nodes, for training and validation, where there are no classes to draw from


def without_labels(data: Any) -> Any:
    """A shallow copy of a ``Data`` without labels and masks; anything else as it is."""
    if isinstance(data, Graph) or not hasattr(data, "edge_index"):
        return data
    copied = copy.copy(data)
    for name in ("y", *MASKS):
        setattr(copied, name, None)
    return copied


def split_targets(data: Any, task: Task) -> tuple[Any, NDArray[np.float32]]:
    """A ``Data`` whose nodes are of one class if they have a target, and the targets [nodes, L], NaN for unknown.

    Args:
        data: With ``y`` of shape [nodes, L], or [nodes] for one target of each.
        task: What the targets are.
    """
    _errors.one_of("task", task, TASKS)
    y = getattr(data, "y", None)
    if isinstance(data, Graph) or y is None:
        raise DataError(f"task={task!r} needs a PyG Data with y [nodes, labels], got a {type(data).__name__} without.")
    targets = _checked(np.asarray(y.detach().cpu() if hasattr(y, "detach") else y), len(y), task)
    copied = copy.copy(data)
    copied.y = np.where(np.isnan(targets).all(axis=1), -1, 0)
    return copied, targets


def _checked(y: NDArray[Any], nodes: int, task: Task) -> NDArray[np.float32]:
    if y.ndim not in (1, 2) or len(y) != nodes or y.dtype.kind not in "biuf" or not y.size:
        raise DataError(
            f"y must hold numbers [{nodes}] or [{nodes}, L] for task={task!r}, got {y.dtype} {list(y.shape)}."
        )
    targets = np.array(y, np.float32).reshape(nodes, -1)
    if task == "multilabel":
        targets[targets == -1] = np.nan
        if not np.isin(targets[~np.isnan(targets)], (0, 1)).all():
            raise DataError("y must hold 0 and 1 for task='multilabel', and −1 or NaN for unknown.")
    elif np.isinf(targets).any():
        raise DataError("y must hold finite numbers for task='regression', and NaN for unknown.")
    return targets


def check_task(graph: Graph, method: str, spec: Model, class_weight: str | None) -> None:
    """Refuse what is made for classes."""
    if graph.targets is None:
        return
    name = spec.architecture.name
    if not REGULARIZERS[method].uses_edges:
        raise ValueError(
            f"method={method!r} is for classes, but the task is {graph.task}: choose 'preg' or 'laplacian'."
        )
    if spec.architecture.phases is not None or spec.architecture.trainer is not None:
        raise ValueError(f"model={name!r} is for classes, but the task is {graph.task}: choose another, like 'gcn'.")
    if class_weight is not None:
        raise ValueError(f"class_weight is for classes, but the task is {graph.task}: leave it out.")


def method_of_task(method: Method, task: Task) -> Method:
    """The method with the divergence that goes with the task."""
    return replace(method, phi=PHI[task]) if task in PHI and "phi" in method.regularizer.options else method


def random_shares(y: NDArray[np.int64], seed: int) -> tuple[NDArray[np.bool_], ...]:
    """Masks of training, validation and test nodes among those with a target, drawn at random.

    Example:
        >>> [int(mask.sum()) for mask in random_shares(np.zeros(10, np.int64), 0)]
        [6, 2, 2]
    """
    nodes = np.flatnonzero(y >= 0)
    nodes = nodes[np.argsort(ranks(len(y), seed)[nodes], kind="stable")]
    ends = [round(SHARES[0] * len(nodes)), round(sum(SHARES) * len(nodes))]
    masks = [np.zeros(len(y), np.bool_) for _ in range(3)]
    for mask, part in zip(masks, np.split(nodes, ends), strict=True):
        mask[part] = True
    return tuple(masks)
