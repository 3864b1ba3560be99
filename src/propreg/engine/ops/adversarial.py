"""Perturbations of the features that change predictions most, without a dense tensor [R, N, F].

A perturbation enters a network as r W, see :class:`propreg.engine.models.network.Network`. One along the gradient with
respect to X is r = c G Wᵀ with G = ∂/∂(X W), so that ‖r_i‖² = c_i² G_i (WᵀW) G_iᵀ: both need H columns, not F.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from propreg.engine.models.network import Draw, Network, Parameters


def divergence(log_p: Tensor, log_q: Tensor) -> Tensor:
    """KL(p ‖ q) of log-probabilities [..., C]. [...]."""
    return (log_p.exp() * (log_p - log_q)).sum(-1)


def divergence_to_neighbors(log_p: Tensor, log_q: Tensor, neighbors: Tensor) -> Tensor:
    """The sum over the sampled neighbors n [R, k, N] of the mean over nodes of KL(p_n ‖ q_i). [R]."""
    replicas, each, nodes = neighbors.shape
    index = neighbors.view(replicas, each * nodes, 1).expand(-1, -1, log_p.shape[2])
    picked = log_p.gather(1, index).view(replicas, each, nodes, -1)
    return divergence(picked, log_q.unsqueeze(1)).mean(-1).sum(-1)


class Perturbed:
    """A network's predictions for perturbed features, in a pass with the masks of one draw.

    Args:
        network: Has a first linear map with the weights ``w0``.
        p: Its parameters.
        draw: The masks of dropout. That of the input does not act on the perturbation.
    """

    def __init__(self, network: Network, p: Parameters, draw: Draw, *, drops_input: bool = False) -> None:
        self.network, self.p, self.draw = network, p, draw
        self.xw = network.first(p, draw("input") if drops_input else None)

    def log_probabilities(self, rw: Tensor) -> Tensor:
        """Of X + r, from r W [R, N, H]. [R, N, C]."""
        begun = self.network.begin_from(self.p, self.xw + rw)
        return self.network.finish(self.p, begun, self.draw).log_softmax(-1)

    def steepest(
        self, value: Callable[[Tensor], Tensor], size: float, floor: float, start: Tensor | None = None
    ) -> Tensor:
        """r W of the constant r = size · G/√max(‖G‖², floor), row by row, with G = ∂ value/∂X. [R, N, H].

        Args:
            value: The quantity [R] to increase, of log-probabilities.
            size: The length of a row that is above the floor.
            floor: The least squared length of a gradient.
            start: r W where the gradient is taken; None: 0.
        """
        fixed = {name: t.detach() for name, t in self.p.items()}
        xw = self.xw.detach()
        moved = (torch.zeros_like(xw) if start is None else start.detach()).requires_grad_()
        begun = self.network.begin_from(fixed, xw + moved)
        found = value(self.network.finish(fixed, begun, self.draw).log_softmax(-1))
        (gradient,) = torch.autograd.grad(found.sum(), moved)
        constant = fixed["w0"].transpose(1, 2)
        along = torch.bmm(gradient, torch.bmm(constant, fixed["w0"]))
        squared = (gradient * along).sum(-1, keepdim=True)
        return torch.bmm(gradient * (size * squared.clamp_min(floor).rsqrt()), torch.bmm(constant, self.p["w0"]))
