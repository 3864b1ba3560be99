"""Modules of exported models that neither PyTorch nor PyG has."""

import torch
from torch import Tensor, nn

from propreg._propagation import Propagation
from propreg.engine.models.architecture import Layer, same


class MixedOrder(nn.Module):
    """The mean of x, Âx, …, Â^K x of scaled features, with self-loops and symmetric normalization.

    Example:
        >>> MixedOrder(1, 0.5)(torch.tensor([[2.0], [4.0]]), torch.tensor([[0, 1], [1, 0]]))
        tensor([[1.2500],
                [1.7500]])
    """

    def __init__(self, steps: int, scale: float) -> None:
        super().__init__()
        self.steps, self.scale = steps, scale

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        """[N, F] → [N, F]."""
        adjacency = Propagation(edge_index, len(x), edge_weight, norm="sym", add_self_loops=True)
        total = step = self.scale * x
        for _ in range(self.steps):
            step = adjacency(step)
            total = total + step
        return total / (self.steps + 1)


def norm_layer(number: int, width: int) -> Layer:
    """Batch norm with the weights of :func:`propreg.engine.models.network.norm`."""
    names = {"weight": "scale", "bias": "shift", "running_mean": "mean", "running_var": "variance"}
    state = {theirs: same(f"{ours}{number}") for theirs, ours in names.items()}
    return Layer(nn.BatchNorm1d(width), state=state | {"num_batches_tracked": lambda _: torch.tensor(0)})
