"""Cross entropy on the training nodes and P-reg's beside it, as one function of the logits, with one gradient.

As two functions each has a gradient of its own, and that of the training nodes is zeros but for a few rows: to fill it
and to add it costs as much as a good part of the term.
"""

from typing import Any

import torch
from torch import Tensor

from propreg.engine import kernels
from propreg.engine.agreement import WIDEST, scaled, value_and_slopes
from propreg.engine.sparse import Matrix
from propreg.engine.targets import Targets


def regularised(matrix: Matrix, trained: Tensor, weights: Tensor, targets: Targets) -> tuple[Tensor, Tensor] | None:
    """``cross_entropy(z, targets)`` and ``agreement(matrix, z, source, weights)``; None for two passes without kernels.

    Args:
        matrix: What propagates.
        trained: The logits z of one training pass, which are also the source, or those of two: z, then the source.
        weights: How much each node counts for P-reg.
        targets: The training nodes.

    Shape:
        trained [R, N, passes, C] (for the kernels also in groups, [groups, members, N, passes, C]), weights [N] or
        [R, N] → [R], [R].
    """
    if kernels.usable(trained, weights) and trained.shape[-1] <= WIDEST:
        from propreg.engine.kernels import regularised as kernel

        return kernel.regularised(matrix, trained, weights, targets)
    if trained.shape[2] > 1:
        return None
    entropy, term = _OnePass.apply(trained.squeeze(2), weights, targets, matrix)  # type: ignore[no-untyped-call]
    return entropy, term


class _OnePass(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, z: Tensor, weights: Tensor, targets: Targets, matrix: Matrix) -> tuple[Tensor, Tensor]:
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
