"""Propagation over several steps, and sharpened distributions."""

from collections.abc import Iterator

import torch
from torch import Tensor

from propreg.engine.ops.sparse import Matrix


def powers(matrix: Matrix, x: Tensor, steps: int) -> Iterator[Tensor]:
    """A x, A² x, …, A^steps x for x [R, N, W]."""
    for _ in range(steps):
        x = matrix(x)
        yield x


def mean_of_powers(matrix: Matrix, x: Tensor, steps: int) -> Tensor:
    """(x + A x + … + A^steps x) / (steps + 1) for x [R, N, W]: GRAND's mixed-order propagation."""
    total = x
    for each in powers(matrix, x, steps):
        total = total + each
    return total / (steps + 1)


def sharpened(p: Tensor, temperature: float) -> Tensor:
    """p^(1/T) / Σ p^(1/T) over the classes, of probabilities [..., C]."""
    power = p.pow(1 / temperature)
    return power / power.sum(-1, keepdim=True)


@torch.no_grad()
def update_running(mean: Tensor, variance: Tensor, batch_mean: Tensor, batch_variance: Tensor, nodes: int) -> None:
    """Move running statistics [R, W] a tenth of the way to those of a pass, in place, as torch's batch norm does."""
    mean.lerp_(batch_mean, MOMENTUM)
    variance.lerp_(batch_variance * (nodes / max(nodes - 1, 1)), MOMENTUM)


MOMENTUM, EPSILON = 0.1, 1e-5


def batch_norm(h: Tensor, p: dict[str, Tensor], number: int, *, training: bool) -> Tensor:
    """Batch norm over the nodes of h [R, N, W], with the statistics of this pass, or the running ones.

    ``p`` holds ``scale``, ``shift``, ``mean`` and ``variance`` of this number, [R, W]; see
    :func:`propreg.engine.models.network.norm`.
    """
    mean, variance = p[f"mean{number}"], p[f"variance{number}"]
    if training:
        running, (variance, mean) = (mean, variance), torch.var_mean(h, 1, correction=0)
        update_running(*running, mean.detach(), variance.detach(), h.shape[1])
    factor = p[f"scale{number}"] * (variance + EPSILON).rsqrt()
    return torch.addcmul((p[f"shift{number}"] - mean * factor).unsqueeze(1), h, factor.unsqueeze(1))
