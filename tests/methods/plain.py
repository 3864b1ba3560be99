"""A training step by step in plain torch, with dense matrices, torch's Adam and the masks that the engine draws."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

import propreg
from engine.follow import check_near
from propreg.engine import Method, Model, Problem, Protocol, Replica
from propreg.engine.training.epoch import advance, step
from propreg.engine.training.passes import DropoutMasks, Passes
from propreg.engine.training.phases import one_phase

Weights = dict[str, Tensor]
Drop = Callable[[str, Tensor], Tensor]
"""Multiplies a tensor by the factors of its dropout at a place: those of the engine, or 1 in an evaluation."""
Forward = Callable[[Weights, Tensor, Tensor, Drop], Tensor]
"""Logits [N, C] of weights, features, A with its self-loops, and dropout."""


def dense_features(found: Problem) -> Tensor:
    """X [N, F]."""
    x = found.graph.x
    return torch.from_numpy(x if isinstance(x, np.ndarray) else x.to_dense()).to(found.dtype)


def with_loops(found: Problem) -> Tensor:
    """A [N, N] with the weights of the edges, row by target, and a self-loop of weight 1 where a node has none."""
    nodes, (source, target) = found.num_nodes, torch.from_numpy(found.graph.edge_index)
    weight = torch.ones(len(source)) if found.edge_weight is None else found.edge_weight
    loop = source == target
    a = torch.zeros(nodes, nodes, dtype=found.dtype)
    a.index_put_((target[~loop], source[~loop]), weight[~loop].to(found.dtype), accumulate=True)
    own = torch.ones(nodes, dtype=found.dtype)
    for node, value in zip(target[loop].tolist(), weight[loop].tolist(), strict=True):
        own[node] = value
    return a + own.diag()


def normalized(a: Tensor) -> Tensor:
    """D^(−1/2) A D^(−1/2)."""
    root = a.sum(1).rsqrt()
    return root.unsqueeze(1) * a * root


def no_drop(place: str, t: Tensor) -> Tensor:  # noqa: ARG001
    """Nothing is dropped."""
    return t


def check_trains_like(
    found: Problem,
    model: Model,
    forward: Forward,
    runs: Sequence[Replica],
    method: Method | None = None,
    protocol: Protocol | None = None,
    epochs: int = 20,
) -> None:
    """With P-reg on top and all dropout on, every replica has the logits of the plain training within 1e-8."""
    method, protocol = method or Method("preg"), protocol or Protocol()
    (phase,) = one_phase(found, runs, model=model, method=method, protocol=protocol)
    state, known = phase.state, phase.network.weights()
    x, a = dense_features(found), with_loops(found)
    edges = torch.from_numpy(found.graph.edge_index)
    edge_weight = None if found.edge_weight is None else found.edge_weight.to(found.dtype)
    graph = propreg.Propagation(edges, found.num_nodes, edge_weight)
    plain = [{n: t[r].detach().clone() for n, t in state.parameters.items()} for r in range(len(runs))]
    adams = []
    for p, run in zip(plain, runs, strict=True):
        groups = []
        for name, t in p.items():
            if known[name].trained:
                decay = known[name].decay
                if isinstance(decay, str):
                    decay = getattr(model, decay)
                groups.append(
                    {"params": [t.requires_grad_()], "weight_decay": run.weight_decay if decay is None else decay}
                )
        adams.append(torch.optim.Adam(groups, lr=run.lr))
    first = [forward(p, x, a, no_drop).detach() for p in plain]
    for epoch in range(1, epochs + 1):
        advance(phase.objective, state, epoch)
        logits = Passes(phase.network, state, phase.network.begin(state.tensors))
        for r, (p, adam, run) in enumerate(zip(plain, adams, runs, strict=True)):
            drop = _drop_of(DropoutMasks(state, 0), r)
            now = forward(p, x, a, no_drop)
            check_near(logits.evaluated()[r], now, 1e-8, f"epoch {epoch}, run {r}")
            z = forward(p, x, a, drop)
            train = torch.from_numpy(found.splits[run.split].train)
            loss = cross_entropy(z[train], found.y[train]) + run.strength * propreg.preg(z, graph)
            adam.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            adam.step()
        step(phase.objective, state, logits)
    moved = [float((forward(p, x, a, no_drop) - z).abs().max().detach()) for p, z in zip(plain, first, strict=True)]
    assert min(moved) > 1e-2, "a run that does not move shows nothing"


def _drop_of(masks: DropoutMasks, r: int) -> Drop:
    def drop(place: str, t: Tensor) -> Tensor:
        drawn = masks(place)
        assert drawn is not None
        return t * drawn.factors(t.numel(), t.dtype)[r].view(t.shape)

    return drop


def on_nonzeros(found: Problem, drop: Drop, x: Tensor) -> Tensor:
    """Dropout of the features: the engine drops stored non-zeros, numbered in the order of rows."""
    if drop is no_drop:
        return x
    row, col = found.features.matrix.pattern.row, found.features.matrix.pattern.col
    dropped = torch.zeros_like(x)
    dropped[row, col] = drop("input", x[row, col])
    return dropped
