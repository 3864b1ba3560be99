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
    """The targets [R, T, L] of each replica's training nodes; NaN is unknown."""

    values: Tensor
    task: "Task"

    def keep(self, kept: Tensor) -> "Values":
        """The targets of these replicas alone."""
        return Values(self.nodes[kept], self.classes[kept], self.weights[kept], self.values[kept], self.task)

    def loss(self, z: Tensor, smoothing: Tensor | None = None) -> Tensor:  # noqa: ARG002
        """The mean loss of each replica's known targets, [R], from its logits [R, N, L]."""
        return mean_loss(self.logits(z), self.values, self.weights > 0, self.task)


def mean_loss(z: Tensor, values: Tensor, real: Tensor, task: "Task") -> Tensor:
    """Binary cross entropy of logits, or squared error, over the known values [R, T, L] of real nodes [R, T]. [R]."""
    known = ~values.isnan() & real.unsqueeze(-1)
    wanted = torch.where(known, values, 0).to(z.dtype)
    if task == "multilabel":
        each = F.binary_cross_entropy_with_logits(z, wanted, reduction="none")
    else:
        each = (z - wanted).square()
    return (each * known).sum((1, 2)) / known.sum((1, 2)).clamp(min=1)
