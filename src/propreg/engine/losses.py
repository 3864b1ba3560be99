"""The loss of each replica [R]: cross entropy on its training nodes plus its strength times a regulariser."""

from dataclasses import dataclass

import torch
from torch import Tensor

from propreg._phi import PHIS
from propreg.engine.agreement import agreement, soft_cross_entropy
from propreg.engine.regularised import regularised
from propreg.engine.sparse import Matrix
from propreg.engine.spec import Method
from propreg.engine.targets import Targets


def cross_entropy(z: Tensor, targets: Targets, smoothing: Tensor | None = None) -> Tensor:
    """Mean cross entropy over each replica's training nodes, with (1 − α) y + α/C targets where α is given. [R]."""
    log_p = targets.logits(z).log_softmax(-1)
    picked = log_p.gather(-1, targets.classes.unsqueeze(-1)).squeeze(-1)
    if smoothing is not None:
        alpha = smoothing.unsqueeze(-1)
        picked = (1 - alpha) * picked + alpha * log_p.mean(-1)
    return -(picked * targets.weights).sum(-1)


@dataclass
class Regulariser:
    """One method on one graph; :meth:`value` is what is multiplied by the strength. [R]."""

    method: Method
    adjacency: Matrix | None = None
    connected: Tensor | None = None  # 0 where a node has nothing to agree with, else 1 [N]
    laplacian: Matrix | None = None
    edges: Tensor | None = None
    num_edges: float = 1.0

    def value(self, z: Tensor, source: Tensor, counted: Tensor | None, targets: Targets) -> Tensor:
        """``counted`` are the weights [R, N] of a masked mean, None for all nodes."""
        if self.method.name == "preg":
            return self._preg(z, source, counted)
        if self.method.name == "laplacian":
            return self._laplacian(z)
        if self.method.name == "confidence_penalty":
            return self._confidence(z, targets)
        raise ValueError(f"{self.method.name} has no term of its own.")

    def beside_cross_entropy(
        self, trained: Tensor, counted: Tensor | None, targets: Targets
    ) -> tuple[Tensor, Tensor] | None:
        """Cross entropy and :meth:`value` at once, of one pass or two; None if not to be had.

        ``trained`` is [R, N, passes, C], or [groups, members, N, passes, C] from a network's ``finish_all``.
        """
        matrix, connected = self.adjacency, self.connected
        if matrix is None or connected is None or not self.method.usual:
            return None
        both = regularised(matrix, trained, self._weights(connected, counted), targets)
        return None if both is None else (both[0], self._hinged(both[1]))

    def _preg(self, z: Tensor, source: Tensor, counted: Tensor | None) -> Tensor:
        if self.adjacency is None or self.connected is None:
            raise ValueError("P-reg needs the graph's propagation.")
        weights = self._weights(self.connected, counted)
        if self.method.phi == "cross_entropy" and self.method.detach is None:
            return self._hinged(agreement(self.adjacency, z, source, weights))
        propagated = self.adjacency(source)
        if self.method.detach == "self":
            z = z.detach()
        elif self.method.detach == "neighbours":
            propagated = propagated.detach()
        if self.method.phi == "cross_entropy":
            return self._hinged(soft_cross_entropy(z, propagated, weights))
        return self._hinged((PHIS[self.method.phi](z, propagated) * weights).sum(-1))

    def _weights(self, connected: Tensor, counted: Tensor | None) -> Tensor:
        """How much each node counts: all alike in a sum, and in a mean over those that do."""
        if self.method.reduction == "sum":
            return connected if counted is None else (counted > 0) * connected
        return connected / connected.shape[0] if counted is None else counted * connected

    def _hinged(self, mean: Tensor) -> Tensor:
        mean = self.method.phi_scale * mean
        return mean if self.method.threshold is None else (mean - self.method.threshold).relu()

    def _laplacian(self, z: Tensor) -> Tensor:
        if self.method.variant == "official":
            if self.edges is None:
                raise ValueError("the official Laplacian needs the edges.")
            apart = z.index_select(1, self.edges[0]) - z.index_select(1, self.edges[1])
            lengths: Tensor = torch.linalg.vector_norm(apart, dim=-1)
            return 2 * (lengths.sum(-1) / max(lengths.shape[-1], 1)).square()  # 0 on a graph without edges
        if self.laplacian is None:
            raise ValueError("the Laplacian regulariser needs the Laplacian matrix.")
        total = (z * self.laplacian(z)).sum((1, 2))
        return total / self.num_edges if self.method.reduction == "mean" else total

    def _confidence(self, z: Tensor, targets: Targets) -> Tensor:
        log_p = (targets.logits(z) if self.method.nodes == "train" else z).log_softmax(-1)
        negative = (log_p.exp() * log_p).sum(-1)
        mean = (negative * targets.weights).sum(-1) if self.method.nodes == "train" else negative.mean(-1)
        return mean if self.method.variant == "paper" else -mean
