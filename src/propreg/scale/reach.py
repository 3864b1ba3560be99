"""How far a module of the user's own looks, which is tried on a ring, where every distance is known."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from propreg.data.graph import Graph, SparseFeatures, Split
from propreg.engine import Problem
from propreg.engine.models.network import no_dropout
from propreg.engine.models.user_module import Factory, OwnNetwork
from propreg.engine.spec import Replica
from propreg.engine.training.optimizers import MakeTorch
from propreg.scale.blocks import LargeGraph

MOST = 4
NODES = 2 * (MOST + 2)
TRIALS = 3


@dataclass(frozen=True)
class Reach:
    """The distance of the nodes that a model's logits depend on.

    Args:
        sampled: How far the features of other nodes matter.
        whole: How far anything matters, including the degrees that a normalization divides by.
    """

    sampled: int
    whole: int


def module_and_reach(
    factory: Factory, whole: LargeGraph, inputs: Sequence[str] | None, optimizer: MakeTorch | None
) -> tuple[OwnNetwork, Reach]:
    """The user's module as a network that runs on any graph, and how far it looks.

    Raises:
        ValueError: If it does not run on any graph, or looks too far.
    """
    for name in inputs or ():
        if name in whole.problem.graph.extra:
            raise ValueError(
                f"inputs names {name!r}, but mini-batches have x, edge_index and edge_weight alone: leave it out, or "
                "pass batch='full'."
            )
    try:
        network = OwnNetwork(factory, _ring(whole), together=False, inputs=inputs, optimizer=optimizer)
        found = _reach(network)
    except (RuntimeError, IndexError) as error:
        why = " ".join(str(error).split())[:150]
        raise ValueError(
            f"model does not run on another graph than the whole, as a mini-batch is one ({type(error).__name__}: "
            f"{why}): keep what has a row for each node out of it, or pass batch='full'."
        ) from error
    if found.whole > MOST:
        raise ValueError(
            f"model looks further than {MOST} hops, and mini-batches are not sampled as far: give it fewer layers "
            "(GCNConv looks one hop further than there are layers, for degrees), or pass batch='full'."
        )
    return network, found


def _ring(whole: LargeGraph) -> Problem:
    """Some nodes of the graph, each linked with two others."""
    graph, number = whole.problem.graph, np.arange(NODES)
    x = whole.rows(torch.from_numpy(number * max(1, graph.num_nodes // NODES) % graph.num_nodes))
    pairs = np.stack([number, (number + 1) % NODES])
    edges = np.concatenate([pairs, pairs[::-1]], axis=1)
    ring = Graph(
        "ring",
        edges,
        x.to_dense() if isinstance(x, SparseFeatures) else x,
        np.zeros(NODES, np.int64),
        None if graph.edge_weight is None else np.ones(edges.shape[1], np.float32),
        class_names=("",) * graph.num_classes,
        targets=None if graph.targets is None else np.zeros((NODES, graph.num_classes), np.float32),
        task=graph.task,
    )
    every = np.ones(NODES, np.bool_)
    problem = whole.problem
    return Problem(ring, {"": Split(every, every, every)}, problem.device, problem.dtype)


def _reach(network: OwnNetwork) -> Reach:
    """The largest of some trials, with other weights and features."""
    ring, device = dict(network.tensors), network.device
    number = torch.arange(NODES, device=device)
    distance = torch.minimum(number, NODES - number)
    generator = torch.Generator().manual_seed(0)
    sampled = exact = 0
    for trial in range(TRIALS):
        p = network.stacked([Replica(trial)])

        def first(tensors: dict[str, Tensor]) -> Tensor:
            network.on(tensors)
            with torch.no_grad():
                return network.finish(p, None, no_dropout)[0, 0]  # noqa: B023

        noise = [torch.randn(ring["x"].shape, generator=generator).to(ring["x"]) for _ in range(2)]
        here = {**ring, "x": ring["x"] + noise[0]}
        usual = first(here)
        for far in range(sampled + 1, int(distance.max()) + 1):
            other = here["x"] + noise[1] * (distance >= far).unsqueeze(1)
            if not _close(first({**here, "x": other}), usual):
                sampled = far
        while exact <= MOST and not _close(first(_around(here, distance, exact)), usual):
            exact += 1
    network.on(ring)
    return Reach(sampled, max(sampled, exact))


def _around(ring: dict[str, Tensor], distance: Tensor, hops: int) -> dict[str, Tensor]:
    """The neighborhood of node 0, as a batch has it: the edges into nodes that are nearer."""
    kept = distance[ring["edge_index"][1]] < hops
    nodes = (distance <= hops).nonzero().flatten()
    row = torch.zeros_like(distance).index_copy(0, nodes, torch.arange(len(nodes), device=nodes.device))
    found = {"x": ring["x"][nodes], "edge_index": row[ring["edge_index"][:, kept]]}
    return found | {name: ring[name][kept] for name in ("edge_weight",) if name in ring}


def _close(one: Tensor, other: Tensor) -> bool:
    return torch.allclose(one, other, rtol=1e-4, atol=1e-5 * max(1.0, float(other.abs().max())), equal_nan=True)
