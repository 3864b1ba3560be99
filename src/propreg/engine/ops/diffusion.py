"""Propagation over several steps, and sharpened distributions."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

Spread = Callable[[Tensor], Tensor]
"""A matrix as an operator on x [..., N, W]: the engine's on a batch of replicas, or the library's on one."""


def powers(matrix: Spread, x: Tensor, steps: int) -> Iterator[Tensor]:
    """A x, A² x, …, A^steps x."""
    for _ in range(steps):
        x = matrix(x)
        yield x


def mean_of_powers(matrix: Spread, x: Tensor, steps: int) -> Tensor:
    """(x + A x + … + A^steps x) / (steps + 1): GRAND's mixed-order propagation."""
    total = x
    for each in powers(matrix, x, steps):
        total = total + each
    return total / (steps + 1)


def personalized(matrix: Spread, start: Tensor, steps: int, teleport: float) -> Tensor:
    """K steps of personalized PageRank, z ← (1 − α) A z + α start."""
    z = start
    for _ in range(steps):
        z = (1 - teleport) * matrix(z) + teleport * start
    return z


def corrected_and_smoothed(
    matrix: Spread, predicted: Tensor, labels: Tensor, steps: int, teleport: float, smoothing_teleport: float
) -> Tensor:
    """Predictions [..., N, C] with their spread errors on the labeled nodes, whose labels then replace them, spread.

    ``labels`` are one-hot rows, 0 for a node without one. Errors are scaled to the mean error of the labeled nodes; a
    node that none of them reaches keeps its prediction.
    """
    known = labels.sum(-1, keepdim=True)
    wrong = known * (labels - predicted)
    errors = personalized(matrix, wrong, steps, teleport)
    size = errors.abs().sum(-1, keepdim=True)
    mean = wrong.abs().sum((-2, -1), keepdim=True) / known.sum(-2, keepdim=True)
    scale = (mean / size.clamp_min(1e-12)).masked_fill(size == 0, 1.0)
    start = known * labels + (1 - known) * (predicted + scale * errors)
    return personalized(matrix, start, steps, smoothing_teleport)


def logarithm(shares: Tensor) -> Tensor:
    """Logits of shares of classes; a node that nothing reaches has equal ones."""
    return shares.clamp_min(1e-12).log()


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
