"""One step of Adam in one pass over parameters, moments and gradients: the twin of :mod:`propreg.engine.ops.adam`.

Torch's own operators pass over these tensors seven times.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls
# ruff: noqa: N803
# Triton compiles its functions from their source: pointers and tiles have no types, constants are in capitals.

import torch
from torch import Tensor

from propreg.engine.kernels.triton_names import LAUNCH, jit, power_of_two, tiles, tl
from propreg.engine.ops.adam import BETA1, BETA2, EPSILON


def update(
    p: Tensor, first: Tensor, second: Tensor, grad: Tensor, step_size: Tensor, weight_decay: Tensor, root: Tensor
) -> None:
    """One step of p [R, …] and its moments in place; all must be contiguous, except the gradient.

    Args:
        p, first, second: The parameter and its two moments.
        grad: The gradient.
        step_size: The learning rate over 1 − β₁ᵗ. [R].
        weight_decay: L2, inside the gradient. [R].
        root: The square root of 1 − β₂ᵗ: one number, in device memory so that a captured graph can be replayed.
    """
    if not p.numel():
        return
    size = p[0].numel()
    block = min(power_of_two(size), 1024)
    with torch.no_grad():
        _update[tiles(size, block), len(p)](
            p, first, second, grad.contiguous(), step_size, weight_decay, root, size,
            BETA1=BETA1, BETA2=BETA2, EPSILON=EPSILON, BLOCK=block, num_warps=4, **LAUNCH,
        )  # fmt: skip


@jit
def _update(
    p, first, second, grad, step_sizes, decays, root, size,
    BETA1: tl.constexpr, BETA2: tl.constexpr, EPSILON: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    replica = tl.program_id(1)
    element = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = element < size
    place = replica.to(tl.int64) * size + element
    x = tl.load(p + place, mask, other=0.0)
    m = tl.load(first + place, mask, other=0.0)
    v = tl.load(second + place, mask, other=0.0)
    g = tl.load(grad + place, mask, other=0.0) + tl.load(decays + replica) * x
    m += (1 - BETA1) * (g - m)
    v = BETA2 * v + (1 - BETA2) * (g * g)
    x -= tl.load(step_sizes + replica) * (m / (tl.sqrt(v) / tl.load(root) + EPSILON))
    tl.store(first + place, m, mask)
    tl.store(second + place, v, mask)
    tl.store(p + place, x, mask)
