"""The last layer of all passes of an epoch at once: the evaluation and the training passes beside it.

All passes read the same activations h, so h is read once, its gradient is written once, and propagation gathers the
rows of all passes together: a row of a few classes is shorter than the 32 bytes of a memory sector.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from propreg.engine.kernels.layout import group_size, in_slots, l2_bytes, padded_width, slot_width
from propreg.engine.kernels.linear.dropped_linear import backward, forward
from propreg.engine.kernels.reductions import slot_sums
from propreg.engine.kernels.spmm.product import fixed_order_tile, multiply
from propreg.engine.ops.dropout import Masks
from propreg.engine.ops.sparse import Matrix


def last_layer(
    matrix: Matrix | None, h: Tensor, w: Tensor, bias: Tensor, masks: Sequence[Masks], *, in_groups: bool = False
) -> tuple[Tensor, Tensor]:
    """A (drop(h) w) + bias for each of the masks and once without; without A if it is None.

    Args:
        matrix: A.
        h: The output of a ReLU, whose backward pass is included.
        w: Weights that :func:`.dropped_linear.fused` supports.
        bias: Added to every row.
        masks: One set per training pass, all with the same rates.
        in_groups: Whether several replicas may form a group. The last group may then have members beyond the replicas,
            whose rows are zeros.

    Shape:
        h [R, N, H], w [R, H, C], bias [R, C] → the evaluation [groups, members, N, C], which has no gradient, and the
        training passes [groups, members, N, passes, C]: views of one tensor, side by side in its rows.
    """
    keys = torch.stack([m.keys for m in masks], 1)
    replicas, nodes, classes = len(h), h.shape[1], w.shape[2]
    pitch = padded_width((1 + len(masks)) * classes)
    members = group_size(replicas, nodes, pitch, slot_width(classes), l2_bytes(h.device)) if in_groups else 1
    evaluated, trained = _LastLayer.apply(  # type: ignore[no-untyped-call]
        h.contiguous(), w.contiguous(), bias, keys, masks[0], matrix, pitch, members
    )
    return evaluated, trained


class _LastLayer(torch.autograd.Function):
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
            out = _propagate(matrix, out, _bias_rows(bias, count, pitch, len(out), members))
        in_groups = out.view(*out.shape[:2], members, pitch).transpose(1, 2)
        first = pitch - keys.shape[1] * classes
        evaluated, trained = in_groups[..., first - classes : first], in_groups[..., first:]
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
            # No frequent columns: they depend on the width, and one pass alone has another width than two in a group.
            pattern, tile = ctx.matrix.pattern, fixed_order_tile(grad.shape[2])
            grad = multiply(pattern, ctx.matrix.column_values, grad, True, tile=tile, frequent=False)
        to_h, _none, to_w = backward(h, w, grad, ctx.masks, True, keys, slot=slot, shift=shift, members=ctx.members)
        return to_h, to_w, to_bias, None, None, None, None, None


def _bias_rows(bias: Tensor, count: int, pitch: int, groups: int, members: int) -> Tensor:
    """The bias [R, C] repeated for each pass of a row of logits, [groups, members · pitch]."""
    wide = pad(bias.repeat(1, count), (pitch - count * bias.shape[1], 0, 0, groups * members - len(bias)))
    return wide.view(groups, members * pitch)


def _propagate(matrix: Matrix, x: Tensor, bias: Tensor) -> Tensor:
    return multiply(matrix.pattern, matrix.values, x, False, bias=bias, tile=fixed_order_tile(x.shape[2]))
