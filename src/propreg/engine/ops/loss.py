"""Cross entropy on the training nodes, P-reg's cross entropy between logits, and both as one function.

P-reg's has its forward and backward pass by hand: with P = softmax(z), Q = softmax(z') and L = −Σ P log Q, the
gradients are ∂L/∂z = −P (log Q + L) and ∂L/∂z' = Q − P. After the forward pass both are known up to a factor, so
nothing else is kept.
"""

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from propreg.engine import kernels
from propreg.engine.ops.sparse import Matrix

if TYPE_CHECKING:
    from propreg.engine.tasks.node import Targets

WIDEST = 64  # classes that the fused kernel takes


def cross_entropy(z: Tensor, targets: "Targets", smoothing: Tensor | None = None) -> Tensor:
    """Mean cross entropy over each replica's training nodes, with (1 − α) y + α/C targets where α is given. [R]."""
    return targets.loss(z, smoothing)


def preg(matrix: Matrix, z: Tensor, source: Tensor, weights: Tensor) -> Tensor:
    """Σ_i weights_i L_i of each replica [R] with z' = A · source, for logits [R, N, C] and weights [N] or [R, N]."""
    if kernels.usable(z, source, weights) and z.shape[2] <= WIDEST:
        from propreg.engine.kernels import preg as kernel

        return kernel.preg(matrix, z, source, weights)
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


def preg_and_cross_entropy(
    matrix: Matrix, trained: Tensor, weights: Tensor, targets: "Targets"
) -> tuple[Tensor, Tensor] | None:
    """``cross_entropy(z, targets)`` and ``preg(matrix, z, source, weights)``; None for two passes without kernels.

    One function with one gradient: as two functions each has a gradient of its own, and that of the training nodes is
    zeros but for a few rows, so that filling and adding it costs as much as a good part of the term.

    Args:
        matrix: The propagation.
        trained: The logits z of one training pass, which are also the source, or the logits of two: z, then the source.
        weights: The weight of each node in P-reg.
        targets: The training nodes.

    Shape:
        trained [R, N, passes, C] (for the kernels also in groups, [groups, members, N, passes, C]), weights [N] or
        [R, N] → [R], [R].
    """
    if kernels.usable(trained, weights) and trained.shape[-1] <= WIDEST:
        from propreg.engine.kernels import preg as kernel

        return kernel.preg_and_cross_entropy(matrix, trained, weights, targets)
    if trained.shape[2] > 1:
        return None
    entropy, term = _OnePass.apply(trained.squeeze(2), weights, targets, matrix)  # type: ignore[no-untyped-call]
    return entropy, term


class _OnePass(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, z: Tensor, weights: Tensor, targets: "Targets", matrix: Matrix) -> tuple[Tensor, Tensor]:
        term, *slopes = value_and_slopes(z, matrix.multiply(z, False), weights)
        entropy, slope = targets.entropy_and_slopes(targets.logits(z))
        ctx.save_for_backward(*slopes, weights, slope, targets.nodes)
        ctx.matrix = matrix
        return entropy, term

    @staticmethod
    def backward(ctx: Any, by_entropy: Tensor, by_term: Tensor) -> tuple[Tensor, None, None, None]:
        to_z, to_propagated, weights, slope, nodes = ctx.saved_tensors
        back = scaled(to_propagated, by_term, weights)
        grad = ctx.matrix.multiply(back, True, onto=scaled(to_z, by_term, weights))
        # A node that fills up a short row of targets has no slope, so that it may be there twice.
        slope = slope * by_entropy.view(-1, 1, 1)
        return grad.scatter_add_(1, nodes.unsqueeze(-1).expand_as(slope), slope), None, None, None
