"""Tune μ and train, in one batch."""

import math
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from time import monotonic
from traceback import clear_frames
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from torch import nn

from propreg import _errors
from propreg.data.graph import Graph, Split, Task
from propreg.data.scaling import Scale, Scaling, scaling_of
from propreg.devices import find_device
from propreg.engine import Method, Model, Options, Problem, Protocol, Replica, Result, train_all
from propreg.engine.models.user_module import Factory, OwnNetwork
from propreg.engine.regularizers import REGULARIZERS, tunable
from propreg.engine.regularizers.own import Function, own_regularizer
from propreg.engine.regularizers.regularizer import Preset
from propreg.engine.torch_modes import ordinary_modes, random_state_kept
from propreg.engine.training.batches import replicas_that_fit
from propreg.engine.training.optimizers import MakeTorch
from propreg.fitting.batching import BatchSize, batching, prepared
from propreg.fitting.inputs import (
    architecture,
    check_progress,
    graph_of,
    need_classes,
    need_pyg,
    number,
    number_of_seeds,
    optimizer_of,
    strengths,
    training,
    warn_of_one_class,
    warn_of_unscaled,
    warn_of_unused_weights,
    without_splits,
)
from propreg.fitting.job import Job
from propreg.fitting.joining import are_several, by_part, joined
from propreg.fitting.kept import KeptRuns, missing_groups, settings_of
from propreg.fitting.leaderboard import fit_several, several
from propreg.fitting.picking import Select, check_select
from propreg.fitting.predictions import extra_of
from propreg.fitting.progress import Estimate, Progress, quicker_command
from propreg.fitting.result import FitResult
from propreg.fitting.scoring import ACCURACY, Compute, Direction, check_score, score_of
from propreg.fitting.splits import Splits, judgeable, named_splits, splits_of_masks, without_masks
from propreg.fitting.targets import check_task, method_of_task, split_targets
from propreg.fitting.together import processes_for

if TYPE_CHECKING:
    from torch_geometric.data import Data

Watch = Callable[[Callable[[], FitResult]], object]


def fit(
    data: "Data | Graph | Sequence[Data | Graph] | Mapping[str, Any]",
    model: str | Model | Factory = "gcn",
    mu: Literal["auto"] | float | Sequence[float] = "auto",
    *,
    models: Sequence[str | Model | Factory] | None = None,
    inputs: Sequence[str] | None = None,
    method: str | Function | Sequence[str | Function] = "preg",
    preset: Preset = "paper",
    regularizer: str | Function | Sequence[str | Function] | None = None,
    scale: Scale | Scaling = "auto",
    task: Task = "classes",
    metric: "str | Compute | tuple[Compute, Direction] | None" = None,
    select: Select | None = None,
    class_weight: Literal["balanced"] | None = None,
    splits: Splits | None = None,
    test: Literal["cv"] | None = None,
    seeds: int | None = None,
    train_per_class: int | None = None,
    val_per_class: int | None = None,
    lr: float | None = None,
    weight_decay: float | None = None,
    dropout: float | None = None,
    patience: int | None = None,
    max_epochs: int | None = None,
    batch: BatchSize = "auto",
    optimizer: 'Literal["adam", "adamw", "sgd"] | MakeTorch' = "adam",
    device: str | torch.device = "auto",
    progress: Literal["lines"] | bool | None = None,
    on_error: Literal["record", "raise"] = "record",
    refit: Literal["train+val"] | None = None,
    time_limit: float | None = None,
    callbacks: Sequence[Callable[[Result], object]] = (),
    watch: Watch | None = None,
    resume: str | os.PathLike[str] | None = None,
) -> FitResult:
    """Train the plain model and P-reg at every strength over several splits and seeds, and pick μ on validation.

    All runs train together: on a GPU tuning μ costs little more than one training, and on two CPU cores a dozen
    strengths take about as long as five trainings. Strength 0, the plain model, is always among them: if it is best
    on validation, it is what you get.

    Args:
        data: A PyG ``Data`` or the result of :func:`propreg.load_graph`. Its own split is used if it has one, or all of
            them if its masks are [nodes, k]; without test nodes the verdict is on validation. Nodes of class −1 have no
            label. Edges are used as listed, with a warning if hardly any runs both ways; the model has an output for
            each class number up to the largest, with a warning if no node has one of them. Several graphs in a list are
            one block-diagonal graph; ``{"train": [...], "val": [...], "test": [...]}`` trains on some, tests on others.
        model: ``"gcn"``, ``"gat"``, ``"mlp"``, ``"appnp"`` or another name of ``propreg methods``, among them training
            methods such as ``"grand"``; a :class:`propreg.engine.Model` with other settings; or a function without
            arguments that returns your own module with ``forward(x, edge_index)``. It is called for every run after
            torch's random state is set to the run's seed; parameters that require no gradient stay as they are. On a
            CPU its runs are trained one after another; on a GPU together if ``torch.func.vmap`` supports it, and its
            dropout then depends on the batch.
        models: Several models in place of ``model``, on the same splits and seeds: the result is that of the best on
            validation, and its ``leaderboard`` has all, with what the comparison shows about the graph's edges.
        inputs: What the ``forward`` of your own model takes, as names of the data's tensors: like
            ``("x", "edge_index", "edge_attr")``, or ``("data",)`` for a ``Data``. By default its signature decides:
            ``x`` and ``edge_index``, edge weights for an argument ``edge_weight``, a ``Data`` for a single argument.
            It returns logits, or (logits, auxiliary loss): the loss of a training pass is added to that of the run.
        mu: ``"auto"`` for the method's own grid (from 0.05 to 1 for P-reg), one strength, or a list of them.
        method: ``"preg"``, or a baseline of the paper: ``"laplacian"``, ``"confidence_penalty"`` or
            ``"label_smoothing"``; a function ``(z, edge_index) -> scalar`` of your own; or several of them, as models.
        preset: The paper form (``"paper"``) or the official-code form (``"reference"``) of the regularizer; see
            :meth:`propreg.PReg.preset`.
        regularizer: An alias of ``method``.
        scale: What is done to the features, in the training and by the returned model: ``"standard"`` subtracts each
            column's mean over all nodes and divides by its standard deviation; ``"rows"`` divides each row by its sum;
            ``"auto"`` is ``"rows"`` for bags of words (mostly zero, never negative, of one kind) and ``"standard"`` for
            all else; ``"none"`` leaves them as they are.
        task: ``"classes"``; or ``"multilabel"``, with ``data.y`` of 0 and 1 [nodes, labels] and P-reg of each label's
            probability (``phi="bernoulli"``); or ``"regression"``, with numbers, which are standardized on the training
            nodes for the training alone, and the squared distance of predictions (``phi="squared_error"``). NaN in
            ``y`` is unknown.
        metric: The score by which strengths are chosen on validation and compared on test: ``"accuracy"``,
            ``"balanced_accuracy"``, ``"macro_f1"``, ``"roc_auc"``, ``"average_precision"``, ``"log_loss"``, or a
            function of the true classes [nodes] and probabilities [nodes, classes], as a pair with ``"lower"`` if lower
            is better. With any but accuracy, the epoch is the one with the lowest validation loss. Of several labels:
            ``"roc_auc"`` (the default), ``"average_precision"``, ``"macro_f1"``, ``"accuracy"``, ``"log_loss"``; of
            numbers: ``"r2"`` (the default), ``"rmse"``, ``"mae"``.
        select: By what μ is picked on validation, if not by ``metric``: ``"accuracy"``; ``"balanced"``, the mean recall
            of the classes; ``"reweighted"``, accuracy with each class weighted by its estimated frequency among the
            nodes outside training and validation, see :mod:`propreg.fitting.picking`; or ``"loss"``, the cross-entropy.
            The epoch that a run reports stays that of its training.
        class_weight: ``"balanced"`` gives each class the same weight in the loss, however few of its nodes train.
        splits: The number of random splits to draw if the data has none, by default 6; or the splits themselves, as a
            list or by name: each a :class:`Split` (:func:`propreg.data.splits.official_splits`,
            :func:`propreg.random_split`), or (train, val) or (train, val, test) of masks or node numbers.
        test: ``"cv"`` tests on every labeled node once: ``splits`` folds (6), the next fold for validation, the others
            for training. Each fold's strength is picked on its own validation nodes, so that no number is optimistic.
        seeds: Trainings per split and strength; default 3, or 10 if there is one split.
        train_per_class, val_per_class: Nodes of random splits; by default 20 and 30.
        lr, weight_decay, dropout, patience, max_epochs: Training settings; by default the model's own, and where it has
            none (``"gcn"``, ``"gat"``, ``"mlp"``) 0.01, 5e-4, the dropout of the model, 100 and 1000.
        batch: ``"full"`` trains on the whole graph in each step; a number trains in mini-batches of so many training
            nodes, whose neighbors are sampled; ``"auto"`` does so where the whole graph does not fit in memory, and
            then says it. All strengths of a seed train on the same mini-batches, an epoch takes each training node
            once, and validation and test nodes are evaluated without sampling. For ``"gcn"``, ``"gat"``, ``"mlp"`` and
            modules of your own that look at most four hops far.
        optimizer: ``"adam"``, ``"adamw"`` or ``"sgd"`` (without momentum); or, for a module of your own, a function of
            its parameters that makes any optimizer of torch, whose learning rate and weight decay then count. It cannot
            be combined with a training method that has its own phases, and a function cannot be combined with
            ``resume``, ``lr``, ``weight_decay`` or a built-in model.
        device: ``"auto"``, ``"cpu"``, ``"cuda"`` or ``"cuda:1"``, or a ``torch.device``.
        progress: Show a bar; None shows it on a terminal only, and ``"lines"`` prints lines if there is no terminal.
            Ctrl-C returns the finished runs.
        on_error: With ``"record"`` a run that raises is a failed run, with its traceback in
            :attr:`propreg.engine.Result.error`, and the others continue; if all raise, so does ``fit``. With
            ``"raise"`` the first exception ends the fit; its ``partial_result`` is the result of the runs finished
            before, or None.
        refit: ``"train+val"`` trains ``model`` once more, on training and validation nodes, at the chosen strength and
            for as many epochs as its runs reported on average. The numbers stay those of the comparison.
        time_limit: Seconds after which training stops; the finished runs are compared.
        callbacks: Called with each finished run, a :class:`propreg.engine.Result`.
        watch: Called after each finished run with a function that computes the result of the runs so far, to show it
            during the training; call it rarely, because it takes time. Not for a model of your own.
        resume: A folder that keeps each run as soon as it is finished; created if missing. After a kill, an error or
            Ctrl-C the same call resumes: runs that the folder holds are not trained again. On a CPU the result has the
            same bits as an uninterrupted fit. Runs of another graph, model, setting, device or version are never used;
            of a model of your own its structure, first values and the code of its classes are compared, so name another
            folder after a change elsewhere.

    Returns:
        The result. Training is in float32 whatever the type of ``data.x``, and its ``model`` takes float32 features,
        unscaled: call ``result.model(data.x.float(), data.edge_index)``. Torch's random state is left as it was. A
        model of your own uses it: do not fit two of them at once in two threads.

    Example:
        >>> from propreg import fit, load_dataset
        >>> result = fit(load_dataset("digits", split=0), mu=[0.5], seeds=1, max_epochs=5)
        >>> result.mu in (0.0, 0.5), result.test.shape
        (True, (2, 1, 1))
    """
    arguments = dict(locals())
    if several(arguments):
        return fit_several(fit, arguments)
    method = _method(method, regularizer, resume)
    _check_choices(preset, on_error, class_weight, refit, progress, select, task)
    graph, masks = _read(data, task)
    own, spec, rate = _what_is_trained(model, dropout, graph, method, watch, inputs)
    check_task(graph, method, spec, class_weight)
    mus, score = strengths(mu, method, trained=spec.architecture.trained), score_of(metric, task)
    parts = named_splits(graph, splits, train_per_class, val_per_class, masks=masks, test=test)
    check_score(score, graph, parts, picks=select is None)
    warn_of_one_class(graph, parts)
    shape = (len(mus), len(parts), number_of_seeds(seeds, len(parts)))
    given = {"lr": lr, "weight_decay": weight_decay, "patience": patience, "max_epochs": max_epochs}
    by_name, maker = optimizer_of(optimizer, own, given, resume)
    like, protocol = training(spec, given, rate, by_name)
    if graph.targets is not None or (score != ACCURACY and protocol.rule == "official"):
        protocol = replace(protocol, rule="val_loss")
    order, replicas = _in_order(like, list(parts), mus, shape[2])
    on, scaling = find_device(device), scaling_of(graph.x, scale)
    term = method_of_task(REGULARIZERS[method].preset(preset), task)
    size, batches = batching(batch, graph, scaling, spec, term, on, own=own is not None)
    # Mini-batches scale the rows that they take.
    scaled = replace(without_splits(graph), x=scaling(graph.x) if size is None else graph.x)
    if scaling.kind == "none" and not own:
        warn_of_unscaled(graph)
    options = Options(keep_history=True, keep_weights=True)
    limit = None if time_limit is None else monotonic() + number("time_limit", time_limit)
    with ordinary_modes(on), random_state_kept(on):
        judged = {name: judgeable(split) for name, split in parts.items()}
        problem = Problem(scaled, judged, on, balanced=class_weight is not None)
        network, trainer, options = prepared(
            problem, spec, term, protocol, scaling, size, options, own, inputs, maker, (len(mus), len(replicas))
        )
        if network is not None and network.inputs is not None and not network.inputs.takes("edge_weight"):
            warn_of_unused_weights(graph, method, stacklevel=4)
        bar = Progress(len(replicas), progress, scores=graph.targets is None)
        said = batches, quicker_command(shape[1], shape[2], shape[0]) if progress == "lines" else ""
        kept = None
        if resume is not None:
            kept = KeptRuns(resume, settings_of(problem, spec, network, term, protocol, trainer), problem.splits)
        nested = test == "cv"
        job = Job(
            graph, scaling, problem, spec, network, method, preset, mus, parts, order, rate, kept, score, nested,
            _settings(spec, like, protocol, arguments, score.name, size), select, trainer, batches,
        )  # fmt: skip
        errors: list[Exception] = []
        if on_error == "record":
            options = replace(options, caught=lambda error: _keep_first(errors, error))
        called = (*([] if kept is None else [kept.keep]), *callbacks), _seen(job, watch)
        train = partial(_train, problem, spec, term, replicas, protocol, options, bar, said, kept, *called, limit)
        result = job.trained(train, errors)
        if refit is not None and result.finished:
            result = _refitted(job, result, term, protocol, options, own)
    if errors:
        warnings.warn(f"{result.errors()}: the others are kept.", stacklevel=2)
    return result


def _in_order(
    like: Replica, names: Sequence[str], mus: Sequence[float], seeds: int
) -> tuple[list[tuple[int, int, int]], list[Replica]]:
    """Places [strength, split, seed] and the replicas of all runs.

    All strengths of a split train together: what an interruption leaves can then be compared.
    """
    order = [(m, s, n) for s in range(len(names)) for n in range(seeds) for m in range(len(mus))]
    return order, [replace(like, seed=seed, split=names[s], strength=mus[m]) for m, s, seed in order]


def _check_choices(
    preset: str, on_error: str, class_weight: str | None, refit: str | None, progress: object, select: str | None,
    task: str,
) -> None:  # fmt: skip
    _errors.one_of("preset", preset, ("paper", "reference"))
    _errors.one_of("on_error", on_error, ("record", "raise"))
    for name, value, known in (("class_weight", class_weight, "balanced"), ("refit", refit, "train+val")):
        if value is not None:
            _errors.one_of(name, value, (known,), " or None")
    check_progress(progress)
    check_select(select, task)


def _what_is_trained(
    model: str | Model | Factory,
    dropout: float | None,
    graph: Graph,
    method: str,
    watch: Watch | None,
    inputs: Sequence[str] | None,
) -> tuple[Factory | None, Model, float]:
    """A factory of the user's own or None, the settings of a model, and the dropout rate."""
    own = None if isinstance(model, str | Model | nn.Module) or not callable(model) else model
    spec = Model() if own else architecture(model)
    if not own:
        need_pyg()
        if inputs is not None:
            raise ValueError("inputs is for a model of your own: leave it out.")
    elif dropout is not None:
        raise ValueError("dropout is for the built-in models: set it inside your own module.")
    elif watch is not None:  # making a result seeds torch, whose random state the training draws from
        raise ValueError("watch is for the built-in models: use callbacks with a model of your own.")
    if not own and not spec.architecture.uses_edge_weights:
        warn_of_unused_weights(graph, method, spec.name, stacklevel=5)
    return own, spec, spec.architecture.dropout if dropout is None else number("dropout", dropout)


def _settings(
    spec: Model, like: Replica, protocol: Protocol, arguments: Mapping[str, Any], metric: str, size: int | None
) -> dict[str, Any]:
    """What a training depends on beside graph, model and regularizer, by the names of options."""
    found = {name: getattr(like, name) for name in ("lr", "weight_decay", "patience")}
    found |= {"max_epochs": protocol.max_epochs}
    found |= {"dropout": like.dropout} if isinstance(arguments["model"], str | Model) else {}
    found |= {"scale": arguments["scale"] if isinstance(arguments["scale"], str) else "auto", "metric": metric}
    named = {name: arguments[name] for name in ("select", "test", "class_weight") if arguments[name] is not None}
    named |= {"task": arguments["task"]} if arguments["task"] != "classes" else {}
    named |= {} if size is None else {"batch": size}
    if (optimizer := arguments["optimizer"]) != "adam":
        named["optimizer"] = optimizer if isinstance(optimizer, str) else "its own"
    other = {name: getattr(spec, name) for name in ("hidden", "layers")}
    usual = spec.architecture.default
    return {**found, **named, **{name: value for name, value in other.items() if value != getattr(usual, name)}}


def _read(data: Any, task: Task) -> tuple[Graph, dict[str, Split] | None]:
    """The graph, and its splits if it has several; of several graphs, one that holds all."""
    if are_several(data):
        given = by_part(data)
        graphs = [_read(each, task)[0] for _, each in given]
        return joined(graphs, [part for part, _ in given]), None
    masks = splits_of_masks(data)
    bare = data if masks is None else without_masks(data)
    if task == "classes":
        graph = graph_of(bare, stacklevel=5)
        need_classes(graph)
    else:
        copied, targets = split_targets(bare, task)
        graph = replace(graph_of(copied, stacklevel=5), targets=targets, task=task)
    return replace(graph, extra=graph.extra or extra_of(data)), masks


def _method(method: Any, regularizer: Any, resume: object) -> str:
    """The regularizer's name, under either of the two arguments; a function gets an entry of its own."""
    if regularizer is not None and method not in ("preg", regularizer):
        raise ValueError(f"regularizer is another name of method, but {regularizer!r} is not {method!r}: pass one.")
    found, name = (method, "method") if regularizer is None else (regularizer, "regularizer")
    if not isinstance(found, str) and callable(found):
        if resume is not None:
            raise ValueError("resume cannot know whether a regularizer of your own is the same: leave resume out.")
        entry = own_regularizer(found)
        REGULARIZERS.add_unlisted(entry)
        return entry.name
    _errors.one_of(name, found, tunable(), " or a function (z, edge_index) -> scalar")
    return str(found)


def _refitted(
    job: Job, result: FitResult, term: Method, protocol: Protocol, options: Options, own: Factory | None
) -> FitResult:
    """The result with a model that was trained on training and validation nodes, as the best run was."""
    best = result.best_run
    split, chosen = job.problem.splits[best.replica.split], [r for r in result.runs if r.replica.strength == result.mu]
    more = replace(split, train=split.train | split.val)
    problem = Problem(job.problem.graph, {best.replica.split: more}, job.problem.device, balanced=job.problem.balanced)
    epochs = round(float(np.mean([run.epoch - run.before for run in chosen if not run.failed])))
    last = replace(protocol, rule="last", max_epochs=max(1, epochs))
    trainer = None if job.trainer is None else replace(job.trainer, protocol=last)
    network = job.network
    if own and network is not None and trainer is None:
        optimizer = network.optimizer
        network = OwnNetwork(own, problem, inputs=network.asked)
        network.optimizer = optimizer
    options = replace(options, network=network, trainer=trainer, caught=None)
    ((_, run),) = train_all(problem, job.spec, term, [best.replica], last, options)
    again = replace(job, problem=problem, network=network)
    return replace(
        result,
        model=again.module(run),
        refit=run,
        probabilities=again.probabilities(run),
        scaling=again.scaling_of(run),
    )


def _seen(job: Job, watch: Watch | None) -> Callable[[Mapping[int, Result]], object]:
    """What is called with the runs so far, by number."""
    if watch is None:
        return lambda _: None
    return lambda found: watch(partial(job.result, dict(found), finished=False))


def _keep_first(errors: list[Exception], error: Exception) -> None:
    clear_frames(error.__traceback__)  # they hold the tensors of the run
    if not errors:
        errors.append(error)


def _train(
    problem: Problem,
    spec: Model,
    regularizer: Method,
    replicas: Sequence[Replica],
    protocol: Protocol,
    options: Options,
    bar: Progress,
    said: tuple[str, str],
    kept: KeptRuns | None,
    done: Sequence[Callable[[Result], object]],
    seen: Callable[[Mapping[int, Result]], object],
    limit: float | None,
    found: dict[int, Result],
) -> bool:
    """Put the results by number in ``replicas`` into ``found``; returns whether all finished."""
    size = options.batch or replicas_that_fit(problem, spec, regularizer, options)
    if kept is not None:
        found.update((i, known) for i, replica in enumerate(replicas) if (known := kept.find(replica)) is not None)
    on_cpu = problem.device.type == "cpu"  # there a group keeps its members, so that its bits stay the same
    todo = missing_groups([i in found for i in range(len(replicas))], size if on_cpu else 1)
    options = replace(options, batch=size if on_cpu else options.batch)
    if options.network is not None and options.trainer is None:
        options = replace(options, workers=processes_for(replicas, protocol))
    note, quicker = said
    with bar:
        if note:
            bar.say(note)
        epochs = (min(replicas[0].patience, protocol.max_epochs), protocol.max_epochs)
        estimate = Estimate(math.ceil(len(todo) / size), epochs, bar.say, quicker)
        if found:
            bar.say(f"{len(found)} of {len(replicas)} runs were finished before and are not trained again.")
        for known in list(found.values()):
            bar.advance(known)
        options = replace(options, stop=lambda: estimate.epoch() or (limit is not None and monotonic() > limit))
        training = train_all(problem, spec, regularizer, [replicas[i] for i in todo], protocol, options)
        try:
            for place, result in training:
                if todo[place] in found:  # trained again with its group
                    continue
                found[todo[place]] = result
                for each in done:
                    each(result)
                seen(found)
                bar.advance(result)
        except KeyboardInterrupt:
            return False
    if not found and limit is not None:
        raise ValueError("time_limit ended before any training was finished: give it more time.")
    return len(found) == len(replicas)
