"""Cross entropy on the training nodes and P-reg's beside it, as one function of the logits.

Together they write one gradient for all passes. As two functions of two passes, each with a gradient of its own, the
gradients are filled up with zeros, put side by side and added: as many bytes again as the term itself moves.
"""

from typing import Any

import torch
from torch import Tensor

from propreg.engine.kernels.agreement import cross_entropies
from propreg.engine.kernels.pitch import in_rows
from propreg.engine.kernels.spmm import multiply
from propreg.engine.regularised import add_at
from propreg.engine.sparse import Matrix
from propreg.engine.targets import Targets


def regularised(matrix: Matrix, trained: Tensor, weights: Tensor, targets: Targets) -> tuple[Tensor, Tensor]:
    """The twin of ``cross_entropy(z, targets)`` and ``agreement(matrix, z, source, weights)``.

    Args:
        matrix: What propagates.
        trained: The logits z of one training pass, which are also the source, or those of two: z, then the source.
            Without a copy if they are some columns of a contiguous tensor.
        weights: How much each node counts for P-reg.
        targets: The training nodes.

    Shape:
        trained [R, N, passes, C], weights [N] or [R, N] → [R], [R].
    """
    entropy, term = _Regularised.apply(trained, weights.contiguous(), targets, matrix)  # type: ignore[no-untyped-call]
    return entropy, term


class _Regularised(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, trained: Tensor, weights: Tensor, targets: Targets, matrix: Matrix) -> tuple[Tensor, Tensor]:
        z, source = in_rows(trained[:, :, 0]), in_rows(trained[:, :, -1])
        term, slopes = cross_entropies(matrix, z, source, weights)
        entropy, slope = targets.entropy_and_slopes(z)
        ctx.save_for_backward(slopes.to_z, slopes.to_propagated, slope, targets.nodes)
        ctx.matrix, ctx.passes, ctx.shift = matrix, trained.shape[2], slopes.shift
        return entropy, term

    @staticmethod
    def backward(ctx: Any, by_entropy: Tensor, by_term: Tensor) -> tuple[Tensor, None, None, None]:
        to_z, to_propagated, slope, nodes = ctx.saved_tensors
        pattern, values = ctx.matrix.pattern, ctx.matrix.values_across
        replicas, rows, slot = to_z.shape
        grad = to_z.new_empty(replicas, rows, ctx.passes, slot)
        if ctx.passes == 1:
            multiply(pattern, values, to_propagated, True, addend=to_z, scale=by_term, into=grad[:, :, 0])
        else:
            torch.mul(to_z, by_term.view(-1, 1, 1), out=grad[:, :, 0])
            multiply(pattern, values, to_propagated, True, scale=by_term, into=grad[:, :, 1])
        grad = grad[..., ctx.shift : ctx.shift + slope.shape[2]]
        add_at(grad[:, :, 0], nodes, slope * by_entropy.view(-1, 1, 1))
        return grad, None, None, None
