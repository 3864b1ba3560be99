"""What a run learns from: its training nodes and their classes."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass
class Targets:
    """The training nodes of each replica: numbers, classes and weights [R, T]; a weight is 0 where a row is short."""

    nodes: Tensor
    classes: Tensor
    weights: Tensor

    def keep(self, kept: Tensor) -> "Targets":
        """Compact to these replicas."""
        return Targets(self.nodes[kept], self.classes[kept], self.weights[kept])

    def logits(self, z: Tensor) -> Tensor:
        """Those of the training nodes, [R, T, C] of [R, N, C]."""
        return z.gather(1, self.nodes.unsqueeze(-1).expand(-1, -1, z.shape[-1]))

    def entropy_and_slopes(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """Mean cross entropy [R] of the training nodes' logits [R, T, C], and its gradient to them.

        To the last bit those of :func:`propreg.engine.losses.cross_entropy`, so that strength 0 can be the plain run.
        """
        log_p, classes = z.log_softmax(-1), self.classes.unsqueeze(-1)
        entropy = -(log_p.gather(-1, classes).squeeze(-1) * self.weights).sum(-1)
        back = torch.zeros_like(log_p).scatter_add_(-1, classes, -self.weights.unsqueeze(-1))
        return entropy, torch.ops.aten._log_softmax_backward_data(back, log_p, -1, log_p.dtype)
