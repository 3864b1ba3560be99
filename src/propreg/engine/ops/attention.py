"""Graph attention: a softmax over each node's incoming edges, and the average of its neighbors with those weights.

The plain version, against which the fused one is tested: everything is per (replica, head), a batch B = R · heads, and
the forward pass allocates no message tensor [edges, replicas, heads, width].
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import leaky_relu

from propreg.engine.ops.dropout import Masks
from propreg.engine.ops.sparse import Pattern

SLOPE = 0.2


def attend(pattern: Pattern, h: Tensor, source: Tensor, target: Tensor, masks: Masks | None) -> Tensor:
    """Aggregate h [B, N, D] with the softmax of leaky(source_j + target_i) [B, N] over the edges j → i.

    ``masks`` drop attention coefficients, one mask per replica for B = R · heads.
    """
    score = leaky_relu(source[:, pattern.col] + target[:, pattern.row], SLOPE)
    alpha: Tensor = _SegmentSoftmax.apply(score, pattern)  # type: ignore[no-untyped-call]
    if masks is not None:
        replicas = len(masks)
        factors = masks.factors(alpha.shape[0] // replicas * pattern.nnz, h.dtype)
        alpha = alpha * factors.view(alpha.shape)
    out: Tensor = _WeightedProduct.apply(alpha, h, pattern)  # type: ignore[no-untyped-call]
    return out


def _by_row(pattern: Pattern, values: Tensor, reduce: str) -> Tensor:
    """Reduce entries [B, nnz] to rows [B, N]."""
    lengths = pattern.crow.diff().long()
    down = values.t().contiguous()
    return torch.segment_reduce(
        down, reduce, lengths=lengths, axis=0, unsafe=True, initial=0.0 if reduce == "sum" else None
    ).t()


class _SegmentSoftmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, score: Tensor, pattern: Pattern) -> Tensor:
        highest = _by_row(pattern, score, "max")
        weight = (score - highest[:, pattern.row]).exp_()
        alpha = weight / _by_row(pattern, weight, "sum")[:, pattern.row]
        ctx.pattern = pattern
        ctx.save_for_backward(alpha)
        return alpha

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (alpha,) = ctx.saved_tensors
        weighted = alpha * grad
        return weighted - alpha * _by_row(ctx.pattern, weighted, "sum")[:, ctx.pattern.row], None


class _WeightedProduct(torch.autograd.Function):
    """out_i = Σ_j α_ij h_j, with gradients to both."""

    @staticmethod
    def forward(ctx: Any, alpha: Tensor, h: Tensor, pattern: Pattern) -> Tensor:
        ctx.pattern = pattern
        ctx.save_for_backward(alpha, h)
        return pattern.multiply(alpha, h, False)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        alpha, h = ctx.saved_tensors
        pattern: Pattern = ctx.pattern
        grad = grad.contiguous()
        to_alpha = torch.empty_like(alpha)
        for b in range(len(alpha)):  # one (replica, head) at a time: [edges, width] stays small
            to_alpha[b] = (grad[b].index_select(0, pattern.row) * h[b].index_select(0, pattern.col)).sum(-1)
        to_h = pattern.multiply(pattern.by_columns(alpha), grad, True)
        return to_alpha, to_h, None
