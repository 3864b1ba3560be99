"""Whether a fit trains on the whole graph at a time, or in mini-batches."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import torch

from propreg import _errors
from propreg.data.graph import Graph, SparseFeatures
from propreg.data.scaling import Scaling
from propreg.devices import cores
from propreg.engine import Method, Model, Options, Problem, Protocol
from propreg.engine.models import MODELS
from propreg.engine.models.user_module import Factory, OwnNetwork
from propreg.engine.spec import Sizes
from propreg.engine.training.batches import CPU_GROUP
from propreg.engine.training.cost import estimate
from propreg.engine.training.memory import SHARE, available_bytes
from propreg.engine.training.optimizers import MakeTorch
from propreg.fitting.inputs import whole
from propreg.fitting.together import replicas_together
from propreg.scale.blocks import LargeGraph
from propreg.scale.reach import module_and_reach
from propreg.scale.trainer import MiniBatches

BatchSize = Literal["auto", "full"] | int
SIZE = 1024  # training nodes of a batch, where memory is what decides
GIB = 2**30


def batching(
    batch: Any, graph: Graph, scaling: Scaling, model: Model, method: Method, device: torch.device, *, own: bool
) -> tuple[int | None, str]:
    """The training nodes of a mini-batch, or None for full batches; and what people read about it.

    Args:
        batch: As of :func:`propreg.fit`.
        graph: The graph, its features not scaled yet.
        scaling: What is done to them.
        model, method: What is trained.
        device: Where.
        own: Whether ``model`` stands for a module of the user's own.

    Raises:
        ValueError: If it cannot be trained so, or does not fit.
    """
    check_batch(batch, model, method, own=own)
    if not isinstance(batch, str):
        return int(batch), f"Trained on mini-batches of {int(batch):,} training nodes, whose neighbors are sampled."
    free = _free(device)
    sizes = sizes_of(graph, kernels=device.type == "cuda", scaling=scaling)
    needed = estimate(sizes, model, method, "h200" if device.type == "cuda" else "cpu").memory()
    if scaling.kind == "standard":
        needed += 4 * sizes.nodes * sizes.features  # the scaled copy of the features
    if free is None or needed <= free:
        return None, ""
    short = f"{needed / GIB:.1f} GiB are needed and {free / GIB:.1f} GiB are free"
    if _refusal(model, method, own=own) or (own and batch == "full"):
        return None, ""  # the estimate may be too high, of the user's own above all, and there may be no other way
    if batch == "full":
        raise ValueError(
            f"batch='full' does not fit in memory ({short}): pass batch='auto', or a number of training nodes for "
            "mini-batches."
        )
    return SIZE, (
        f"The whole graph does not fit in memory ({short}): trained on mini-batches of {SIZE:,} training nodes, whose "
        "neighbors are sampled."
    )


def check_batch(batch: Any, model: Model, method: Method, *, own: bool = False) -> None:
    """Refuse a size that is none, and mini-batches of what needs the whole graph."""
    if isinstance(batch, str):
        _errors.one_of("batch", batch, ("auto", "full"), ", or a number of training nodes")
        return
    whole("batch", batch, 1, ": give a number of training nodes, 'auto' or 'full'")
    if refusal := _refusal(model, method, own=own):
        raise ValueError(refusal)


def prepared(
    problem: Problem,
    model: Model,
    method: Method,
    protocol: Protocol,
    scaling: Scaling,
    size: int | None,
    options: Options,
    own: Factory | None,
    inputs: Sequence[str] | None,
    optimizer: MakeTorch | None,
    runs: tuple[int, int],
) -> tuple[OwnNetwork | None, MiniBatches | None, Options]:
    """The network of the user's own, the trainer of mini-batches of this size, and how to train.

    ``runs`` are the numbers of strengths and of all runs.
    """
    if size is not None:
        large = LargeGraph(problem, scaling)
        network, reach = (None, None) if own is None else module_and_reach(own, large, inputs, optimizer)
        trainer = MiniBatches(large, model, method, protocol, size, network, reach)
        # A module of the user's own draws from torch's random numbers.
        workers = 1 if network is not None else _workers(trainer, runs[0])
        return network, trainer, replace(options, network=network, batch=runs[0], workers=workers, trainer=trainer)
    if own is None:
        if problem.values is not None and "labels" in problem.network(model).weights():
            task = problem.graph.task
            raise ValueError(f"model={model.name!r} is for classes, but the task is {task}: choose another.")
        return None, None, options
    network = OwnNetwork(own, problem, inputs=inputs, optimizer=optimizer)
    together = replicas_together(network, problem, method, runs[1])
    return network, None, replace(options, network=network, workers=1, batch=together)


def _free(device: torch.device) -> int | None:
    """Bytes that a training may take; None if unknown. What torch holds of a GPU and nobody uses is free, too."""
    if device.type != "cuda":
        return available_bytes()
    unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return SHARE.free_on_gpu(device) + unused


def _workers(trainer: MiniBatches, strengths: int) -> int:
    """How many seeds train at a time, as cores and memory allow."""
    large, free = trainer.whole, available_bytes()
    evaluation = 8 * large.num_nodes * max(trainer.model.width, large.problem.num_classes) * min(strengths, CPU_GROUP)
    return min(cores(), torch.get_num_threads(), max(1, cores() if free is None else free // (evaluation + GIB)))


def sizes_of(graph: Graph, *, kernels: bool, scaling: Scaling | None = None) -> Sizes:
    """The numbers of a graph that memory and time depend on; standardized features have no zeros."""
    nodes, features = graph.x.shape
    if scaling is not None and scaling.kind == "standard":
        stored = nodes * features
    else:
        stored = len(graph.x.indices) if isinstance(graph.x, SparseFeatures) else int(np.count_nonzero(graph.x))
    return Sizes(nodes, graph.edge_index.shape[1], features, graph.num_classes, stored, kernels)


def _refusal(model: Model, method: Method, *, own: bool) -> str:
    """Why mini-batches cannot train it; empty if they can."""
    regularizer = method.regularizer
    if regularizer.uses_edges and not regularizer.masked:
        return (
            f"method={regularizer.title if regularizer.own else regularizer.name!r} needs the whole graph, and a "
            "mini-batch has a part of it: use method='preg', or batch='full'."
        )
    if not own and model.architecture.layered is None:
        known = ", ".join(name for name, entry in MODELS.items() if entry.layered is not None)
        return (
            f"model={model.name!r} needs the whole graph, and a mini-batch has a part of it: use {known} or a module "
            "of your own, or batch='full'."
        )
    return ""
