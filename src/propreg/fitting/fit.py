"""Tune μ and train, in one batch."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch

from propreg import _errors
from propreg.data.graph import Graph, Split
from propreg.data.own import read_graph
from propreg.data.splits import random_split
from propreg.engine import Method, Model, Options, Problem, Protocol, Replica, Result, train_all
from propreg.fitting.export import as_module
from propreg.fitting.own_model import Factory, OwnNetwork
from propreg.fitting.progress import Progress
from propreg.fitting.result import FitResult
from propreg.statistics import Runs

if TYPE_CHECKING:
    from torch_geometric.data import Data

MODELS = {
    "gcn": Model("gcn"),
    "gat": Model("gat", hidden=16, input_dropout=0.6, attention_dropout=0.6),
    "mlp": Model("mlp"),
    "appnp": Model("appnp", input_dropout=0.5),
}
GRID = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


def fit(
    data: "Data | Graph",
    model: str | Model | Factory = "gcn",
    mu: Literal["auto"] | float | Sequence[float] = "auto",
    *,
    preset: Literal["paper", "reference"] = "paper",
    splits: int = 5,
    seeds: int | None = None,
    train_per_class: int = 20,
    val_per_class: int = 30,
    lr: float = 0.01,
    weight_decay: float = 5e-4,
    dropout: float | None = None,
    patience: int = 100,
    max_epochs: int = 1000,
    device: str = "auto",
    progress: bool | None = None,
) -> FitResult:
    """Train the plain model and P-reg at every strength over several splits and seeds, and pick μ on validation.

    All runs train together, so that tuning μ costs little more than one training. Strength 0, the plain model, is
    always among them: where it is best on validation, it is what you get.

    Args:
        data: A PyG ``Data`` or what :func:`propreg.load_graph` read. Its own split is used where it has one.
        model: ``"gcn"``, ``"gat"``, ``"mlp"``, ``"appnp"``; a :class:`propreg.engine.Model` with other settings; or a
            function without arguments that makes a module ``forward(x, edge_index)`` of your own.
        mu: ``"auto"`` for a grid from 0.05 to 1, one strength, or a list of them.
        preset: The paper's formula or the official code's; see :meth:`propreg.PReg.preset`.
        splits: How many random splits to draw where the data has none.
        seeds: Trainings per split and strength; default 3, or 10 where there is one split.
        train_per_class, val_per_class: Of the random splits.
        lr, weight_decay, dropout, patience, max_epochs: Of the training; ``dropout`` defaults to the model's own.
        device: ``"auto"``, ``"cpu"`` or ``"cuda"``.
        progress: Show a bar; None shows it on a terminal only. Ctrl-C returns what is finished.

    Example:
        >>> from propreg import fit, load_dataset
        >>> result = fit(load_dataset("digits", split=0), mu=[0.5], seeds=1, max_epochs=5)
        >>> result.mu in (0.0, 0.5), result.test.shape
        (True, (2, 1, 1))
    """
    graph = data if isinstance(data, Graph) else read_graph(data)
    own = model if callable(model) else None
    architecture = Model() if own else _architecture(model)
    mus = _strengths(mu)
    parts = _splits(graph, splits, train_per_class, val_per_class)
    seeds = seeds or (10 if len(parts) == 1 else 3)
    rate = dropout if dropout is not None else (0.6 if architecture.name == "gat" else 0.5)
    replicas = [
        Replica(seed, name, m, lr=lr, weight_decay=weight_decay, dropout=rate, patience=patience)
        for m in mus
        for name in parts
        for seed in range(seeds)
    ]
    problem = Problem(graph, parts, _device(device))
    results: dict[int, Result] = {}
    protocol, options = Protocol(max_epochs=max_epochs), Options(keep_history=True, keep_weights=True)
    if own:
        network = OwnNetwork(own, problem)
        options = replace(options, network=network, workers=1, batch=len(replicas) if network.together else 1)
    finished = True
    with Progress(len(replicas), progress) as bar:
        try:
            for place, result in train_all(problem, architecture, Method.preset(preset), replicas, protocol, options):
                results[place] = result
                bar.advance(result)
        except KeyboardInterrupt:
            finished = False
    best, val, test = _best(mus, (len(mus), len(parts), seeds), results)
    champion = _champion(results, mus[best])
    module = network.module(champion.weights) if own else as_module(architecture, champion.weights, rate)
    runs = tuple(results[place] for place in sorted(results))
    return FitResult(mus[best], mus, val, test, module, runs, None if own else architecture, finished)


def _best(mus: tuple[float, ...], shape: tuple[int, int, int], results: dict[int, Result]) -> tuple[int, Runs, Runs]:
    """Which strength has the highest mean validation accuracy, and all accuracies."""
    val, test = np.full(shape, np.nan), np.full(shape, np.nan)
    for place, result in results.items():
        if not result.failed:
            val.flat[place], test.flat[place] = result.val, result.test
    means = val.reshape(len(mus), -1).mean(axis=1)
    if np.isnan(means).all():
        raise RuntimeError("no strength has all of its runs: nothing can be chosen; let the fit run for longer.")
    return int(np.nanargmax(np.round(means, 12))), val, test  # of equal means the first, the smaller strength


def _champion(results: dict[int, Result], mu: float) -> Result:
    return max((r for r in results.values() if r.replica.strength == mu and not r.failed), key=lambda r: r.val)


def _architecture(model: Any) -> Model:
    if isinstance(model, Model):
        return model
    _errors.one_of("model", model, MODELS)
    return MODELS[model]


def _strengths(mu: Any) -> tuple[float, ...]:
    if isinstance(mu, str):
        _errors.one_of("mu", mu, ("auto",), ", a number or a list of numbers")
        return (0.0, *GRID)
    wanted = [float(m) for m in (mu if isinstance(mu, Sequence) else [mu])]
    if not wanted or not all(np.isfinite(m) and m >= 0 for m in wanted):
        raise ValueError(f"mu must hold finite numbers of at least 0, but {mu!r} came.")
    return tuple(sorted({0.0, *wanted}))


def _splits(graph: Graph, count: int, train: int, val: int) -> dict[str, Split]:
    if graph.split is not None:
        parts = {"own": graph.split}
    else:
        if count < 1:
            raise ValueError(f"splits must be at least 1, but {count} came.")
        parts = {f"random-{i}": random_split(graph.y, train, val, i) for i in range(count)}
    for split in parts.values():
        for name in ("train", "val", "test"):
            if not getattr(split, name).any():
                raise ValueError(f"the split has no {name} nodes: give each of train, val and test at least one.")
    return parts


def _device(name: str) -> torch.device:
    _errors.one_of("device", name.split(":", maxsplit=1)[0], ("auto", "cpu", "cuda"))
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(name)
