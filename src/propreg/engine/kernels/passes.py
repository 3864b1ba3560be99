"""An epoch's passes through the last layer as one: the evaluation, and one or two training passes beside it.

All read the same activations h, so h is read once, its gradient written once, and propagation gathers rows of all
passes at once: a row of a few classes is less than memory hands out in one piece.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from propreg.engine.dropout import Masks
from propreg.engine.kernels.dropped_linear import backward, forward
from propreg.engine.kernels.pitch import filled_up, in_slots
from propreg.engine.kernels.slot_sums import slot_sums
from propreg.engine.kernels.spmm import multiply
from propreg.engine.sparse import Matrix


def passes(matrix: Matrix | None, h: Tensor, w: Tensor, bias: Tensor, masks: Sequence[Masks]) -> tuple[Tensor, Tensor]:
    """A (drop(h) w) + bias for each of the masks, and for none; without A where there is none.

    Args:
        matrix: A.
        h: The output of a ReLU, whose backward pass is done here.
        w: The weights of a product that :func:`.dropped_linear.fused` takes.
        bias: Added to every row.
        masks: One set for each training pass, all of the same rates.

    Shape:
        h [R, N, H], w [R, H, C], bias [R, C] → the evaluation [R, N, C], which has no gradient, and the training passes
        [R, N, passes, C]: views of one tensor, in whose rows they stand side by side.
    """
    keys = torch.stack([m.keys for m in masks], 1)
    evaluated, trained = _Passes.apply(h.contiguous(), w.contiguous(), bias, keys, masks[0], matrix)  # type: ignore[no-untyped-call]
    return evaluated, trained


class _Passes(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, h: Tensor, w: Tensor, bias: Tensor, keys: Tensor, masks: Masks, matrix: Matrix | None
    ) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(h, w, keys)
        ctx.masks, ctx.matrix = masks, matrix
        count, classes = 1 + keys.shape[1], w.shape[2]
        pitch = filled_up(count * classes)
        out = forward(h, w, masks, keys, whole_first=True, pitch=pitch)
        wide = torch.nn.functional.pad(bias.repeat(1, count), (pitch - count * classes, 0))
        out = out.add_(wide.unsqueeze(1)) if matrix is None else _spread(matrix, out, wide)
        first = pitch - keys.shape[1] * classes
        evaluated, trained = out[..., first - classes : first], _apart(out[..., first:], classes)
        ctx.mark_non_differentiable(evaluated)
        ctx.set_materialize_grads(False)  # no zeros for the evaluation
        return evaluated, trained

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        h, w, keys = ctx.saved_tensors
        if grads[1] is None:
            return None, None, None, None, None, None
        grad, slot, shift = in_slots(grads[1])
        to_bias = slot_sums(grad, slot, shift, w.shape[2])
        if ctx.matrix is not None:
            grad = multiply(ctx.matrix.pattern, ctx.matrix.values_across, grad, True)
        to_h, _none, to_w = backward(h, w, grad, ctx.masks, True, keys, slot=slot, shift=shift)
        return to_h, to_w, to_bias, None, None, None


def _apart(trained: Tensor, classes: int) -> Tensor:
    """The passes of rows in which they stand side by side. [R, N, passes · C] → [R, N, passes, C]."""
    return trained.view(*trained.shape[:2], -1, classes)


def _spread(matrix: Matrix, x: Tensor, bias: Tensor) -> Tensor:
    return multiply(matrix.pattern, matrix.values, x, False, bias=bias)
