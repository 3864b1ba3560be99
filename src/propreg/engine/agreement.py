"""P-reg with cross entropy, forward and backward by hand: the term that almost every run has.

With P = softmax(z), Q = softmax(z') and L = −Σ P log Q, the gradients are ∂L/∂z = −P (log Q + L) and ∂L/∂z' = Q − P.
Both are ready after the forward pass but for their factor, so nothing else is kept.
"""

from typing import Any

import torch
from torch import Tensor

from propreg.engine import kernels
from propreg.engine.sparse import Matrix

WIDEST = 64  # classes that the fused kernel takes


def agreement(matrix: Matrix, z: Tensor, source: Tensor, weights: Tensor) -> Tensor:
    """Σ_i weights_i L_i of each replica [R] with z' = A · source, for logits [R, N, C] and weights [N] or [R, N]."""
    if kernels.usable(z, source, weights) and z.shape[2] <= WIDEST:
        from propreg.engine.kernels import agreement as kernel

        return kernel.agreement(matrix, z, source, weights)
    return soft_cross_entropy(z, matrix(source), weights)


def soft_cross_entropy(z: Tensor, propagated: Tensor, weights: Tensor) -> Tensor:
    """Σ_i weights_i L_i of each replica [R], from logits [R, N, C] and weights [N] or [R, N]."""
    value: Tensor = _SoftCrossEntropy.apply(z, propagated, weights)  # type: ignore[no-untyped-call]
    return value


class _SoftCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, z: Tensor, propagated: Tensor, weights: Tensor) -> Tensor:
        value, *slopes = value_and_slopes(z, propagated, weights, ctx.needs_input_grad[0], ctx.needs_input_grad[1])
        ctx.save_for_backward(*slopes, weights)
        return value

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        *slopes, weights = ctx.saved_tensors
        to_z, to_propagated = (None if each is None else scaled(each, grad, weights) for each in slopes)
        return to_z, to_propagated, None


def value_and_slopes(
    z: Tensor, propagated: Tensor, weights: Tensor, need_z: bool = True, need_propagated: bool = True
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Σ weights L, and L's gradients to z and z', [R, C, N]: a softmax over few classes is fast with nodes inside."""
    p = z.transpose(1, 2).contiguous().softmax(1)
    log_q = propagated.transpose(1, 2).contiguous().log_softmax(1)
    less = (p * log_q).sum(1)  # −L
    to_propagated = log_q.exp().sub_(p) if need_propagated else None
    to_z = log_q.sub_(less.unsqueeze(1)).mul_(p.neg_()) if need_z else None
    return -(less * weights).sum(1), to_z, to_propagated


def scaled(slopes: Tensor, grad: Tensor, weights: Tensor) -> Tensor:
    """The gradient [R, N, C] from that of each node's L [R, C, N]."""
    factor = (grad.view(-1, 1) * weights).unsqueeze(2)
    replicas, classes, nodes = slopes.shape
    return torch.mul(slopes.transpose(1, 2), factor, out=slopes.new_empty(replicas, nodes, classes))
