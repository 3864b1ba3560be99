"""Mixup of representations and targets, and its loss."""

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy


def mixed(h: Tensor, order: Tensor, share: Tensor) -> Tensor:
    """λ h_i + (1 − λ) h_π(i) of rows [R, T, W], with π [R, T] and λ [R]."""
    share = share.view(-1, 1, 1).to(h.dtype)
    return share * h + (1 - share) * rows(h, order)


def rows(h: Tensor, nodes: Tensor) -> Tensor:
    """The rows [R, T, W] of h [R, N, W] at nodes [R, T]."""
    return h.gather(1, nodes.unsqueeze(2).expand(-1, -1, h.shape[2]))


def elementwise_cross_entropy(z: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
    """The mean over the classes of −t log p − (1 − t) log(1 − p), p = softmax(z), and of rows with weights [R, T]. [R].

    Logarithms are cut off at −100, as torch's are.
    """
    p = z.softmax(-1).clamp(max=1.0)
    value = binary_cross_entropy(p, targets.clamp(0.0, 1.0), reduction="none").mean(-1)
    return torch.where(weights > 0, value * weights, 0.0).sum(-1)
