"""Tune μ and train, in one batch."""

import math
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from traceback import clear_frames
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from propreg import _errors
from propreg.data.graph import Graph, Split
from propreg.data.scaling import Scale, Scaling, scaling_of
from propreg.devices import find_device
from propreg.engine import Method, Model, Options, Problem, Protocol, Replica, Result, train_all
from propreg.engine.models.network import NoDropout, no_dropout
from propreg.engine.models.user_module import Factory, OwnNetwork
from propreg.engine.regularizers import REGULARIZERS, tunable
from propreg.engine.regularizers.regularizer import Preset
from propreg.engine.spec import Sizes
from propreg.engine.torch_modes import ordinary_modes, random_state_kept
from propreg.engine.training.batches import replicas_that_fit
from propreg.fitting.explain import facts_of
from propreg.fitting.inputs import (
    Splits,
    architecture,
    check_progress,
    graph_of,
    named_splits,
    need_classes,
    need_pyg,
    number,
    number_of_seeds,
    strengths,
    training,
    warn_of_one_class,
    warn_of_unscaled,
    warn_of_unused_weights,
    without_splits,
)
from propreg.fitting.kept import KeptRuns, missing_groups, settings_of
from propreg.fitting.preprocessing import take_raw_features
from propreg.fitting.progress import Estimate, Progress, quicker_command
from propreg.fitting.pyg_modules import as_module
from propreg.fitting.result import FitResult
from propreg.fitting.selection import Scores, choose

if TYPE_CHECKING:
    from torch_geometric.data import Data


def fit(
    data: "Data | Graph",
    model: str | Model | Factory = "gcn",
    mu: Literal["auto"] | float | Sequence[float] = "auto",
    *,
    method: str = "preg",
    preset: Preset = "paper",
    scale: Scale | Scaling = "auto",
    splits: Splits | None = None,
    seeds: int | None = None,
    train_per_class: int | None = None,
    val_per_class: int | None = None,
    lr: float | None = None,
    weight_decay: float | None = None,
    dropout: float | None = None,
    patience: int | None = None,
    max_epochs: int | None = None,
    device: str | torch.device = "auto",
    progress: Literal["lines"] | bool | None = None,
    on_error: Literal["record", "raise"] = "record",
    resume: str | os.PathLike[str] | None = None,
) -> FitResult:
    """Train the plain model and P-reg at every strength over several splits and seeds, and pick μ on validation.

    All runs train together: on a GPU tuning μ costs little more than one training, and on two CPU cores a dozen
    strengths take about as long as five trainings. Strength 0, the plain model, is always among them: if it is best
    on validation, it is what you get.

    Args:
        data: A PyG ``Data`` or the result of :func:`propreg.load_graph`. Its own split is used if it has one. Edges are
            used as listed, with a warning if hardly any runs both ways; the model has an output for each class number
            up to the largest, with a warning if no node has one of them.
        model: ``"gcn"``, ``"gat"``, ``"mlp"``, ``"appnp"`` or another name of ``propreg methods``, among them training
            methods such as ``"grand"``; a :class:`propreg.engine.Model` with other settings; or a
            function without arguments that makes a module ``forward(x, edge_index)`` of your own. It is called for
            every run after torch's random state is set to the run's seed; parameters that require no gradient stay
            as they are. On a CPU its runs are trained one after another; on a GPU together if
            ``torch.func.vmap`` supports it, and its dropout then depends on the batch.
        mu: ``"auto"`` for the method's own grid (from 0.05 to 1 for P-reg), one strength, or a list of them.
        method: ``"preg"``, or a baseline of the paper: ``"laplacian"``, ``"confidence_penalty"`` or
            ``"label_smoothing"``.
        preset: The paper form (``"paper"``) or the official-code form (``"reference"``) of the regularizer; see
            :meth:`propreg.PReg.preset`.
        scale: What is done to the features, in the training and by the returned model: ``"standard"`` takes from each
            column its mean over all nodes and divides it by its standard deviation; ``"rows"`` divides each row by its
            sum; ``"auto"`` does the latter with bags of words (mostly zero, never negative, of one kind) and the
            former with all else; ``"none"`` leaves them as they are.
        splits: The number of random splits to draw if the data has none, by default 5; or the splits themselves, as a
            list or by name (:func:`propreg.data.splits.official_splits`, :func:`propreg.random_split`).
        seeds: Trainings per split and strength; default 3, or 10 if there is one split.
        train_per_class, val_per_class: Nodes of random splits; by default 20 and 30.
        lr, weight_decay, dropout, patience, max_epochs: Of the training; by default the model's own, and where it has
            none (``"gcn"``, ``"gat"``, ``"mlp"``) 0.01, 5e-4, the dropout of the model, 100 and 1000.
        device: ``"auto"``, ``"cpu"``, ``"cuda"`` or ``"cuda:1"``, or a ``torch.device``.
        progress: Show a bar; None shows it on a terminal only, and ``"lines"`` prints lines if there is no terminal.
            Ctrl-C returns what is finished.
        on_error: With ``"record"`` a run that raises is a failed run, with its traceback in
            :attr:`propreg.engine.Result.error`, and the others go on; if all raise, so does ``fit``. With ``"raise"``
            the first exception ends the fit; its ``partial_result`` is the result of the runs finished before, or None.
        resume: A folder where each run is kept the moment it is finished, made if there is none. After a kill, an error
            or Ctrl-C the same call goes on from there: runs that it has are not trained again. On a CPU the result has
            the bits of an undisturbed fit. Runs of another graph, model, setting, device or version are never used; of
            a model of your own its structure, first values and the code of its classes are compared, so name another
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
    _errors.one_of("method", method, tunable())
    _errors.one_of("preset", preset, ("paper", "reference"))
    _errors.one_of("on_error", on_error, ("record", "raise"))
    check_progress(progress)
    graph = graph_of(data)
    need_classes(graph)
    own = None if isinstance(model, str | Model | nn.Module) or not callable(model) else model
    spec = Model() if own else architecture(model)
    if not own:
        need_pyg()
    elif dropout is not None:
        raise ValueError("dropout is for the built-in models: set it inside your own module.")
    if own or not spec.architecture.uses_edge_weights:
        warn_of_unused_weights(graph, method, "" if own else spec.name)
    mus, parts = strengths(mu, method), named_splits(graph, splits, train_per_class, val_per_class)
    warn_of_one_class(graph, parts)
    shape = (len(mus), len(parts), number_of_seeds(seeds, len(parts)))
    rate = number("dropout", dropout) if dropout is not None else spec.architecture.dropout
    given = {"lr": lr, "weight_decay": weight_decay, "patience": patience, "max_epochs": max_epochs}
    like, protocol = training(spec, given, rate)
    # All strengths of a split train together: what an interruption leaves can then be compared.
    names = list(parts)
    order = [(m, s, n) for s in range(shape[1]) for n in range(shape[2]) for m in range(shape[0])]
    replicas = [replace(like, seed=seed, split=names[s], strength=mus[m]) for m, s, seed in order]
    on, scaling = find_device(device), scaling_of(graph.x, scale)
    regularizer = REGULARIZERS[method].preset(preset)
    options = Options(keep_history=True, keep_weights=True)
    with ordinary_modes(on), random_state_kept(on):
        problem = Problem(replace(without_splits(graph), x=scaling(graph.x)), parts, on)
        if scaling.kind == "none" and not own:
            warn_of_unscaled(graph)
        network = OwnNetwork(own, problem) if own else None
        if network is not None:
            batch = replicas_together(network, problem, regularizer, len(replicas))
            options = replace(options, network=network, workers=1, batch=batch)
        bar = Progress(len(replicas), progress)
        quicker = quicker_command(shape[1], shape[2], shape[0]) if progress == "lines" else ""
        kept = (
            None
            if resume is None
            else KeptRuns(resume, settings_of(problem, spec, network, regularizer, protocol), parts)
        )
        job = _Fit(graph, scaling, problem, spec, network, method, preset, mus, parts, order, rate, kept)
        errors: list[Exception] = []
        if on_error == "record":
            options = replace(options, caught=lambda error: _keep_first(errors, error))
        train = partial(_train, problem, spec, regularizer, replicas, protocol, options, bar, quicker, kept)
        result = job.trained(train, errors)
    if errors:
        warnings.warn(f"{result.errors()}: the others are kept.", stacklevel=2)
    return result


def _keep_first(errors: list[Exception], error: Exception) -> None:
    clear_frames(error.__traceback__)  # they hold the tensors of the run
    if not errors:
        errors.append(error)


@dataclass(frozen=True)
class _Fit:
    """What was trained: with the runs' results, it makes the result of the fit."""

    graph: Graph
    scaling: Scaling
    problem: Problem
    spec: Model
    network: OwnNetwork | None
    method: str
    preset: str
    mus: tuple[float, ...]
    parts: Mapping[str, Split]
    order: Sequence[tuple[int, int, int]]
    rate: float
    kept: KeptRuns | None

    def trained(self, train: Callable[[dict[int, Result]], bool], errors: Sequence[Exception]) -> FitResult:
        """The result of a training.

        Args:
            train: Puts results by number into a dict, and returns whether all finished.
            errors: Exceptions that it recorded.
        """
        found: dict[int, Result] = {}
        try:
            finished = train(found)
        except Exception as error:
            some = any(not run.failed for run in found.values())
            with suppress(TypeError):  # an exception without attributes
                vars(error)["partial_result"] = self.result(found, finished=False) if some else None
            raise
        if errors and finished and all(run.failed for run in found.values()):
            raise errors[0]
        return self.result(found, finished=finished)

    def result(self, found: Mapping[int, Result], *, finished: bool) -> FitResult:
        """The result of finished runs, by number."""
        if self.network is not None:
            self.network.check_inputs()
        shape = len(self.mus), len(self.parts), 1 + max(seed for _, _, seed in self.order)
        by_place = {self.order[number]: result for number, result in found.items()}
        results = [by_place.get((m, s, n)) for m, s, n in np.ndindex(shape)]
        scores = Scores.of(results, shape)
        best = _best(scores, finished=finished)
        each = shape[1] * shape[2]
        of_plain, of_best = results[:each], results[best * each : (best + 1) * each]
        champion = max((r for r in of_best if r is not None and not r.failed), key=lambda r: r.val)
        sizes = self.problem.sizes.features, self.problem.sizes.classes
        if self.network is not None:
            module = self.network.module(champion.weights, champion.replica.seed)
            take_raw_features(module, self.scaling)
        else:
            weighted = self.graph.edge_weight is not None
            scaling = self.scaling
            module = as_module(self.spec, champion.weights, sizes, self.rate, weighted=weighted, scaling=scaling)
        logits = self.network.predict if self.network is not None else _logits_of(self.problem, self.spec)
        classes = {
            mu: _predicted(logits, runs, shape[1:], self.graph.num_nodes)
            for mu, runs in ((self.mus[0], of_plain), (self.mus[best], of_best))
        }
        return FitResult(
            self.mus[best],
            self.mus,
            scores.val,
            scores.test,
            module,
            tuple(r for r in results if r is not None),
            None if self.network is not None else self.spec,
            finished,
            self.method,
            self.preset,
            self.parts,
            classes,
            self.rate,
            facts_of(self.graph, self.parts),
            sizes,
            None if self.kept is None else self.kept.folder,
            self.scaling,
            self.graph,
        )


def _train(
    problem: Problem,
    spec: Model,
    regularizer: Method,
    replicas: Sequence[Replica],
    protocol: Protocol,
    options: Options,
    bar: Progress,
    quicker: str,
    kept: KeptRuns | None,
    found: dict[int, Result],
) -> bool:
    """Put the results by number in ``replicas`` into ``found``; returns whether all finished."""
    size = options.batch or replicas_that_fit(problem, spec, regularizer, options)
    if kept is not None:
        found.update((i, known) for i, replica in enumerate(replicas) if (known := kept.find(replica)) is not None)
    on_cpu = problem.device.type == "cpu"  # there a group keeps its members, so that its bits stay the same
    todo = missing_groups([i in found for i in range(len(replicas))], size if on_cpu else 1)
    options = replace(options, batch=size if on_cpu else options.batch)
    with bar:
        epochs = (min(replicas[0].patience, protocol.max_epochs), protocol.max_epochs)
        estimate = Estimate(math.ceil(len(todo) / size), epochs, bar.say, quicker)
        if found:
            bar.say(f"{len(found)} of {len(replicas)} runs were finished before and are not trained again.")
        for known in list(found.values()):
            bar.advance(known)
        options = replace(options, stop=estimate.epoch)
        training = train_all(problem, spec, regularizer, [replicas[i] for i in todo], protocol, options)
        try:
            for place, result in training:
                if todo[place] in found:  # trained again with its group
                    continue
                found[todo[place]] = result
                if kept is not None:
                    kept.keep(result)
                bar.advance(result)
        except KeyboardInterrupt:
            return False
    return True


def _best(scores: Scores, *, finished: bool) -> int:
    try:
        return choose(scores)
    except RuntimeError:
        if not finished:
            raise KeyboardInterrupt from None  # interrupted before there was anything to return
        raise


def _logits_of(problem: Problem, spec: Model) -> Callable[[Result], Tensor]:
    """The function that computes the logits [N, C] of a run of a built-in model."""
    network = problem.network(spec)

    @torch.no_grad()
    def logits(result: Result) -> Tensor:
        p = {name: w.to(problem.device).unsqueeze(0) for name, w in result.weights.items()}
        return network.finish(p, network.begin(p), no_dropout)[0]

    return logits


def _predicted(
    logits: Callable[[Result], Tensor], results: Sequence[Result | None], shape: tuple[int, int], nodes: int
) -> NDArray[np.int64]:
    """The class of every node by each run's reported weights [splits, seeds, nodes]; −1 if the run has none."""
    found = np.full((len(results), nodes), -1, np.int64)
    for place, result in enumerate(results):
        if result is not None and not result.failed:
            found[place] = logits(result).argmax(-1).cpu().numpy()
    return found.reshape(*shape, nodes)


def replicas_together(network: OwnNetwork, problem: Problem, method: Method, wanted: int) -> int:
    """The number of runs of a user's module that train at a time: as many as the GPU's memory takes, else one."""
    if not network.together or problem.device.type != "cuda":
        return 1
    try:
        activations = _bytes_of_two(network) / 2
    except torch.OutOfMemoryError:
        torch.cuda.empty_cache()
        return 1
    free, _ = torch.cuda.mem_get_info(problem.device)
    reusable = torch.cuda.memory_reserved(problem.device) - torch.cuda.memory_allocated(problem.device)
    passes = method.regularizer.passes(method)
    per = passes * activations + _bytes_beside(network, problem, method)
    return max(1, min(wanted, int(0.7 * (free + reusable) / per)))


def _bytes_of_two(network: OwnNetwork) -> int:
    """The peak of a pass and its gradients, measured: nothing else shows what a user's module allocates.

    Of two replicas, since a batch of one is not always computed as a batch.
    """
    device = network.device
    before = torch.cuda.memory_allocated(device)
    torch.cuda.reset_peak_memory_stats(device)
    p = network.stacked([Replica(0), Replica(1)])
    with torch.enable_grad():
        z = network.finish(p, None, NoDropout(training=True))
        trained = [t for t in p.values() if t.requires_grad]
        torch.autograd.grad(z.square().sum(), trained, allow_unused=True)
    return torch.cuda.max_memory_allocated(device) - before


def _bytes_beside(network: OwnNetwork, problem: Problem, method: Method) -> int:
    """Memory outside the measured pass: Adam's moments, the best weights, a copy; and the losses' tensors."""
    parameters = sum(p.numel() * p.element_size() for p in network.base.parameters())
    sizes = Sizes(problem.num_nodes, problem.graph.edge_index.shape[1], 0, problem.num_classes)
    logits = 12 * problem.num_nodes * problem.num_classes
    return 5 * parameters + 4 * (logits + method.regularizer.memory(method, sizes))
