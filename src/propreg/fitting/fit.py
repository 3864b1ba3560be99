"""Tune μ and train, in one batch."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from propreg import _errors
from propreg.data.graph import Graph
from propreg.engine import Model, Options, Problem, Protocol, Replica, Result, train_all
from propreg.engine.batches import replicas_that_fit
from propreg.engine.models import Network
from propreg.engine.step import nothing_dropped
from propreg.fitting.choosing import Scores, choose
from propreg.fitting.estimate import Estimate, quicker_command
from propreg.fitting.export import as_module
from propreg.fitting.methods import METHODS, Preset, method_of
from propreg.fitting.own_model import Factory, OwnNetwork
from propreg.fitting.progress import Progress
from propreg.fitting.reading import graph_of
from propreg.fitting.reasons import facts_of
from propreg.fitting.result import FitResult
from propreg.fitting.settings import (
    Splits,
    architecture,
    device_of,
    named_splits,
    need_classes,
    need_pyg,
    number_of_seeds,
    strengths,
)

if TYPE_CHECKING:
    from torch_geometric.data import Data


def fit(
    data: "Data | Graph",
    model: str | Model | Factory = "gcn",
    mu: Literal["auto"] | float | Sequence[float] = "auto",
    *,
    method: str = "preg",
    preset: Preset = "paper",
    splits: Splits = 5,
    seeds: int | None = None,
    train_per_class: int = 20,
    val_per_class: int = 30,
    lr: float = 0.01,
    weight_decay: float = 5e-4,
    dropout: float | None = None,
    patience: int = 100,
    max_epochs: int = 1000,
    device: str = "auto",
    progress: Literal["lines"] | bool | None = None,
) -> FitResult:
    """Train the plain model and P-reg at every strength over several splits and seeds, and pick μ on validation.

    All runs train together, so that tuning μ costs little more than one training. Strength 0, the plain model, is
    always among them: where it is best on validation, it is what you get.

    Args:
        data: A PyG ``Data`` or what :func:`propreg.load_graph` read. Its own split is used where it has one. Edges are
            taken as listed, with a warning where hardly one also runs the other way; the model has an output for each
            class number up to the largest, with a warning where no node has one of them.
        model: ``"gcn"``, ``"gat"``, ``"mlp"``, ``"appnp"``; a :class:`propreg.engine.Model` with other settings; or a
            function without arguments that makes a module ``forward(x, edge_index)`` of your own.
        mu: ``"auto"`` for the method's own grid (from 0.05 to 1 for P-reg), one strength, or a list of them.
        method: ``"preg"``, or what the paper compares with: ``"laplacian"``, ``"confidence_penalty"`` or
            ``"label_smoothing"``.
        preset: The paper's formula or the official code's; see :meth:`propreg.PReg.preset`.
        splits: How many random splits to draw where the data has none; or the splits themselves, as a list or by name
            (:func:`propreg.data.splits.official_splits`, :func:`propreg.random_split`).
        seeds: Trainings per split and strength; default 3, or 10 where there is one split.
        train_per_class, val_per_class: Of the random splits.
        lr, weight_decay, dropout, patience, max_epochs: Of the training; ``dropout`` defaults to the model's own.
        device: ``"auto"``, ``"cpu"`` or ``"cuda"``.
        progress: Show a bar; None shows it on a terminal only, and ``"lines"`` says how long it takes where there is
            none. Ctrl-C returns what is finished.

    Example:
        >>> from propreg import fit, load_dataset
        >>> result = fit(load_dataset("digits", split=0), mu=[0.5], seeds=1, max_epochs=5)
        >>> result.mu in (0.0, 0.5), result.test.shape
        (True, (2, 1, 1))
    """
    _errors.one_of("method", method, METHODS)
    _errors.one_of("preset", preset, ("paper", "reference"))
    graph = graph_of(data)
    need_classes(graph)
    own = None if isinstance(model, str | Model | nn.Module) or not callable(model) else model
    spec = Model() if own else architecture(model)
    if not own:
        need_pyg()
    mus, parts = strengths(mu, method), named_splits(graph, splits, train_per_class, val_per_class)
    shape = (len(mus), len(parts), number_of_seeds(seeds, len(parts)))
    rate = dropout if dropout is not None else (0.6 if spec.name == "gat" else 0.5)
    # All strengths of a split come together: what an interruption leaves can then be compared.
    names = list(parts)
    order = [(m, s, n) for s in range(shape[1]) for n in range(shape[2]) for m in range(shape[0])]
    replicas = [
        Replica(seed, names[s], mus[m], lr=lr, weight_decay=weight_decay, dropout=rate, patience=patience)
        for m, s, seed in order
    ]
    problem = Problem(graph, parts, device_of(device))
    network: Network = OwnNetwork(own, problem) if own else problem.network(spec)
    options = Options(keep_history=True, keep_weights=True)
    if isinstance(network, OwnNetwork):
        options = replace(options, network=network, workers=1, batch=len(replicas) if network.together else 1)
    regulariser, protocol = method_of(method, preset), Protocol(max_epochs=max_epochs)
    groups = math.ceil(len(replicas) / (options.batch or replicas_that_fit(problem, spec, regulariser)))
    results: list[Result | None] = [None] * len(replicas)
    finished = True
    with Progress(len(replicas), progress) as bar:
        quicker = quicker_command(shape[1], shape[2], shape[0]) if progress == "lines" else ""
        estimate = Estimate(groups, (min(patience, max_epochs), max_epochs), bar.say, quicker)
        training = train_all(problem, spec, regulariser, replicas, protocol, replace(options, stop=estimate.epoch))
        try:
            for place, result in training:
                results[np.ravel_multi_index(order[place], shape)] = result
                bar.advance(result)
        except KeyboardInterrupt:
            finished = False
    scores = Scores.of(results, shape)
    try:
        best = choose(scores)
    except RuntimeError:
        if not finished:
            raise KeyboardInterrupt from None  # interrupted before there was anything to return
        raise
    each = shape[1] * shape[2]
    of_plain, of_best = results[:each], results[best * each : (best + 1) * each]
    champion = max((r for r in of_best if r is not None and not r.failed), key=lambda r: r.val)
    module = (
        network.module(champion.weights)
        if isinstance(network, OwnNetwork)
        else as_module(spec, champion.weights, rate, weighted=graph.edge_weight is not None)
    )
    predicted = {
        mus[0]: _predicted(network, of_plain, shape, problem),
        mus[best]: _predicted(network, of_best, shape, problem),
    }
    return FitResult(
        mus[best],
        mus,
        scores.val,
        scores.test,
        module,
        tuple(r for r in results if r is not None),
        None if own else spec,
        finished,
        method,
        preset,
        parts,
        predicted,
        rate,
        facts_of(graph, parts),
    )


@torch.no_grad()
def _predicted(
    network: Network, results: list[Result | None], shape: tuple[int, int, int], problem: Problem
) -> NDArray[np.int64]:
    """The class of every node by each run's reported weights [splits, seeds, nodes]."""
    found = np.full((len(results), problem.num_nodes), -1, np.int64)
    for place, result in enumerate(results):
        if result is None or result.failed:
            continue
        p = {name: torch.as_tensor(w).to(problem.device).unsqueeze(0) for name, w in result.weights.items()}
        found[place] = network.finish(p, network.begin(p), nothing_dropped)[0].argmax(-1).cpu().numpy()
    return found.reshape(*shape[1:], -1)
