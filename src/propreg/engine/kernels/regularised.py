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


def regularised(
    matrix: Matrix, trained: Tensor, count: int, weights: Tensor, targets: Targets
) -> tuple[Tensor, Tensor]:
    """The twin of ``cross_entropy(z, targets)`` and ``agreement(matrix, z, source, weights)``.

    Args:
        matrix: What propagates.
        trained: The logits z of one training pass, which are also the source, or those of two: z, then the source.
            Without a copy if they are some columns of a contiguous tensor.
        count: How many passes there are.
        weights: How much each node counts for P-reg.
        targets: The training nodes.

    Shape:
        trained [R, N, count · C], weights [N] or [R, N] → [R], [R].
    """
    entropy, term = _Regularised.apply(in_rows(trained), count, weights.contiguous(), targets, matrix)  # type: ignore[no-untyped-call]
    return entropy, term


class _Regularised(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, trained: Tensor, count: int, weights: Tensor, targets: Targets, matrix: Matrix
    ) -> tuple[Tensor, Tensor]:
        width = trained.shape[2] // count
        z, source = trained[..., :width], trained[..., -width:]
        to_z, to_propagated = (z.new_empty(z.shape) for _ in range(2))
        term = cross_entropies(matrix, z, source, weights, to_z, to_propagated)
        entropy, slope = targets.entropy_and_slopes(z)
        ctx.save_for_backward(to_z, to_propagated, slope, targets.nodes)
        ctx.matrix, ctx.count = matrix, count
        return entropy, term

    @staticmethod
    def backward(ctx: Any, by_entropy: Tensor, by_term: Tensor) -> tuple[Tensor, None, None, None, None]:
        to_z, to_propagated, slope, nodes = ctx.saved_tensors
        pattern, values = ctx.matrix.pattern, ctx.matrix.values_across
        if ctx.count == 1:
            grad = mine = multiply(pattern, values, to_propagated, True, addend=to_z, scale=by_term)
        else:
            width = to_z.shape[2]
            grad = to_z.new_empty(*to_z.shape[:2], 2 * width)
            mine = grad[..., :width]
            torch.mul(to_z, by_term.view(-1, 1, 1), out=mine)
            multiply(pattern, values, to_propagated, True, scale=by_term, into=grad[..., width:])
        add_at(mine, nodes, slope * by_entropy.view(-1, 1, 1))
        return grad, None, None, None, None
