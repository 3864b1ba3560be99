r"""The divergences φ between a node's logits and those of its neighbors, one value per node.

With :math:`P = \mathrm{softmax}(Z)` and :math:`Q = \mathrm{softmax}(Z')`, :math:`Z' = \hat A Z`.
Everything goes through ``log_softmax`` and ``logsigmoid``: logits of ±10⁴ stay finite.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

Phi = Callable[[Tensor, Tensor], Tensor]


def cross_entropy(z: Tensor, propagated: Tensor) -> Tensor:
    r"""Soft cross entropy :math:`-\sum_c P_c \log Q_c = \mathrm{KL}(P \| Q) + H(P)`."""
    return -(z.softmax(-1) * propagated.log_softmax(-1)).sum(-1)


def kl(z: Tensor, propagated: Tensor) -> Tensor:
    r"""Kullback–Leibler divergence :math:`\sum_c P_c \log(P_c / Q_c)`, as in the paper."""
    log_p = z.log_softmax(-1)
    return (log_p.exp() * (log_p - propagated.log_softmax(-1))).sum(-1)


def reverse_kl(z: Tensor, propagated: Tensor) -> Tensor:
    r""":math:`\mathrm{KL}(Q \| P)`, what the official code's argument order computes."""
    return kl(propagated, z)


def squared_error(z: Tensor, propagated: Tensor) -> Tensor:
    r""":math:`\tfrac12 \|z' - z\|_2^2` of the logits."""
    return 0.5 * (propagated - z).square().sum(-1)


def l2_probability(z: Tensor, propagated: Tensor) -> Tensor:
    r""":math:`\|P - Q\|_2`, the official code's "squared error"; its subgradient at P = Q is 0."""
    norm: Tensor = torch.linalg.vector_norm(z.softmax(-1) - propagated.softmax(-1), dim=-1)
    return norm


def bernoulli(z: Tensor, propagated: Tensor) -> Tensor:
    r"""Cross entropy of independent yes/no columns, :math:`-\sum_c [p_c \log q_c + (1-p_c)\log(1-q_c)]`."""
    yes = z.sigmoid() * logsigmoid(propagated)
    no = (-z).sigmoid() * logsigmoid(-propagated)
    return -(yes + no).sum(-1)


def cosine(z: Tensor, propagated: Tensor) -> Tensor:
    r""":math:`1 - \cos(z, z')` of the logits; a row of zeros has no direction, and its cosine is 0."""
    return 1 - (_direction(z) * _direction(propagated)).sum(-1)


def jensen_shannon(z: Tensor, propagated: Tensor) -> Tensor:
    r""":math:`\tfrac12 \mathrm{KL}(P \| M) + \tfrac12 \mathrm{KL}(Q \| M)`, :math:`M = (P + Q) / 2`: at most log 2."""
    log_p, log_q = z.log_softmax(-1), propagated.log_softmax(-1)
    log_m = log_q - logsigmoid(log_q - log_p) - math.log(2)  # the second derivative of logaddexp is NaN at ±10⁴
    return 0.5 * (log_p.exp() * (log_p - log_m) + log_q.exp() * (log_q - log_m)).sum(-1)


def _direction(z: Tensor) -> Tensor:
    square = z.square().sum(-1, keepdim=True)
    return z / torch.where(square > 0, square, torch.ones_like(square)).sqrt()


PHIS: dict[str, Phi] = {
    "cross_entropy": cross_entropy,
    "kl": kl,
    "reverse_kl": reverse_kl,
    "squared_error": squared_error,
    "l2_probability": l2_probability,
    "bernoulli": bernoulli,
    "cosine": cosine,
    "jensen_shannon": jensen_shannon,
}
