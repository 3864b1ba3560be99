"""Cross entropy on the training nodes and P-reg's beside it, as one function of the logits.

Together they write one gradient for all passes. As two functions of two passes, each with a gradient of its own, the
gradients are filled up with zeros, put side by side and added: as many bytes again as the term itself moves.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from propreg.engine.kernels.agreement import cross_entropies
from propreg.engine.kernels.pitch import from_slots, in_rows
from propreg.engine.kernels.spmm import multiply
from propreg.engine.sparse import Matrix
from propreg.engine.targets import Targets


def regularised(matrix: Matrix, trained: Tensor, weights: Tensor, targets: Targets) -> tuple[Tensor, Tensor]:
    """The twin of ``cross_entropy(z, targets)`` and ``agreement(matrix, z, source, weights)``.

    Args:
        matrix: What propagates.
        trained: The logits z of one training pass, which are also the source, or those of two: z, then the source.
            Without a copy if they lie as :func:`.pitch.in_rows` has them.
        weights: How much each node counts for P-reg.
        targets: The training nodes.

    Shape:
        trained [R, N, passes, C] or in groups [groups, members, N, passes, C], weights [N] or [R, N] → [R], [R].
    """
    if trained.dim() == 4:
        trained = trained.unsqueeze(1)
    entropy, term = _Regularised.apply(trained, weights.contiguous(), targets, matrix)  # type: ignore[no-untyped-call]
    return entropy, term


class _Regularised(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, trained: Tensor, weights: Tensor, targets: Targets, matrix: Matrix) -> tuple[Tensor, Tensor]:
        z, source = in_rows(trained[..., 0, :]), in_rows(trained[..., -1, :])
        term, slopes = cross_entropies(matrix, z, source, weights)
        replicas, (groups, members) = len(targets.nodes), z.shape[:2]
        nodes = _in_groups(targets.nodes, groups, members).unsqueeze(3).expand(-1, -1, -1, z.shape[3])
        entropy, slope = targets.entropy_and_slopes(z.gather(2, nodes).flatten(0, 1)[:replicas])
        ctx.save_for_backward(slopes.to_z, slopes.to_propagated, slope, nodes)
        ctx.matrix, ctx.passes, ctx.shift = matrix, trained.shape[3], slopes.shift
        return entropy, term[:replicas]

    @staticmethod
    def backward(ctx: Any, by_entropy: Tensor, by_term: Tensor) -> tuple[Tensor, None, None, None]:
        to_z, to_propagated, slope, nodes = ctx.saved_tensors
        pattern, values = ctx.matrix.pattern, ctx.matrix.values_across
        groups, rows, length = to_z.shape
        members, width = nodes.shape[1], nodes.shape[3]
        scale = _in_groups(by_term.unsqueeze(1), groups, members).expand(-1, -1, length // members).flatten(1)
        grad = to_z.new_empty(groups, rows, ctx.passes, length)
        multiply(
            pattern, values, to_propagated, True, addend=to_z, apart=ctx.passes > 1, scale=scale, into=grad[:, :, -1],
            hot=False,
        )  # fmt: skip
        grad = from_slots(grad, members, ctx.shift, width)
        # A node that fills up a short row of targets has no slope, so that it may be there twice.
        grad[..., 0, :].scatter_add_(2, nodes, _in_groups(slope * by_entropy.view(-1, 1, 1), groups, members))
        return grad, None, None, None


def _in_groups(x: Tensor, groups: int, members: int) -> Tensor:
    """x [R, …] by groups [groups, members, …], with zeros for members that are no replicas."""
    missing = groups * members - len(x)
    filled = pad(x, (0, 0) * (x.dim() - 1) + (0, missing)) if missing else x
    return filled.view(groups, members, *x.shape[1:])
