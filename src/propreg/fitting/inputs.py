"""What ``fit`` was given, checked before anything is trained: graph, splits, architecture, strengths, numbers."""

import hashlib
import importlib.util
import math
import numbers
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from propreg import _errors
from propreg._lazy import MissingPackageError
from propreg.data.describe import doubtful_labels, one_way, unused_classes
from propreg.data.edges import check_edges
from propreg.data.errors import DataError
from propreg.data.graph import Graph, SparseFeatures, Split
from propreg.data.own.load import read_graph
from propreg.data.own.validate import check_weights
from propreg.engine.models import MODELS
from propreg.engine.regularizers import REGULARIZERS
from propreg.engine.spec import Model, Protocol, Replica
from propreg.engine.training.optimizers import OPTIMIZERS, MakeTorch
from propreg.engine.validate import check_model, check_settings

if TYPE_CHECKING:
    from torch_geometric.data import Data

UNDIRECTED = "pass torch_geometric.transforms.ToUndirected()(data)"

MOST = 2**31 - 1
"""Epochs, seeds and nodes: what every counter on every device holds."""
_ROWS = 1 << 16  # that are checked at a time: features may be on disk
LARGEST_FEATURE = 20.0
"""Features beyond it make training with the usual learning rates slow or unstable."""

# Warnings that were given. Python's own "once per place" is forgotten whenever filters change, as training does.
_given: set[tuple[str, bytes]] = set()


def graph_of(data: "Data | Graph", stacklevel: int = 4) -> Graph:
    """The graph in NumPy arrays. Reading a ``Data`` warns of what is legal but seldom meant, once per graph.

    A ``Graph`` comes from a reader; one made by hand may have parts that do not fit together.

    Raises:
        DataError: If the graph cannot be used.
    """
    if isinstance(data, Graph):
        _check(data)
        return data
    graph = read_graph(data)
    for doubt in (one_way(graph, UNDIRECTED), unused_classes(graph), doubtful_labels(graph)):
        if doubt:
            _warn_once(doubt, graph, stacklevel=stacklevel)
    return graph


def without_splits(graph: Graph) -> Graph:
    """The graph without the digests of its splits: random streams name the split themselves.

    Example:
        >>> graph = Graph("", np.zeros((2, 0), int), np.eye(1), np.zeros(1, int), digests={"edges": "a", "splits": "b"})
        >>> without_splits(graph).digests
        {'edges': 'a'}
    """
    return replace(graph, digests={part: d for part, d in graph.digests.items() if not part.startswith("split")})


def _check(graph: Graph) -> None:
    where = graph.name or "the graph"
    for part in ("y", "edge_index", *(["edge_weight"] if graph.edge_weight is not None else [])):
        _check_array(getattr(graph, part), part, where)
    y, edges = graph.y, graph.edge_index
    if y.dtype != np.int64 or y.ndim != 1:
        raise DataError(f"{where}: y must be the classes of the nodes, int64 [nodes], got {_kind(y)}.")
    _check_features(graph.x, len(y), where)
    if edges.dtype != np.int64 or edges.ndim != 2 or len(edges) != 2:
        raise DataError(
            f"{where}: edge_index must be int64 [2, edges], source over target, got {_kind(edges)}: use "
            ".astype(np.int64), and .T if it has a row for each edge."
        )
    check_edges(edges, len(y), f"{where}, edge_index")
    if graph.edge_weight is not None:
        check_weights(graph.edge_weight, edges.shape[1], where)


def _check_features(x: object, nodes: int, where: str) -> None:
    if isinstance(x, SparseFeatures):
        values, shape = x.filled(), x.shape
        if len(x.indptr) != shape[0] + 1 or int(x.indptr[-1]) != len(x.indices):
            raise DataError(f"{where}: the indptr of x does not fit {shape[0]} rows and {len(x.indices)} values.")
    else:
        values = _check_array(x, "x", where)
        shape = values.shape
        if values.ndim != 2 or values.dtype.kind not in "biuf":
            raise DataError(f"{where}: x must be numbers [nodes, features], got {_kind(values)}.")
    if shape[0] != nodes:
        raise DataError(f"{where}: x has {shape[0]} rows but y has {nodes}: both need one per node.")
    if not all(np.isfinite(values[i : i + _ROWS]).all() for i in range(0, len(values), _ROWS)):
        raise DataError(f"{where}: its features hold a NaN or infinite number: every feature must be finite.")


def _check_array(value: object, part: str, where: str) -> NDArray[Any]:
    if not isinstance(value, np.ndarray):
        raise DataError(
            f"{where}: {part} must be a NumPy array, got a {type(value).__name__}: for a tensor, pass tensor.numpy()."
        )
    return value


def _kind(array: NDArray[Any]) -> str:
    return f"{array.dtype} {list(array.shape)}"


def need_classes(graph: Graph, where: str = "the graph") -> None:
    """Refuse a graph on which every model is right, or none can be trained."""
    known = len(np.unique(graph.y[graph.y >= 0]))
    if known < 2:
        found = "all labeled nodes are of one class" if known else "no node has a label"
        raise DataError(f"{where}: {found}, so there is nothing to learn: label nodes of at least two classes.")


def need_pyg() -> None:
    """Refuse before the training what would fail after it: the trained model is made of PyG's layers."""
    if importlib.util.find_spec("torch_geometric") is None:
        raise MissingPackageError(
            "fit returns a module of PyG's layers and needs torch_geometric: run pip install 'propreg[fit]'.",
            name="torch_geometric",
        )


def warn_of_unused_weights(graph: Graph, method: str, model: str = "", stacklevel: int = 4) -> None:
    """The regularizer uses edge weights that a user's module (no name), a GAT and an MLP do not get."""
    if graph.edge_weight is None or not REGULARIZERS[method].uses_edges:
        return
    who, fix = "a model of your own, forward(x, edge_index), does not get them", "keep them in the module, or "
    if model:
        who, fix = f"model={model!r} does not", ""
    doubt = f"{REGULARIZERS[method].title} uses the graph's edge weights, but {who}: {fix}train without them."
    _warn_once(doubt, graph, stacklevel=stacklevel)


def warn_of_one_class(graph: Graph, parts: Mapping[str, Split]) -> None:
    """A split whose training nodes are of one class trains a model that predicts nothing else."""
    alone = (
        []
        if graph.targets is not None
        else [name for name, split in parts.items() if len(np.unique(graph.y[split.train])) == 1]
    )
    if alone:
        many = f"{len(alone)} of {len(parts)} splits" if len(parts) > 1 else "the split"
        doubt = f"all training nodes of {many} ({alone[0]!r}) are of one class, so every model predicts that class"
        _warn_once(f"{doubt}: train on nodes of at least two.", graph, stacklevel=4)


def warn_of_unscaled(graph: Graph) -> None:
    """Large features saturate what a built-in model computes of them, in a GAT the attention, which turns on rounding.

    With features of up to 40,000, GATs that differed in their batch alone were 4.9 points apart after 30 epochs.
    """
    values = graph.x.filled() if isinstance(graph.x, SparseFeatures) else graph.x
    largest = max(float(values.max(initial=0)), -float(values.min(initial=0)))
    if largest > LARGEST_FEATURE:
        doubt = (
            f"features are as large as {largest:,.0f} and not scaled: training is slow or unstable, and with a GAT "
            "rounding alone, as between two batches, changes the accuracy by points: leave scale out, or scale them "
            "to about 1."
        )
        _warn_once(doubt, graph, stacklevel=4)


def _warn_once(doubt: str, graph: Graph, stacklevel: int) -> None:
    """Warn once per graph, at the place that called fit."""
    sha = hashlib.sha256(np.ascontiguousarray(graph.edge_index).data)
    sha.update(np.ascontiguousarray(graph.y).data)
    key = doubt, sha.digest()
    if key not in _given:
        warnings.warn(doubt, stacklevel=stacklevel)
        _given.add(key)  # after it: if warnings are errors, the next call warns too


def architecture(model: Any) -> Model:
    """The settings of a model given by name, or the given settings."""
    if isinstance(model, Model):
        found = in_python(model)
        check_model(found)
        check_settings(found)
        return found
    if isinstance(model, nn.Module):
        raise TypeError("model is a module, but every run needs a new one: pass a function, like lambda: MyGNN(...).")
    _errors.one_of("model", model, MODELS, ", a propreg.engine.Model or a function that makes a module")
    return MODELS[model].default


def training(
    model: Model, given: Mapping[str, Any], dropout: float, optimizer: Any = "adam"
) -> tuple[Replica, Protocol]:
    """The settings of a training: those given, and the model's own in place of None."""
    found = model.architecture.trained_with(**given)
    like = Replica(
        lr=number("lr", found["lr"]),
        weight_decay=number("weight_decay", found["weight_decay"]),
        dropout=dropout,
        patience=whole("patience", found["patience"], 0, ": to train all epochs, pass max_epochs"),
    )
    epochs = whole("max_epochs", found["max_epochs"], 1)
    return like, Protocol(found["rule"], epochs, found["weight_decay_scope"], optimizer)


def optimizer_of(given: Any, own: object, settings: Mapping[str, Any], resume: object) -> tuple[str, MakeTorch | None]:
    """The name of an optimizer and what makes one in its place; refuses what a function does not go with."""
    if not callable(given):
        _errors.one_of("optimizer", given, OPTIMIZERS, ", or a function of a module's parameters")
        return given, None
    if own is None:
        raise ValueError("optimizer as a function is for a module of your own: name 'adam', 'adamw' or 'sgd'.")
    for name in ("lr", "weight_decay"):
        if settings[name] is not None:
            raise ValueError(f"{name} is set by your own optimizer: leave {name} out.")
    if resume is not None:
        raise ValueError("resume cannot know whether an optimizer of your own is the same: leave resume out.")
    return "adam", given


def in_python(model: Model) -> Model:
    """The same settings with Python's numbers: neither a run's identity nor a saved file can hold NumPy's.

    Example:
        >>> type(in_python(Model(hidden=np.int64(8))).hidden)
        <class 'int'>
    """
    given = {field.name: getattr(model, field.name) for field in fields(model)}
    return replace(model, **{name: v.item() for name, v in given.items() if isinstance(v, np.number)})


def strengths(mu: Any, method: str, *, trained: bool = True) -> tuple[float, ...]:
    """All strengths to train, ascending, 0 first: the only one of a model that is not trained."""
    if isinstance(mu, str):
        _errors.one_of("mu", mu, ("auto",), ", a number or a list of numbers")
        return (0.0, *(REGULARIZERS[method].grid if trained else ()))
    try:
        if isinstance(mu, bytes | bytearray):
            raise TypeError
        wanted = [_strength(m) for m in (mu if isinstance(mu, Iterable) else [mu])]
    except (TypeError, ValueError):
        raise TypeError(f"mu must be 'auto', a number or a list of numbers, got {mu!r}.") from None
    if not wanted or not all(np.isfinite(m) and m >= 0 for m in wanted):
        raise ValueError(f"mu must hold finite numbers of at least 0, got {mu!r}.")
    return tuple(sorted({0.0, *wanted}))


_DIGITS = {"bfloat16": 2, "float16": 3, "float32": 7}


def _strength(given: Any) -> float:
    """A strength as a float; in lower precision as it is written, so that 0.1 in float32 is 0.1.

    Example:
        >>> import torch
        >>> _strength(np.float32(0.1)), _strength(torch.tensor(0.2)), _strength(1)
        (0.1, 0.2, 1.0)
    """
    if isinstance(given, str | bytes):
        raise TypeError
    digits = next((n for kind, n in _DIGITS.items() if kind in str(getattr(given, "dtype", ""))), None)
    return float(given) if digits is None else float(f"{float(given):.{digits}g}")


def number_of_seeds(seeds: int | None, splits: int) -> int:
    """The number of trainings per split and strength: several, and more if there is one split."""
    if seeds is None:
        return 10 if splits == 1 else 3
    return whole("seeds", seeds, 1)


def check_progress(progress: object) -> None:
    """Refuse anything but the four values."""
    if progress is not None and not isinstance(progress, bool) and progress != "lines":
        raise ValueError(f"progress must be True, False, None or 'lines', got {progress!r}.")


def whole(name: str, value: Any, least: int, fix: str = "") -> int:
    """A whole number.

    Example:
        >>> whole("seeds", np.int64(3), 1)
        3
        >>> whole("seeds", 1.5, 1)
        Traceback (most recent call last):
        ...
        ValueError: seeds must be a whole number of at least 1, got 1.5.
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}{fix}.")
    if value > MOST:
        raise ValueError(f"{name} must be at most {MOST:,}, got {value!r}.")
    return int(value)


def number(name: str, value: Any) -> float:
    """A finite number of at least 0.

    Example:
        >>> number("lr", np.float64(0.5))
        0.5
        >>> number("lr", "0.1")
        Traceback (most recent call last):
        ...
        ValueError: lr must be a finite number of at least 0, got '0.1'.
    """
    real = isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)
    if not real or not math.isfinite(value) or value < 0:
        raise ValueError(f"{name} must be a finite number of at least 0, got {value!r}.")
    return float(value)
