"""An epoch's passes through the last layer as one: the evaluation, and one or two training passes beside it.

All read the same activations h, so h is read once, its gradient written once, and propagation gathers rows of all
passes at once: a row of a few classes is less than memory hands out in one piece.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from propreg.engine.dropout import Masks
from propreg.engine.kernels.dropped_linear import backward, forward
from propreg.engine.kernels.pitch import cache_of, filled_up, in_slots, members_of, slot_for
from propreg.engine.kernels.slot_sums import slot_sums
from propreg.engine.kernels.spmm import beside_others, multiply
from propreg.engine.sparse import Matrix


def passes(
    matrix: Matrix | None, h: Tensor, w: Tensor, bias: Tensor, masks: Sequence[Masks], *, in_groups: bool = False
) -> tuple[Tensor, Tensor]:
    """A (drop(h) w) + bias for each of the masks, and for none; without A where there is none.

    Args:
        matrix: A.
        h: The output of a ReLU, whose backward pass is done here.
        w: The weights of a product that :func:`.dropped_linear.fused` takes.
        bias: Added to every row.
        masks: One set for each training pass, all of the same rates.
        in_groups: Whether several replicas may be a group. The last group then may have members that are no replicas,
            in whose rows are zeros.

    Shape:
        h [R, N, H], w [R, H, C], bias [R, C] → the evaluation [groups, members, N, C], which has no gradient, and the
        training passes [groups, members, N, passes, C]: views of one tensor, in whose rows they stand side by side.
    """
    keys = torch.stack([m.keys for m in masks], 1)
    replicas, nodes, classes = len(h), h.shape[1], w.shape[2]
    pitch = filled_up((1 + len(masks)) * classes)
    members = members_of(replicas, nodes, pitch, slot_for(classes), cache_of(h.device)) if in_groups else 1
    evaluated, trained = _Passes.apply(  # type: ignore[no-untyped-call]
        h.contiguous(), w.contiguous(), bias, keys, masks[0], matrix, pitch, members
    )
    return evaluated, trained


class _Passes(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        h: Tensor,
        w: Tensor,
        bias: Tensor,
        keys: Tensor,
        masks: Masks,
        matrix: Matrix | None,
        pitch: int,
        members: int,
    ) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(h, w, keys)
        ctx.masks, ctx.matrix, ctx.members = masks, matrix, members
        count, classes = 1 + keys.shape[1], w.shape[2]
        out = forward(
            h, w, masks, keys, last=bias if matrix is None else None, whole_first=True, pitch=pitch, members=members
        )
        if matrix is not None:
            out = _spread(matrix, out, _in_rows(bias, count, pitch, len(out), members))
        apart = out.view(*out.shape[:2], members, pitch).transpose(1, 2)
        first = pitch - keys.shape[1] * classes
        evaluated, trained = apart[..., first - classes : first], apart[..., first:]
        trained = trained.view(*trained.shape[:3], count - 1, classes)
        ctx.mark_non_differentiable(evaluated)
        ctx.set_materialize_grads(False)  # no zeros for the evaluation
        return evaluated, trained

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        h, w, keys = ctx.saved_tensors
        if grads[1] is None:
            return (None,) * 8
        grad, slot, shift = in_slots(grads[1])
        to_bias = slot_sums(grad, slot, shift, w.shape[2], ctx.members, len(h))
        if ctx.matrix is not None:
            # No hot columns: which there are depends on the width, and one pass alone has another than two of a group.
            pattern, tile = ctx.matrix.pattern, beside_others(grad.shape[2])
            grad = multiply(pattern, ctx.matrix.values_across, grad, True, tile=tile, hot=False)
        to_h, _none, to_w = backward(h, w, grad, ctx.masks, True, keys, slot=slot, shift=shift, members=ctx.members)
        return to_h, to_w, to_bias, None, None, None, None, None


def _in_rows(bias: Tensor, count: int, pitch: int, groups: int, members: int) -> Tensor:
    """The bias [R, C] of each column of a row of logits, [groups, members · pitch]."""
    wide = pad(bias.repeat(1, count), (pitch - count * bias.shape[1], 0, 0, groups * members - len(bias)))
    return wide.view(groups, members * pitch)


def _spread(matrix: Matrix, x: Tensor, bias: Tensor) -> Tensor:
    return multiply(matrix.pattern, matrix.values, x, False, bias=bias, tile=beside_others(x.shape[2]))
