"""The networks, written replica-first: every tensor begins with the replica axis [R, …].

A model is its parameters' shapes and two functions. ``begin`` is the part of a forward pass that no dropout touches:
the same for both training passes and for the evaluation, so it is computed once an epoch. ``finish`` is the rest. Where
a model can do the rest of all passes at once, it has ``finish_all``.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from propreg.engine import kernels
from propreg.engine.activation import spread, spread_relu
from propreg.engine.dropout import Masks, dropped_linear
from propreg.engine.features import Features
from propreg.engine.sparse import Matrix
from propreg.engine.spec import Model

Parameters = dict[str, Tensor]


class Draw(Protocol):
    """Gives the dropout masks of a place in the network, or None where nothing is dropped."""

    def __call__(self, place: str) -> Masks | None: ...


@dataclass(frozen=True)
class Weight:
    """The shape of a parameter of one replica, and its Glorot fans (none: it starts at 0)."""

    shape: tuple[int, ...]
    fans: tuple[int, int] | None = None


class Network(Protocol):
    """What the training loop needs of a model."""

    def weights(self) -> dict[str, Weight]: ...

    def begin(self, p: Parameters) -> Tensor | None: ...

    def finish(self, p: Parameters, begun: Tensor | None, draw: Draw) -> Tensor: ...


class Layers:
    """GCN (with an adjacency) and MLP (without): linear, propagate, bias, ReLU, dropout, …, linear, propagate, bias."""

    def __init__(self, spec: Model, features: Features, classes: int, adjacency: Matrix | None) -> None:
        self.spec, self.adjacency = spec, adjacency
        self.fold = adjacency is not None and features.prefers_dense(spec.hidden) and spec.input_dropout == 0
        self.features = features.propagated(adjacency) if self.fold and adjacency is not None else features
        self.widths = [features.shape[1], *[spec.hidden] * (spec.layers - 1), classes]

    def weights(self) -> dict[str, Weight]:
        """Weights and biases, first layer first."""
        found = {}
        for i, (fan_in, fan_out) in enumerate(itertools.pairwise(self.widths)):
            found[f"w{i}"] = Weight((fan_in, fan_out), (fan_in, fan_out))
            found[f"b{i}"] = Weight((fan_out,))
        return found

    def begin(self, p: Parameters) -> Tensor | None:
        """The first layer, where its input is not dropped."""
        return None if self.spec.input_dropout > 0 else self._first(p, None)

    def finish(self, p: Parameters, begun: Tensor | None, draw: Draw) -> Tensor:
        """Logits [R, N, C]."""
        h = self._first(p, draw("input")) if begun is None else begun
        last = self.spec.layers - 1
        for i in range(1, last + 1):
            h = dropped_linear(h, p[f"w{i}"], draw(f"hidden{i}"), rectified=True)
            h = (spread_relu if i < last else spread)(self.adjacency, h, p[f"b{i}"])
        return h

    def finish_all(
        self, p: Parameters, begun: Tensor | None, draws: Sequence[Draw], in_groups: bool
    ) -> tuple[Tensor, Tensor] | None:
        """The evaluation and all training passes at once, where kernels can; else None.

        [groups, members, N, C] and [groups, members, N, passes, C], with one member each if not ``in_groups``.
        """
        masks = [m for m in (draw("hidden1") for draw in draws) if m is not None]
        if begun is None or self.spec.layers > 2 or len(masks) < len(draws) or not kernels.usable(begun, p["w1"]):
            return None
        from propreg.engine.kernels.dropped_linear import fused
        from propreg.engine.kernels.passes import passes

        if not fused(begun, p["w1"]):
            return None
        return passes(self.adjacency, begun, p["w1"], p["b1"], masks, in_groups=in_groups)

    def _first(self, p: Parameters, masks: Masks | None) -> Tensor:
        if masks is None and (self.fold or self.adjacency is None):
            return self.features.rectified(p["w0"], p["b0"])
        return spread_relu(self.adjacency, self.features(p["w0"], masks), p["b0"])


class Appnp:
    """APPNP: a two-layer MLP, then K steps of personalised PageRank, z ← (1 − α) Â z + α h."""

    def __init__(self, spec: Model, features: Features, classes: int, adjacency: Matrix) -> None:
        self.spec, self.adjacency = spec, adjacency
        self.mlp = Layers(spec, features, classes, None)

    def weights(self) -> dict[str, Weight]:
        """Those of the MLP."""
        return self.mlp.weights()

    def begin(self, p: Parameters) -> Tensor | None:
        """The first layer, where its input is not dropped."""
        return self.mlp.begin(p)

    def finish(self, p: Parameters, begun: Tensor | None, draw: Draw) -> Tensor:
        """Logits [R, N, C]."""
        start = self.mlp.finish(p, begun, draw)
        z, teleport = start, self.spec.teleport
        for _ in range(self.spec.steps):
            z = (1 - teleport) * self.adjacency(z) + teleport * start
        return z
