"""Tune μ and train, in one batch."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from torch import nn

from propreg import _errors
from propreg.data.graph import Graph
from propreg.engine import Method, Model, Options, Problem, Protocol, Replica, Result, train_all
from propreg.engine.batches import replicas_that_fit
from propreg.engine.surroundings import ordinary_modes
from propreg.fitting.choosing import Scores, choose
from propreg.fitting.estimate import Estimate, quicker_command
from propreg.fitting.export import as_module
from propreg.fitting.given_numbers import number, whole
from propreg.fitting.given_splits import Splits, named_splits
from propreg.fitting.methods import METHODS, Preset, method_of
from propreg.fitting.own_batch import replicas_together
from propreg.fitting.own_model import Factory, OwnNetwork
from propreg.fitting.predicting import predict_of, predicted
from propreg.fitting.progress import Progress
from propreg.fitting.random_state import random_state_kept
from propreg.fitting.reading import graph_of, warn_of_unseen_weights, without_splits
from propreg.fitting.reasons import facts_of
from propreg.fitting.result import FitResult
from propreg.fitting.settings import (
    architecture,
    check_progress,
    device_of,
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
    splits: Splits | None = None,
    seeds: int | None = None,
    train_per_class: int | None = None,
    val_per_class: int | None = None,
    lr: float = 0.01,
    weight_decay: float = 5e-4,
    dropout: float | None = None,
    patience: int = 100,
    max_epochs: int = 1000,
    device: str | torch.device = "auto",
    progress: Literal["lines"] | bool | None = None,
) -> FitResult:
    """Train the plain model and P-reg at every strength over several splits and seeds, and pick μ on validation.

    All runs train together: on a GPU tuning μ costs little more than one training, and on two CPU cores a dozen
    strengths take about as long as five trainings. Strength 0, the plain model, is always among them: where it is best
    on validation, it is what you get.

    Args:
        data: A PyG ``Data`` or what :func:`propreg.load_graph` read. Its own split is used where it has one. Edges are
            taken as listed, with a warning where hardly one also runs the other way; the model has an output for each
            class number up to the largest, with a warning where no node has one of them.
        model: ``"gcn"``, ``"gat"``, ``"mlp"``, ``"appnp"``; a :class:`propreg.engine.Model` with other settings; or a
            function without arguments that makes a module ``forward(x, edge_index)`` of your own. It is called for
            every run after torch's random numbers are set to the run's seed; parameters that require no gradient stay
            as they are. On a CPU its runs are trained one after another; on a GPU together where
            ``torch.func.vmap`` can take it, and what it drops then depends on the batch.
        mu: ``"auto"`` for the method's own grid (from 0.05 to 1 for P-reg), one strength, or a list of them.
        method: ``"preg"``, or what the paper compares with: ``"laplacian"``, ``"confidence_penalty"`` or
            ``"label_smoothing"``.
        preset: The paper's formula or the official code's; see :meth:`propreg.PReg.preset`.
        splits: How many random splits to draw where the data has none, by default 5; or the splits themselves, as a
            list or by name (:func:`propreg.data.splits.official_splits`, :func:`propreg.random_split`).
        seeds: Trainings per split and strength; default 3, or 10 where there is one split.
        train_per_class, val_per_class: Of the random splits; by default 20 and 30.
        lr, weight_decay, dropout, patience, max_epochs: Of the training; ``dropout`` defaults to the model's own.
        device: ``"auto"``, ``"cpu"``, ``"cuda"`` or ``"cuda:1"``, or a ``torch.device``.
        progress: Show a bar; None shows it on a terminal only, and ``"lines"`` says how long it takes where there is
            none. Ctrl-C returns what is finished.

    Returns:
        The result. All is trained in float32 whatever the type of ``data.x``, and its ``model`` takes float32 features:
        call ``result.model(data.x.float(), data.edge_index)``. Torch's random state is left as it was. A model of your
        own draws from it: do not fit two of those at once in two threads.

    Example:
        >>> from propreg import fit, load_dataset
        >>> result = fit(load_dataset("digits", split=0), mu=[0.5], seeds=1, max_epochs=5)
        >>> result.mu in (0.0, 0.5), result.test.shape
        (True, (2, 1, 1))
    """
    _errors.one_of("method", method, METHODS)
    _errors.one_of("preset", preset, ("paper", "reference"))
    check_progress(progress)
    graph = graph_of(data)
    need_classes(graph)
    own = None if isinstance(model, str | Model | nn.Module) or not callable(model) else model
    spec = Model() if own else architecture(model)
    if not own:
        need_pyg()
    elif dropout is not None:
        raise ValueError("dropout is for the built-in models: set it inside the module of your own.")
    if own or spec.name in ("gat", "mlp"):
        warn_of_unseen_weights(graph, method, "" if own else spec.name)
    mus, parts = strengths(mu, method), named_splits(graph, splits, train_per_class, val_per_class)
    shape = (len(mus), len(parts), number_of_seeds(seeds, len(parts)))
    rate = number("dropout", dropout) if dropout is not None else (0.6 if spec.name == "gat" else 0.5)
    max_epochs = whole("max_epochs", max_epochs, 1)
    patience = whole("patience", patience, 0, ": to train all epochs, give as many as max_epochs")
    like = Replica(
        lr=number("lr", lr), weight_decay=number("weight_decay", weight_decay), dropout=rate, patience=patience
    )
    # All strengths of a split come together: what an interruption leaves can then be compared.
    names = list(parts)
    order = [(m, s, n) for s in range(shape[1]) for n in range(shape[2]) for m in range(shape[0])]
    replicas = [replace(like, seed=seed, split=names[s], strength=mus[m]) for m, s, seed in order]
    on = device_of(device)
    regulariser, protocol = method_of(method, preset), Protocol(max_epochs=max_epochs)
    options = Options(keep_history=True, keep_weights=True)
    with ordinary_modes(on), random_state_kept(on):
        problem = Problem(without_splits(graph), parts, on)
        network = OwnNetwork(own, problem) if own else None
        if network is not None:
            batch = replicas_together(network, problem, regulariser, len(replicas))
            options = replace(options, network=network, workers=1, batch=batch)
        bar = Progress(len(replicas), progress)
        quicker = quicker_command(shape[1], shape[2], shape[0]) if progress == "lines" else ""
        found, finished = _train(problem, spec, regulariser, replicas, protocol, options, bar, quicker)
        by_place = {order[number]: result for number, result in found.items()}
        results = [by_place.get((m, s, n)) for m, s, n in np.ndindex(shape)]
        scores = Scores.of(results, shape)
        best = _best(scores, finished=finished)
        each = shape[1] * shape[2]
        of_plain, of_best = results[:each], results[best * each : (best + 1) * each]
        champion = max((r for r in of_best if r is not None and not r.failed), key=lambda r: r.val)
        if network is not None:
            module = network.module(champion.weights, champion.replica.seed)
        else:
            module = as_module(spec, champion.weights, rate, weighted=graph.edge_weight is not None)
        predict = network.predict if network is not None else predict_of(problem, spec)
        classes = {
            mu: predicted(predict, runs, shape[1:], graph.num_nodes)
            for mu, runs in ((mus[0], of_plain), (mus[best], of_best))
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
        classes,
        rate,
        facts_of(graph, parts),
    )


def _train(
    problem: Problem,
    spec: Model,
    regulariser: Method,
    replicas: Sequence[Replica],
    protocol: Protocol,
    options: Options,
    bar: Progress,
    quicker: str,
) -> tuple[dict[int, Result], bool]:
    """The results by number in ``replicas``, and whether all are there: an interruption keeps those that are."""
    found: dict[int, Result] = {}
    groups = math.ceil(len(replicas) / (options.batch or replicas_that_fit(problem, spec, regulariser)))
    with bar:
        epochs = (min(replicas[0].patience, protocol.max_epochs), protocol.max_epochs)
        estimate = Estimate(groups, epochs, bar.say, quicker)
        training = train_all(problem, spec, regulariser, replicas, protocol, replace(options, stop=estimate.epoch))
        try:
            for i, result in training:
                found[i] = result
                bar.advance(result)
        except KeyboardInterrupt:
            return found, False
    return found, True


def _best(scores: Scores, *, finished: bool) -> int:
    try:
        return choose(scores)
    except RuntimeError:
        if not finished:
            raise KeyboardInterrupt from None  # interrupted before there was anything to return
        raise
