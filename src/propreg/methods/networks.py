"""Networks that several training methods share."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from propreg.engine.models.gcn_mlp import Layers
from propreg.engine.models.network import Weight

if TYPE_CHECKING:
    from propreg.engine.spec import Model
    from propreg.engine.tasks.node import Problem


class WithoutBias(Layers):
    """A GCN or MLP whose biases stay at 0."""

    def weights(self) -> dict[str, Weight]:
        """Those of the layers, with biases that are not trained."""
        known = super().weights()
        return {name: replace(w, trained=False) if name[0] == "b" else w for name, w in known.items()}


def build_gcn_without_bias(problem: Problem, model: Model) -> WithoutBias:
    """On the graph with self-loops, symmetrically normalized."""
    return WithoutBias(model, problem.features, problem.num_classes, problem.adjacency("sym", True))
