"""What ``fit`` is asked to train, from what its caller wrote: architecture, strengths, splits, device."""

import importlib.util
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from propreg import _errors
from propreg.data.errors import DataError
from propreg.data.graph import Graph, Split
from propreg.data.splits import random_split
from propreg.engine.spec import Model
from propreg.fitting.methods import METHODS

MODELS = {
    "gcn": Model("gcn"),
    "gat": Model("gat", hidden=16, input_dropout=0.6, attention_dropout=0.6),
    "mlp": Model("mlp"),
    "appnp": Model("appnp", input_dropout=0.5),
}
Splits = int | Mapping[str, Split] | Sequence[Split]


def architecture(model: Any) -> Model:
    """The settings of a model given by name, or those given."""
    if isinstance(model, Model):
        return model
    if isinstance(model, nn.Module):
        raise TypeError("model is a module, but every run needs a new one: pass a function, like lambda: MyGNN(...).")
    _errors.one_of("model", model, MODELS, ", a propreg.engine.Model or a function that makes a module")
    return MODELS[model]


def strengths(mu: Any, method: str) -> tuple[float, ...]:
    """All strengths to train, ascending, 0 first."""
    if isinstance(mu, str):
        _errors.one_of("mu", mu, ("auto",), ", a number or a list of numbers")
        return (0.0, *METHODS[method].grid)
    try:
        wanted = [float(m) for m in (mu if isinstance(mu, Iterable) else [mu])]
    except (TypeError, ValueError):
        raise TypeError(f"mu must be 'auto', a number or a list of numbers, but {mu!r} came.") from None
    if not wanted or not all(np.isfinite(m) and m >= 0 for m in wanted):
        raise ValueError(f"mu must hold finite numbers of at least 0, but {mu!r} came.")
    return tuple(sorted({0.0, *wanted}))


def named_splits(graph: Graph, splits: Splits, train: int, val: int) -> dict[str, Split]:
    """The splits to train on: those given, the graph's own, or random ones."""
    if isinstance(splits, bool) or not isinstance(splits, int | np.integer | Mapping | Sequence):
        raise TypeError(f"splits must be a number, or splits themselves, but a {type(splits).__name__} came.")
    if isinstance(splits, Mapping):
        parts = dict(splits)
    elif isinstance(splits, Sequence):
        parts = {str(i): split for i, split in enumerate(splits)}
    elif graph.split is not None:
        parts = {"own": graph.split}
    elif splits < 1:
        raise ValueError(f"splits must be at least 1, but {splits} came.")
    else:
        parts = {f"random-{i}": random_split(graph.y, train, val, i) for i in range(int(splits))}
    if not parts:
        raise ValueError("splits is empty: give at least one split.")
    for name, split in parts.items():
        _check_split(name, split, graph)
    return parts


def number_of_seeds(seeds: int | None, splits: int) -> int:
    """How many trainings per split and strength: several, more where there is one split."""
    if seeds is None:
        return 10 if splits == 1 else 3
    if isinstance(seeds, bool) or not isinstance(seeds, int | np.integer) or seeds < 1:
        raise ValueError(f"seeds must be a whole number of at least 1, but {seeds!r} came.")
    return int(seeds)


def device_of(name: str) -> torch.device:
    """The device, refused here where torch has none, not in the middle of a training."""
    _errors.one_of("device", str(name).split(":", maxsplit=1)[0], ("auto", "cpu", "cuda"))
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    elif name != "cpu" and not torch.cuda.is_available():
        raise ValueError(
            f"device is {name!r}, but torch sees no CUDA device: use 'cpu', or run propreg doctor --devices to see why."
        )
    return torch.device(name)


def need_classes(graph: Graph, where: str = "the graph") -> None:
    """Refuse a graph on which every model is right, or none can be trained."""
    known = len(np.unique(graph.y[graph.y >= 0]))
    if known < 2:
        said = "all labelled nodes are of one class" if known else "no node has a label"
        raise DataError(f"{where}: {said}, and there is nothing to learn: give nodes of two classes a label.")


def need_pyg() -> None:
    """Refuse before the training what would fail after it: the trained model is made of PyG's layers."""
    if importlib.util.find_spec("torch_geometric") is None:
        raise ModuleNotFoundError(
            "fit returns a module of PyG's layers and needs torch_geometric: run pip install 'propreg[all]'.",
            name="torch_geometric",
        )


def _check_split(name: str, split: Split, graph: Graph) -> None:
    if not isinstance(split, Split):
        raise TypeError(f"split {name!r} must be a propreg Split, but a {type(split).__name__} came.")
    for part in ("train", "val", "test"):
        mask = getattr(split, part)
        if mask.shape != graph.y.shape:
            raise DataError(f"split {name!r} has {mask.shape} {part} nodes but the graph has {graph.num_nodes} nodes.")
        if not mask.any():
            raise DataError(f"split {name!r} has no {part} nodes: give each of train, val and test at least one.")
