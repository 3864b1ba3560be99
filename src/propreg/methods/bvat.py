"""BVAT: predictions that hold under perturbations which are chosen for many nodes at once.

    loss = CE + α mean_i −Σ_c q_ic log f(X + R)_ic + β mean_i H(f(X)_i)        (q: a constant f(X), of its own pass)

O-BVAT perturbs every node. In each epoch R starts from a truncated normal distribution, and ten steps of Adam lower
½‖R‖² − mean_i −Σ_c q_ic log f(X + R)_ic.

S-BVAT perturbs a sample of nodes that lie more than four hops apart, each along its gradient, taken at a random point
near X. Gradients are divided by the largest entry of all, and rows far below it stay short:
r_i = ε g_i/√(10⁻⁶ + ‖g_i‖²). Its mean is over the sampled nodes.

Each pass has dropout masks of its own. That of the input acts on perturbations, too, entry by entry.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from propreg.engine import ops
from propreg.engine.models.architecture import Architecture, Recipe, Source, count_activations, settings_of
from propreg.engine.models.gcn_mlp import export_gcn
from propreg.engine.ranges import check_at_least_0, check_whole
from propreg.engine.spec import Method, Model, Protocol, Replica, Sizes
from propreg.engine.training.objective import RegularizedLoss
from propreg.methods.networks import build_gcn_without_bias

if TYPE_CHECKING:
    from torch import Tensor

    from propreg.engine.models.network import Draw
    from propreg.engine.regularizers.regularizer import Term
    from propreg.engine.tasks.node import Problem
    from propreg.engine.training.passes import Passes
    from propreg.engine.training.phases import Phase
    from propreg.engine.training.state import State

START = 2**15 + 2  # a site of random numbers, apart from those of dropout
BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8


@dataclass(frozen=True)
class BvatModel(Model):
    """What both kinds of BVAT have.

    Args:
        name: ``"o-bvat"`` or ``"s-bvat"``.
        hidden: Width of the hidden layer.
        input_dropout: Dropout on the features.
        adversarial_weight: The weight of the cross entropy under the perturbation, α.
        entropy_weight: The weight of the mean entropy, β.
    """

    hidden: int = 16
    input_dropout: float = 0.5
    adversarial_weight: float = 1.0
    entropy_weight: float = 1.0


@dataclass(frozen=True)
class OBvatModel(BvatModel):
    """The settings of O-BVAT; the defaults are those of Cora.

    Args:
        name: ``"o-bvat"``.
        adversarial_weight, entropy_weight: As for :class:`BvatModel`.
        ascents: The steps of Adam for the perturbation in each epoch.
        ascent_lr: Their learning rate.
        deviation: The standard deviation of the perturbation that they start from.
    """

    name: str = "o-bvat"
    adversarial_weight: float = 1.4
    entropy_weight: float = 0.7
    ascents: int = 10
    ascent_lr: float = 0.001
    deviation: float = 0.01


@dataclass(frozen=True)
class SBvatModel(BvatModel):
    """The settings of S-BVAT; the defaults are those of Cora.

    Args:
        name: ``"s-bvat"``.
        adversarial_weight, entropy_weight: As for :class:`BvatModel`.
        sampled: The number of nodes that are perturbed, or as many as there are.
        hops: No two of them are within so many hops.
        epsilon: The length of a perturbation, ε.
        random_step: The length of the random step to where the gradient is taken, ξ.
    """

    name: str = "s-bvat"
    adversarial_weight: float = 0.9
    entropy_weight: float = 0.7
    sampled: int = 100
    hops: int = 4
    epsilon: float = 0.03
    random_step: float = 1e-6


class BvatLoss(RegularizedLoss):
    """Cross entropy with its regularizer, the cross entropy under a perturbation, and the entropy."""

    def __init__(self, model: BvatModel, method: Method, term: Term) -> None:
        super().__init__(method, term)
        self.in_groups = False
        self.weights, self.drops = (model.adversarial_weight, model.entropy_weight), model.input_dropout > 0

    def loss(self, state: State, logits: Passes) -> Tensor:
        """The loss of each replica, [R]."""
        log_p = self.clean(logits, self.passes)
        adversarial, entropy = self.weights
        found = super().loss(state, logits)
        if adversarial:
            found = found + adversarial * self.adversarial(state, logits, log_p.detach().exp())
        return found + entropy * -(log_p.exp() * log_p).sum(-1).mean(-1)

    def adversarial(self, state: State, logits: Passes, q: Tensor) -> Tensor:
        """The mean cross entropy under the perturbation against q, [R]."""
        raise NotImplementedError

    def clean(self, logits: Passes, number: int) -> Tensor:
        """The log-probabilities of X, in one more pass. [R, N, C]."""
        return logits.network.finish(logits.p, logits.begun, logits.another(number)).log_softmax(-1)

    def perturbed(self, logits: Passes, draw: Draw, r: Tensor, nodes: Tensor | None = None) -> Tensor:
        """The log-probabilities of X + R, from R or its rows at some nodes. [R, N, C]."""
        passed = ops.Perturbed(logits.network, logits.p, draw, drops_input=self.drops)
        factors = self.factors(draw, r)
        rw = (r if factors is None else r * factors) @ logits.p["w0"]
        if nodes is not None:
            rw = rw.new_zeros(passed.xw.shape).scatter_add(1, nodes.unsqueeze(2).expand_as(rw), rw)
        return passed.log_probabilities(rw)

    def factors(self, draw: Draw, r: Tensor) -> Tensor | None:
        """Those of dropout on a perturbation [R, T, F]; None where nothing is dropped."""
        masks = draw("input1") if self.drops else None
        return None if masks is None else masks.factors(r[0].numel(), r.dtype).view(r.shape)


class OBvatLoss(BvatLoss):
    """Whose perturbation of all nodes is optimized."""

    def __init__(self, model: OBvatModel, method: Method, term: Term) -> None:
        super().__init__(model, method, term)
        self.model = model

    def adversarial(self, state: State, logits: Passes, q: Tensor) -> Tensor:
        """The mean over all nodes, [R]."""
        r = self.optimized(state, logits)
        log_p = self.perturbed(logits, logits.another(self.passes + 2 * self.model.ascents + 1), r)
        return -(q * log_p).sum(-1).mean(-1)

    def optimized(self, state: State, logits: Passes) -> Tensor:
        """R after the steps of Adam, whose moments go on from epoch to epoch. [R, N, F]."""
        import torch

        held = state.held
        shape = held["ascent_first"].shape
        r = ops.truncated_normals(state.keys(START), shape[1] * shape[2], held["ascent_first"].dtype).view(shape)
        r = r * self.model.deviation
        for number in range(self.passes + 1, self.passes + 2 * self.model.ascents, 2):
            q = self.clean(logits, number).detach().exp()
            r.requires_grad_()
            log_p = self.perturbed(logits, logits.another(number + 1), r)
            value = r.square().sum((1, 2)) / 2 + (q * log_p).sum(-1).mean(-1)
            (gradient,) = torch.autograd.grad(value.sum(), r)
            r = self.lowered(r.detach(), gradient, held)
        return r

    def lowered(self, r: Tensor, gradient: Tensor, held: dict[str, Tensor]) -> Tensor:
        """R after one step of Adam."""
        count = held["ascents"].add_(1)
        first = held["ascent_first"].lerp_(gradient, 1 - BETA1)
        second = held["ascent_second"].mul_(BETA2).addcmul_(gradient, gradient, value=1 - BETA2)
        size, root = ((1 - beta**count).to(r.dtype).view(-1, 1, 1) for beta in (BETA1, BETA2))
        return r - self.model.ascent_lr * (first / size) / ((second / root).sqrt() + EPSILON)


class SBvatLoss(BvatLoss):
    """Whose perturbations of nodes far apart follow gradients."""

    def __init__(self, model: SBvatModel, method: Method, term: Term, apart: ops.Apart) -> None:
        super().__init__(model, method, term)
        self.model, self.apart = model, apart

    def advance(self, state: State, epoch: int) -> None:
        """Draw the nodes of the epoch."""
        super().advance(state, epoch)
        nodes, weights = self.apart.drawn(state.keys.streams, epoch)
        for name, found in (("nodes", nodes), ("node_weights", weights)):
            state.held[name].copy_(found)

    def adversarial(self, state: State, logits: Passes, q: Tensor) -> Tensor:
        """The mean over the sampled nodes, [R]."""
        import torch

        nodes, weights = state.held["nodes"], state.held["node_weights"]
        at = nodes.unsqueeze(2)
        target = q.gather(1, at.expand(-1, -1, q.shape[2]))

        def value(draw: Draw, r: Tensor) -> Tensor:
            log_p = self.perturbed(logits, draw, r * real, nodes)
            return -((target * log_p.gather(1, at.expand_as(target))).sum(-1) * weights).sum(-1)

        real = (weights > 0).unsqueeze(2)
        width = logits.p["w0"].shape[1]
        u = ops.normals(state.keys(START), nodes.shape[1] * width, q.dtype).view(*nodes.shape, width)
        start = (self.model.random_step * u / u.norm(dim=-1, keepdim=True)).requires_grad_()
        (gradient,) = torch.autograd.grad(value(logits.another(self.passes + 1), start).sum(), start)
        return value(logits.another(self.passes + 2), self.model.epsilon * nearly_normalized(gradient))


def nearly_normalized(g: Tensor) -> Tensor:
    """Rows of g [R, T, F], divided by its largest entry, over √(10⁻⁶ + ‖row‖²)."""
    g = g / (g.abs().amax((1, 2), keepdim=True) + 1e-12)
    rows: Tensor = g / (1e-6 + g.square().sum(-1, keepdim=True)).sqrt()
    return rows


def phases(
    problem: Problem, replicas: Sequence[Replica], /, *, model: Model, method: Method, protocol: Protocol
) -> Iterator[Phase]:
    """One phase with the loss of BVAT."""
    import torch

    from propreg.engine.training.phases import single_phase

    term = problem.regularizer(method)
    held: dict[str, Tensor] = {}
    options: dict[str, Any] = {"dtype": problem.dtype, "device": problem.device}
    loss: BvatLoss
    if isinstance(model, SBvatModel):
        apart = ops.Apart(problem.graph.edge_index, problem.num_nodes, model.hops, model.sampled)
        shape = len(replicas), min(model.sampled, problem.num_nodes)
        held["nodes"] = torch.zeros(shape, dtype=torch.long, device=problem.device)
        held["node_weights"] = torch.zeros(shape, **options)
        loss = SBvatLoss(model, method, term, apart)
    else:
        mine = settings_of(model, OBvatModel)
        for name in ("ascent_first", "ascent_second"):
            held[name] = torch.zeros(len(replicas), problem.num_nodes, problem.features.shape[1], **options)
        held["ascents"] = torch.zeros(len(replicas), dtype=torch.float64, device=problem.device)
        loss = OBvatLoss(mine, method, term)
    phase = single_phase(problem, problem.network(model), loss, model, replicas, protocol)
    phase.state.held |= held
    yield phase


def check(model: Model) -> None:
    """Raise for a setting out of its range."""
    check_at_least_0(model, "adversarial_weight", "entropy_weight")
    if isinstance(model, SBvatModel):
        check_whole(model, "sampled", "hops")
        check_at_least_0(model, "epsilon", "random_step")
    else:
        check_whole(settings_of(model, OBvatModel), "ascents")
        check_at_least_0(model, "ascent_lr", "deviation")


def count_perturbed(model: Model, sizes: Sizes, passes: int) -> int:
    """Two more passes, and the perturbed rows with their masks, gradients and moments."""
    rows = min(model.sampled, sizes.nodes) if isinstance(model, SBvatModel) else sizes.nodes
    return count_activations(model, sizes, passes + 3) + 10 * rows * sizes.features


_TRAINING = {"rule": "last", "max_epochs": 200, "weight_decay_scope": "first"}


def _entry(name: str, title: str, idea: str, kind: type[Model], recipes: dict[str, Recipe]) -> Architecture:
    return Architecture(
        name,
        title,
        build=build_gcn_without_bias,
        export=export_gcn,
        streams=("hidden", "layers"),
        kind=kind,
        training=_TRAINING,
        phases=phases,
        source=Source("Deng and others", 2019, "ICML workshop", idea),
        recipes=recipes,
        check=check,
        activations=count_perturbed,
    )


O_BVAT = _entry(
    "o-bvat",
    "O-BVAT",
    "predictions that hold under one perturbation, optimized for all nodes",
    OBvatModel,
    {
        "cora": Recipe({}, _TRAINING),
        "citeseer": Recipe({"adversarial_weight": 0.8}, _TRAINING),
        "pubmed": Recipe({"adversarial_weight": 1.0}, _TRAINING, ours=True),
    },
)
S_BVAT = _entry(
    "s-bvat",
    "S-BVAT",
    "predictions that hold under perturbations of sampled nodes far apart",
    SBvatModel,
    {
        "cora": Recipe({}, _TRAINING),
        "citeseer": Recipe({"adversarial_weight": 1.0, "entropy_weight": 1.0}, _TRAINING),
        "pubmed": Recipe({"adversarial_weight": 1.0, "entropy_weight": 1.0}, _TRAINING, ours=True),
    },
)
