"""The same training twice: by the engine's steps, and one run at a time with PyG's layers and torch's Adam."""

import re
import warnings
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, elu

import propreg
from propreg.engine import Method, Model, Problem, Protocol, Replica
from propreg.engine.models.network import Network, Parameters, no_dropout
from propreg.engine.ops.dropout import Masks
from propreg.engine.training.epoch import advance, step
from propreg.engine.training.objective import RegularizedLoss
from propreg.engine.training.passes import DropoutMasks, Passes
from propreg.engine.training.state import State, begin

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # PyG's own import warns of its use of torch.jit
    from torch_geometric.nn import APPNP, GATConv, GCNConv


class Run:
    """A batch that is trained step by step, so that a test can look at it on the way."""

    def __init__(
        self, problem: Problem, model: Model, method: Method, replicas: Sequence[Replica], protocol: Protocol
    ) -> None:
        self.network: Network = problem.network(model)
        self.objective = RegularizedLoss(method, problem.regularizer(method))
        self.state: State = begin(problem, self.network, model, replicas, protocol)
        self.epoch = 0

    @property
    def weights(self) -> Parameters:
        """A copy of the weights as they are."""
        return {name: p.detach().clone() for name, p in self.state.parameters.items()}

    def logits(self) -> Tensor:
        """What an evaluation sees, [R, N, C]."""
        p = self.state.parameters
        return self.network.finish(p, self.network.begin(p), no_dropout).detach()

    def step(self, times: int = 1) -> Tensor:
        """Train; returns the losses of the last step [R]."""
        for _ in range(times):
            self.epoch += 1
            begun = self.network.begin(self.state.parameters)
            advance(self.objective, self.state, self.epoch)
            logits = Passes(self.network, self.state, begun, self.objective.passes, self.objective.in_groups)
            loss = step(self.objective, self.state, logits)
        return loss


class Twin(nn.Module):
    """One replica's network in PyG's layers; dropout has no place in it."""

    def __init__(self, problem: Problem, model: Model, weights: dict[str, Tensor]) -> None:
        super().__init__()
        self.model = model
        x = problem.graph.x
        self.x = torch.from_numpy(x if not hasattr(x, "to_dense") else x.to_dense()).to(problem.dtype)
        self.edges = torch.from_numpy(problem.graph.edge_index)
        weight = problem.graph.edge_weight
        self.edge_weight = None if weight is None else torch.from_numpy(weight).to(problem.dtype)
        layers = 2 if model.name == "gat" else model.layers
        sizes = [self.x.shape[1], *[model.hidden] * (layers - 1), problem.num_classes]
        self.layers = nn.ModuleList(self._layer(i, sizes) for i in range(layers)).to(problem.dtype)
        self.spread = APPNP(model.steps, model.teleport, cached=True)
        with torch.no_grad():
            for i, layer in enumerate(self.layers):
                _fill(
                    layer,
                    {name.rstrip("0123456789"): w for name, w in weights.items() if re.fullmatch(f"[a-z]+{i}", name)},
                )

    def _layer(self, i: int, sizes: list[int]) -> Any:
        m = self.model
        if m.name == "gcn":
            return GCNConv(sizes[i], sizes[i + 1], cached=True)
        if m.name == "gat" and i == 0:
            return GATConv(sizes[0], m.hidden, heads=m.heads)
        if m.name == "gat":
            return GATConv(m.heads * m.hidden, sizes[-1], heads=m.out_heads, concat=False)
        return nn.Linear(sizes[i], sizes[i + 1])

    def forward(self) -> Tensor:
        h = self.x
        for i, layer in enumerate(self.layers):
            if self.model.name == "gcn":
                h = layer(h, self.edges, self.edge_weight)
            elif self.model.name == "gat":
                h = layer(h, self.edges)
            else:
                h = layer(h)
            if i < len(self.layers) - 1:
                h = elu(h) if self.model.name == "gat" else h.relu()
        return self.spread(h, self.edges, self.edge_weight) if self.model.name == "appnp" else h


def _fill(layer: Any, weights: dict[str, Tensor]) -> None:
    linear = layer if isinstance(layer, nn.Linear) else layer.lin
    linear.weight.copy_(weights["w"].t())
    layer.bias.copy_(weights["b"])
    if isinstance(layer, GATConv):
        layer.att_src.copy_(weights["source"])
        layer.att_dst.copy_(weights["target"])


class Reference:
    """One replica's training with the public functions of the library."""

    def __init__(
        self, problem: Problem, model: Model, method: Method, replica: Replica, protocol: Protocol, run: Run, place: int
    ) -> None:
        self.method, self.replica = method, replica
        self.twin = Twin(problem, model, {name: w[place] for name, w in run.weights.items()})
        first, *rest = self.twin.layers
        scoped = 0.0 if protocol.weight_decay_scope == "first" else replica.weight_decay
        groups = [
            {"params": list(first.parameters()), "weight_decay": replica.weight_decay},
            {"params": [p for layer in rest for p in layer.parameters()], "weight_decay": scoped},
        ]
        self.adam = torch.optim.Adam(groups, lr=replica.lr)
        self.y = torch.from_numpy(problem.graph.y)
        self.train = torch.from_numpy(problem.splits[replica.split].train)
        graph = self.twin.edges, problem.num_nodes, self.twin.edge_weight
        self.graph = propreg.Propagation(*graph, norm=method.norm, add_self_loops=method.add_self_loops)
        # Which nodes count is drawn by the engine; how many and how often is a test of its own.
        self.mask = None if run.state.counted is None else run.state.counted[place] > 0
        self.epoch = 0

    def step(self) -> Tensor:
        """Train one epoch; returns the logits before it [N, C]."""
        self.epoch += 1
        z: Tensor = self.twin()
        smoothing = self._strength() if self.method.name == "label_smoothing" else 0.0
        loss = cross_entropy(z[self.train], self.y[self.train], label_smoothing=smoothing)
        if self.method.name not in ("plain", "label_smoothing"):
            loss = loss + self._strength() * self._term(z)
        self.adam.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.adam.step()
        return z.detach()

    def _strength(self) -> float:
        if self.method.schedule == "annealed":
            return propreg.annealed(self.replica.strength, self.epoch)
        return self.replica.strength

    def _term(self, z: Tensor) -> Tensor:
        m = self.method
        if m.name == "laplacian":
            edges, weight = self.twin.edges, self.twin.edge_weight
            return propreg.laplacian(z, edges, weight, reduction=m.reduction, variant=m.variant)
        if m.name == "confidence_penalty":
            return propreg.confidence_penalty(z, mask=self.train if m.nodes == "train" else None, variant=m.variant)
        source = self.twin() if m.second_pass else None
        options: Any = {"phi": m.phi, "norm": m.norm, "add_self_loops": m.add_self_loops, "detach": m.detach}
        options["reduction"] = m.reduction
        if m.phi_scale == 1:
            return propreg.preg(z, self.graph, source=source, mask=self.mask, threshold=m.threshold, **options)
        scaled = m.phi_scale * propreg.preg(z, self.graph, source=source, mask=self.mask, **options)
        return scaled if m.threshold is None else (scaled - m.threshold).relu()


def check_near(actual: Tensor, expected: Tensor, atol: float, where: str) -> None:
    """Every element within ``atol``; says where, and by how much it is not."""
    apart = float((actual.detach() - expected.detach()).abs().max())
    torch.testing.assert_close(actual, expected, rtol=0, atol=atol, msg=f"{where}: {apart:.1e} apart")


def check_follows(
    problem: Problem,
    model: Model,
    method: Method,
    replicas: Sequence[Replica],
    protocol: Protocol | None = None,
    epochs: int = 100,
) -> None:
    """With dropout off, every replica of the batch has its twin's logits within 1e-8 in all epochs."""
    protocol = protocol or Protocol()
    run = Run(problem, model, method, replicas, protocol)
    twins = [Reference(problem, model, method, r, protocol, run, i) for i, r in enumerate(replicas)]
    before = run.logits()
    for epoch in range(1, epochs + 1):
        logits = run.logits()
        expected = torch.stack([twin.step() for twin in twins])
        check_near(logits, expected, 1e-8, f"epoch {epoch}")
        run.step()
    with torch.no_grad():
        after = torch.stack([twin.twin() for twin in twins])
    check_near(run.logits(), after, 1e-8, "at the end")
    moved = (after - before).abs().amax((1, 2))
    assert bool((moved > 1e-2).all()), "a run that does not move shows nothing"


def drawn(state: State, epoch: int, number: int, place: str) -> Masks:
    """The masks of a place in the network, in an epoch and one of its two passes."""
    state.keys.advance(epoch)
    masks = DropoutMasks(state, number)(place)
    assert masks is not None
    return masks
