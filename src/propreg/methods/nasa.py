"""NASA: each epoch trains on a graph some of whose neighbors are replaced by remoter ones, and makes neighbors agree.

In every epoch each edge is visited from both ends u. With probability ½ it is cut, and u is connected with a random
neighbor of the other end instead, which may be u itself: so ¾ of the edges go. With N(i) the neighbors of i in that
graph, i among them, and GCN probabilities p on it,

    loss = −mean_train log(p_y + ε) + α mean_i mean_{j∈N(i)} KL(t_i + ε ‖ p_j + ε),   t_i = sharp_T(mean_{k∈N(i)} p_k)

with constant t_i and ε = 10⁻¹⁰. Predictions are evaluated on the graph as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from propreg.engine import ops
from propreg.engine.models.architecture import (
    Architecture,
    Recipe,
    Source,
    check_two_layers,
    count_dropped,
    settings_of,
)
from propreg.engine.models.gcn_mlp import export_gcn
from propreg.engine.models.network import Draw, Parameters, SharedMap, Weight
from propreg.engine.ranges import check_above_0, check_at_least_0, check_share
from propreg.engine.spec import Method, Model, Protocol, Replica, Sizes
from propreg.engine.training.objective import RegularizedLoss

if TYPE_CHECKING:
    from torch import Tensor

    from propreg.engine.ops.dropout import MaskKeys
    from propreg.engine.regularizers.regularizer import Term
    from propreg.engine.tasks.node import Problem, Targets
    from propreg.engine.training.passes import Passes
    from propreg.engine.training.phases import Phase
    from propreg.engine.training.state import State
    from propreg.methods.rewiring import Beside, Rewired

HITS, PICKS = 2**15 + 3, 2**15 + 4  # sites of random numbers, apart from those of dropout
EPSILON = 1e-10


@dataclass(frozen=True)
class NasaModel(Model):
    """NASA's settings; the defaults are those of Cora.

    Args:
        name: ``"nasa"``.
        hidden: Width of the hidden layer.
        input_dropout: Dropout on the features.
        replaced: The probability that a visit replaces an edge.
        consistency: The weight of the divergence from the neighbors' mean, α.
        temperature: The temperature of the sharpened mean, T.
    """

    name: str = "nasa"
    hidden: int = 32
    input_dropout: float = 0.7
    replaced: float = 0.5
    consistency: float = 1.0
    temperature: float = 0.5


class Nasa(SharedMap):
    """A GCN of two layers, whose training passes are on the epoch's own graphs."""

    spec: NasaModel
    recordable = False  # the graphs of each epoch have a size of their own

    def __init__(self, problem: Problem, model: NasaModel) -> None:
        from propreg.methods.rewiring import Rewiring

        self.spec, self.features, self.classes = model, problem.features, problem.num_classes
        self.adjacency, self.rewiring = problem.adjacency("sym", True), Rewiring(problem)
        self._graphs: Rewired | None = None
        self._sharing: dict[bytes, Beside] = {}

    @property
    def graphs(self) -> Rewired:
        """Those of the epoch."""
        if self._graphs is None:
            raise RuntimeError("a training pass needs the graphs of its epoch, see NasaLoss.advance.")
        return self._graphs

    def rewire(self, keys: MaskKeys) -> None:
        """Draw the graphs of an epoch."""
        from propreg.methods.rewiring import Beside, Rewired

        key = keys.streams.tobytes()
        if key not in self._sharing:
            self._sharing = {key: Beside(keys.streams, keys.device)}
        sharing = self._sharing[key]
        edges = self.rewiring.edges
        hits, picks = (ops.uniforms(keys(site)[sharing.first], edges) for site in (HITS, PICKS))
        self._graphs = Rewired(self.rewiring, sharing, *self.rewiring.drawn(hits < self.spec.replaced, picks))

    def weights(self) -> dict[str, Weight]:
        """Glorot's, and biases."""
        inner, width, hidden = self.classes, self.features.shape[1], self.spec.hidden
        sizes = ((width, hidden), (hidden, inner))
        return {f"w{i}": Weight(size, size) for i, size in enumerate(sizes)} | {
            f"b{i}": Weight(size[1:]) for i, size in enumerate(sizes)
        }

    def finish(self, p: Parameters, begun: Tensor | None, draw: Draw) -> Tensor:
        """Logits [R, N, C]."""
        h = self.first(p, draw("input")) if begun is None else begun
        if not draw.training:
            h = ops.propagate_relu(self.adjacency, h, p["b0"])
            return ops.propagate(self.adjacency, ops.dropped_linear(h, p["w1"], None, rectified=True), p["b1"])
        h = ops.bias_relu(self.graphs.normalized(h), p["b0"], gated=True)
        h = self.graphs.normalized(ops.dropped_linear(h, p["w1"], draw("hidden1"), rectified=True))
        return h + p["b1"].unsqueeze(1)


class NasaLoss(RegularizedLoss):
    """Cross entropy, what the regularizer adds to it, and the divergence from the neighbors' mean."""

    def __init__(self, model: NasaModel, method: Method, term: Term, network: Nasa) -> None:
        super().__init__(method, term)
        self.in_groups = False
        self.model, self.network = model, network

    def advance(self, state: State, epoch: int) -> None:
        """Draw the graphs of the epoch."""
        super().advance(state, epoch)
        self.network.rewire(state.keys)

    def loss(self, state: State, logits: Passes) -> Tensor:
        """The loss of each replica, [R]."""
        z = logits.trained(0)
        added = super().loss(state, logits) - ops.cross_entropy(z, state.targets)
        p, graphs = z.softmax(-1), self.network.graphs
        return (
            cross_entropy(p, state.targets)
            + added
            + self.model.consistency * divergence(p, graphs, self.model.temperature)
        )


def cross_entropy(p: Tensor, targets: Targets) -> Tensor:
    """−log(p + ε) of each replica's training nodes, their mean. [R]."""
    of_class = targets.logits(p).gather(-1, targets.classes.unsqueeze(-1)).squeeze(-1)
    return -((of_class + EPSILON).log() * targets.weights).sum(-1)


def divergence(p: Tensor, graphs: Rewired, temperature: float) -> Tensor:
    """mean_i mean_{j∈N(i)} KL(t_i + ε ‖ p_j + ε) of probabilities [R, N, C]. [R].

    The mean over j acts on log(p_j + ε) alone: one product.
    """
    target = ops.sharpened(graphs.averaged(p.detach()), temperature) + EPSILON
    return (target * (target.log() - graphs.averaged((p + EPSILON).log()))).sum(-1).mean(-1)


def phases(
    problem: Problem, replicas: Sequence[Replica], /, *, model: Model, method: Method, protocol: Protocol
) -> Iterator[Phase]:
    """One phase with NASA's loss."""
    from propreg.engine.training.phases import single_phase

    network = build(problem, model)
    loss = NasaLoss(settings_of(model, NasaModel), method, problem.regularizer(method), network)
    yield single_phase(problem, network, loss, model, replicas, protocol)


def build(problem: Problem, model: Model) -> Nasa:
    """On the graph with self-loops, symmetrically normalized."""
    return Nasa(problem, settings_of(model, NasaModel))


def check(model: Model) -> None:
    """Raise for a setting out of its range."""
    check_two_layers(model)
    check_share(model, "replaced")
    check_above_0(model, "temperature")
    check_at_least_0(model, "consistency")


def count_rewired(model: Model, sizes: Sizes, passes: int) -> int:
    """The layers and logits of each pass with a copy of each in a product, and a graph in the making."""
    layers = sizes.nodes * ((6 + 4 * passes) * model.hidden + (12 + 4 * passes) * sizes.classes)
    return layers + count_dropped(model, sizes, passes) + 24 * (sizes.edges + sizes.nodes)


_TRAINING = {"rule": "first_best", "max_epochs": 500, "lr": 0.01, "weight_decay": 1e-3}
# Measured on the public split: Cora 84.7 and CiteSeer 72.8 (10 seeds), PubMed 78.6 (8). On CiteSeer two classes merge
# early in 4 of 30 seeds and stay merged (53); the others have 74.9. From two of these four initial weights a plain loop
# over one run ends so, too.


def _recipe(rate: float, consistency: float, temperature: float, *, normalize: bool = True) -> Recipe:
    settings = {"input_dropout": rate, "consistency": consistency, "temperature": temperature}
    return Recipe(settings, {**_TRAINING, "dropout": rate}, normalize=normalize)


NASA = Architecture(
    "nasa",
    "NASA",
    build=build,
    export=export_gcn,
    streams=("hidden",),
    kind=NasaModel,
    dropout=0.7,
    training=_TRAINING,
    phases=phases,
    source=Source("Bo and others", 2022, "AAAI", "neighbors replaced by more distant ones, and neighbors that agree"),
    recipes={
        "cora": _recipe(0.7, 1.0, 0.5),
        "citeseer": _recipe(0.1, 1.0, 0.5),
        "pubmed": _recipe(0.5, 0.5, 0.2),
        "computers": _recipe(0.3, 0.7, 0.5, normalize=False),
        "photo": _recipe(0.5, 0.5, 0.5, normalize=False),
    },
    check=check,
    activations=count_rewired,
)
