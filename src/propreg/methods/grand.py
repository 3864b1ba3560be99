"""GRAND: S random augmentations of the features per epoch, and predictions of each that agree with their mean.

An augmentation drops whole nodes, without rescaling what is kept, and then averages the features over the hops:

    X̄ = 1/(K+1) Σ_{k=0..K} Â^k (m ⊙ X)        (m: a mask over nodes; in the evaluation (1 − rate) X without a mask)
    z = MLP(X̄)
    loss = 1/S Σ_s CE(z_s) + λ · 1/S Σ_s mean_i ‖p_i^(s) − sharp_T(mean_s p_i)‖²        (the target is a constant)

Dropout of the input acts on X̄. Batch norm, where used, stands before the dropout of the input and after the ReLU.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from propreg.engine import ops
from propreg.engine.models.architecture import (
    ON_WEIGHTED_EDGES,
    Architecture,
    Layer,
    Recipe,
    Source,
    check_two_layers,
    count_propagating,
    same,
    settings_of,
    transposed,
)
from propreg.engine.models.network import Draw, OnFeatures, Parameters, Start, Weight, norm
from propreg.engine.ranges import check_above_0, check_at_least_0, check_share, check_whole
from propreg.engine.spec import Method, Model, Protocol, Replica, Sizes
from propreg.engine.training.objective import RegularizedLoss

if TYPE_CHECKING:
    from torch import Tensor

    from propreg.engine.ops import Masks
    from propreg.engine.regularizers.regularizer import Term
    from propreg.engine.tasks.node import Problem
    from propreg.engine.training.passes import Passes
    from propreg.engine.training.phases import Phase
    from propreg.engine.training.state import State


@dataclass(frozen=True)
class GrandModel(Model):
    """GRAND's settings; the defaults are those of Cora.

    Args:
        name: ``"grand"``.
        hidden: Width of the MLP's hidden layer.
        steps: The number of hops, K.
        input_dropout: Dropout on the propagated features.
        drop_node: The share of nodes that an augmentation drops.
        augmentations: Their number per epoch, S.
        consistency: The weight of the consistency loss, λ.
        temperature: The temperature of the sharpened mean, T.
        batch_norm: Whether the MLP has batch norm.
    """

    name: str = "grand"
    hidden: int = 32
    steps: int = 8
    input_dropout: float = 0.5
    drop_node: float = 0.5
    augmentations: int = 4
    consistency: float = 1.0
    temperature: float = 0.5
    batch_norm: bool = False


class GrandNetwork(OnFeatures):
    """An MLP on augmented features.

    The features of an augmentation belong to a random stream: the replicas that differ in strength or learning rate
    share them, so they are computed once. Where nothing is dropped from X̄ it is never computed: (m ⊙ X) W has H columns
    instead of F, and is propagated in place of X.
    """

    def __init__(self, problem: Problem, model: GrandModel) -> None:
        self.spec, self.problem = model, problem
        self.features, self.adjacency = problem.features, problem.adjacency("sym", True)
        self.whole = model.input_dropout > 0 or model.batch_norm  # whether X̄ is needed as a whole
        self._x: Tensor | None = None
        self._sharing: dict[bytes, ops.Sharing] = {}

    def weights(self) -> dict[str, Weight]:
        """Two layers, drawn as the authors' code does: a normal distribution with mean −s and deviation s."""
        width, hidden, classes = self.features.shape[1], self.spec.hidden, self.problem.num_classes
        found: dict[str, Weight] = {}
        for i, (fan_in, fan_out) in enumerate(((width, hidden), (hidden, classes))):
            start = Start("normal", fan_out**-0.5, -(fan_out**-0.5))
            found |= {f"w{i}": Weight((fan_in, fan_out), start=start), f"b{i}": Weight((fan_out,), start=start)}
        return found | (norm(0, width) | norm(1, hidden) if self.spec.batch_norm else {})

    def begin(self, p: Parameters) -> Tensor | None:
        """X W, where nothing is dropped from X̄."""
        return None if self.whole else self.first(p)

    def begin_from(self, p: Parameters, xw: Tensor) -> Tensor:  # noqa: ARG002
        """X W itself."""
        return xw

    def finish(self, p: Parameters, begun: Tensor | None, draw: Draw) -> Tensor:
        """Logits [R, N, C]."""
        nodes = draw("nodes") if draw.training else None
        if nodes is None:
            h = self._evaluated(p, begun)
        elif begun is not None:
            kept = nodes.kept(self.problem.num_nodes, begun.dtype).unsqueeze(2)
            h = ops.mean_of_powers(self.adjacency, begun * kept, self.spec.steps)
        else:
            h = self._augmented(p, nodes, draw("input"))
        normed = self.spec.batch_norm
        h = ops.bias_relu(h, p["b0"], gated=not normed)
        if normed:
            h = ops.batch_norm(h, p, 1, training=nodes is not None)
        return ops.dropped_linear(h, p["w1"], draw("hidden1"), rectified=not normed) + p["b1"].unsqueeze(1)

    def _evaluated(self, p: Parameters, begun: Tensor | None) -> Tensor:
        """X̄ W of the evaluation: propagation, batch norm with running statistics and W are linear together."""
        keep = 1 - self.spec.drop_node
        if not self.spec.batch_norm:
            return ops.mean_of_powers(
                self.adjacency, keep * (self.first(p) if begun is None else begun), self.spec.steps
            )
        factor = p["scale0"] * (p["variance0"] + ops.EPSILON).rsqrt()
        spread = self.features(factor.unsqueeze(2) * p["w0"])
        shift = (p["shift0"] - p["mean0"] * factor).unsqueeze(1) @ p["w0"]
        return ops.mean_of_powers(self.adjacency, keep * spread, self.spec.steps) + shift

    def _augmented(self, p: Parameters, nodes: Masks, inputs: Masks | None) -> Tensor:
        """X̄ W of a training pass, with X̄ as a whole."""
        share = self._shared(nodes)
        spread = self._spread(nodes.of(share.first))
        size, width = spread.shape[1:]
        drops = inputs.of(share.first) if inputs is not None and self.spec.input_dropout > 0 else None
        if not self.spec.batch_norm:
            return share.product(spread if drops is None else ops.drop_(spread, drops), p["w0"])
        mean, variance = spread.mean(1), spread.var(1, correction=0)
        ops.update_running(p["mean0"], p["variance0"], mean[share.member], variance[share.member], size)
        spread.sub_(mean.unsqueeze(1)).mul_((variance + ops.EPSILON).rsqrt().unsqueeze(1))
        scaled, shifted = (p[name].unsqueeze(2) * p["w0"] for name in ("scale0", "shift0"))
        if drops is None:
            return share.product(spread, scaled) + shifted.sum(1, keepdim=True)
        factors = drops.factors(size * width, spread.dtype).view(spread.shape)
        return share.product(spread.mul_(factors), scaled) + share.product(factors, shifted)

    def _spread(self, nodes: Masks) -> Tensor:
        """X̄ of each stream, [U, N, F], by Horner's rule: x + Â(x + Â(x + …))."""
        x = self._written_out()
        start = x * nodes.kept(len(x), x.dtype).div_(self.spec.steps + 1).unsqueeze(2)
        spread = start
        for _ in range(self.spec.steps):
            spread = self.adjacency.plus(spread, start)
        return spread

    def _written_out(self) -> Tensor:
        """X in dense form."""
        if self._x is None:
            features = self.features
            self._x = features.dense if features.dense is not None else features.matrix.to_dense()
        return self._x

    def _shared(self, nodes: Masks) -> ops.Sharing:
        """Which replicas of the batch share a stream; kept, since a recorded epoch cannot make index tensors."""
        if nodes.streams is None:
            raise ValueError("an augmentation needs the masks of random streams, see DropoutMasks.")
        key = nodes.streams.tobytes()
        if key not in self._sharing:
            self._sharing[key] = ops.Sharing(nodes.streams, nodes.keys.device)
        return self._sharing[key]


class GrandLoss(RegularizedLoss):
    """The mean over the augmentations of cross entropy with its regularizer, and their consistency."""

    def __init__(self, model: GrandModel, method: Method, term: Term) -> None:
        super().__init__(method, term, over=model.augmentations)
        self.model = model

    def loss(self, state: State, logits: Passes) -> Tensor:
        """The loss of each replica, [R]."""
        passes = [logits.trained(number).softmax(-1) for number in range(self.over)]
        weight = state.held.get("consistency", self.model.consistency)
        temperature = state.held.get("temperature", self.model.temperature)
        return super().loss(state, logits) + weight * inconsistency(passes, temperature)


def inconsistency(passes: Sequence[Tensor], temperature: float | Tensor) -> Tensor:
    """The mean squared distance of probabilities [R, N, C] from their sharpened mean, which is a constant. [R].

    The temperature is one for all replicas, or that of each, [R].
    """
    total = passes[0].detach()
    for p in passes[1:]:
        total = total + p.detach()
    mean = total / len(passes)
    if isinstance(temperature, int | float):
        target = ops.sharpened(mean, temperature)
    else:
        target = ops.sharpened(mean.pow(1 / temperature.view(-1, 1, 1)), 1.0)
    distances = [(p - target).square().sum(-1).mean(-1) for p in passes]
    return sum(distances[1:], distances[0]) / len(passes)


def phases(
    problem: Problem, replicas: Sequence[Replica], /, *, model: Model, method: Method, protocol: Protocol
) -> Iterator[Phase]:
    """One phase with GRAND's loss."""
    from propreg.engine.training.phases import single_phase
    from propreg.engine.training.state import hold

    loss = GrandLoss(settings_of(model, GrandModel), method, problem.regularizer(method))
    phase = single_phase(problem, problem.network(model), loss, model, replicas, protocol)
    hold(phase.state, problem, model, replicas, "consistency", "temperature")
    yield phase


def build(problem: Problem, model: Model) -> GrandNetwork:
    """On the graph with self-loops, symmetrically normalized."""
    return GrandNetwork(problem, settings_of(model, GrandModel))


def export(model: Model, features: int, classes: int, dropout: float) -> list[Layer]:
    """The propagation as a module of ours, and torch's layers."""
    from torch import nn

    from propreg.engine.models.modules import MixedOrder, norm_layer

    mine = settings_of(model, GrandModel)
    found = [Layer(MixedOrder(mine.steps, 1 - mine.drop_node), ON_WEIGHTED_EDGES)]
    for i, (fan_in, fan_out) in enumerate(((features, model.hidden), (model.hidden, classes))):
        found += [Layer(nn.ReLU())] if i else []
        found += [norm_layer(i, fan_in)] if mine.batch_norm else []
        found += [Layer(nn.Dropout(dropout))] if i else []
        found.append(Layer(nn.Linear(fan_in, fan_out), state={"weight": transposed(f"w{i}"), "bias": same(f"b{i}")}))
    return found


def check(model: Model) -> None:
    """Raise for a setting out of its range."""
    check_two_layers(model)
    check_whole(model, "augmentations")
    check_share(model, "drop_node")
    check_above_0(model, "temperature")
    check_at_least_0(model, "consistency")


def count_activations(model: Model, sizes: Sizes, passes: int) -> int:
    """X̄ of each pass, twice with batch norm, one more in the making; and the hidden layers and logits of the passes."""
    mine = settings_of(model, GrandModel)
    passes = max(passes, mine.augmentations)
    whole = mine.input_dropout > 0 or mine.batch_norm
    spread = (passes * (1 + mine.batch_norm) + 3) * sizes.nodes * sizes.features if whole else 0
    return spread + sizes.nodes * ((4 * passes + 3) * model.hidden + (4 * passes + 2) * sizes.classes)


def count_touched(model: Model, sizes: Sizes) -> int:
    """The numbers that a layer touches, of which X̄ is by far the most: measured beside a GCN's on an H200."""
    mine = settings_of(model, GrandModel)
    spread = 2.5 * sizes.nodes * sizes.features if mine.input_dropout > 0 or mine.batch_norm else 0
    return int(mine.augmentations * (count_propagating(model, sizes) + spread))


_COMMON = {"rule": "loss_or_accuracy", "max_epochs": 5000, "lr": 0.01, "weight_decay": 5e-4, "patience": 200}

GRAND = Architecture(
    "grand",
    "GRAND",
    build=build,
    export=export,
    streams=("hidden", "steps", "batch_norm"),
    settings=("steps",),
    per_replica=("consistency", "temperature"),  # not the rates of its augmentations, which replicas share
    kind=GrandModel,
    rates={"nodes": "drop_node"},
    training=_COMMON,
    phases=phases,
    source=Source(
        "Feng and others", 2020, "NeurIPS", "random augmentations of the features, with predictions that agree"
    ),
    recipes={
        "cora": Recipe({}, _COMMON),
        "citeseer": Recipe(
            {"steps": 2, "augmentations": 2, "input_dropout": 0.0, "consistency": 0.7, "temperature": 0.3},
            {**_COMMON, "dropout": 0.2},
        ),
        "pubmed": Recipe(
            {"steps": 5, "input_dropout": 0.6, "temperature": 0.2, "batch_norm": True},
            {**_COMMON, "dropout": 0.8, "lr": 0.2, "patience": 100},
        ),
    },
    check=check,
    activations=count_activations,
    cost=count_touched,
)
