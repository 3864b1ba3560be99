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

    def log_probabilities(self, z: Tensor) -> Tensor:
        """Log-softmax of the training nodes' logits [R, T, C]."""
        index = self.nodes.unsqueeze(-1).expand(-1, -1, z.shape[-1])
        return z.gather(1, index).log_softmax(-1)

    def entropy_and_slopes(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """Mean cross entropy [R] of logits [R, N, C], and its gradient at the training nodes' [R, T, C].

        To the last bit those of :func:`propreg.engine.losses.cross_entropy`, so that strength 0 can be the plain run.
        """
        log_p, classes = self.log_probabilities(z), self.classes.unsqueeze(-1)
        entropy = -(log_p.gather(-1, classes).squeeze(-1) * self.weights).sum(-1)
        back = torch.zeros_like(log_p).scatter_add_(-1, classes, -self.weights.unsqueeze(-1))
        return entropy, torch.ops.aten._log_softmax_backward_data(back, log_p, -1, log_p.dtype)
