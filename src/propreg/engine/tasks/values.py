"""Targets that are no classes: several yes/no labels of each node, or numbers."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor

from propreg.engine.tasks.node import Targets

if TYPE_CHECKING:
    from propreg.data.graph import Task


@dataclass
class Values(Targets):
    """The targets of each replica's training nodes.

    Args:
        values: Those of all nodes [N, L]; NaN is unknown.
        units: The mean and the deviation [R, 1, L] that each replica learns them with.
        task: What they are.
    """

    values: Tensor
    units: tuple[Tensor, Tensor]
    task: "Task"

    def __post_init__(self) -> None:
        self.wanted = self._learned(self.nodes)

    def _learned(self, nodes: Tensor) -> Tensor:
        mean, deviation = self.units
        return (self.values[nodes] - mean) / deviation

    def keep(self, kept: Tensor) -> "Values":
        """The targets of these replicas alone."""
        mean, deviation = self.units
        units = mean[kept], deviation[kept]
        return Values(self.nodes[kept], self.classes[kept], self.weights[kept], self.values, units, self.task)

    def loss(self, z: Tensor, smoothing: Tensor | None = None) -> Tensor:  # noqa: ARG002
        """The mean loss of each replica's known targets, [R], from its logits [R, N, L]."""
        return mean_loss(self.logits(z), self.wanted, self.weights > 0, self.task)

    def loss_at(self, z: Tensor, nodes: Tensor) -> Tensor:
        """The mean loss [R] of logits [R, T, L] at nodes [R, T] but −1, in float64."""
        return mean_loss(z.double(), self._learned(nodes), nodes >= 0, self.task)


def mean_loss(z: Tensor, values: Tensor, real: Tensor, task: "Task") -> Tensor:
    """Binary cross entropy of logits, or squared error, over the known values [R, T, L] of real nodes [R, T]. [R]."""
    known = ~values.isnan() & real.unsqueeze(-1)
    wanted = torch.where(known, values, 0).to(z.dtype)
    if task == "multilabel":
        each = F.binary_cross_entropy_with_logits(z, wanted, reduction="none")
    else:
        each = (z - wanted).square()
    return (each * known).sum((1, 2)) / known.sum((1, 2)).clamp(min=1)
