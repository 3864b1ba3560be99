"""Modules of exported models that neither PyTorch nor PyG has."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout

from propreg._propagation import Propagation
from propreg.engine.models.architecture import Layer, Weights, same
from propreg.engine.ops import diffusion


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
        return diffusion.mean_of_powers(_with_loops(x, edge_index, edge_weight), self.scale * x, self.steps)


class Binarized(nn.Module):
    """1 over the number of features in a row, where there is one that is not 0.

    Example:
        >>> Binarized()(torch.tensor([[0.0, 3.0, -1.0], [0.0, 0.0, 0.0]]))
        tensor([[0.0000, 0.5000, 0.5000],
                [0.0000, 0.0000, 0.0000]])
    """

    def forward(self, x: Tensor) -> Tensor:
        """[N, F] → [N, F]."""
        there = (x != 0).to(x.dtype)
        return there / there.sum(1, keepdim=True).clamp_min(1.0)


class GatedHops(nn.Module):
    """DAGNN's hops: x, Âx, …, Â^K x, each weighed at each node by a gate, and summed."""

    def __init__(self, steps: int, width: int) -> None:
        super().__init__()
        self.steps, self.gate = steps, nn.Linear(width, 1)

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        """[N, C] → [N, C]."""
        total: Tensor = self.gate(x).sigmoid() * x
        for each in diffusion.powers(_with_loops(x, edge_index, edge_weight), x, self.steps):
            total = total + self.gate(each).sigmoid() * each
        return total


class DeepResidual(nn.Module):
    """GCNII in PyG's ``GCN2Conv`` layers."""

    def __init__(
        self, features: int, width: int, classes: int, layers: int, alpha: float, theta: float, *, dropout: float
    ) -> None:
        from torch_geometric.nn import GCN2Conv

        super().__init__()
        self.first, self.last, self.dropout = nn.Linear(features, width), nn.Linear(width, classes), dropout
        self.convs = nn.ModuleList(GCN2Conv(width, alpha, theta, layer=i + 1) for i in range(layers))

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        """[N, F] → [N, C]."""
        start = h = self.first(x).relu()
        for conv in self.convs:
            h = conv(dropout(h, self.dropout, self.training), start, edge_index, edge_weight).relu()
        z: Tensor = self.last(dropout(h, self.dropout, self.training))
        return z


class WeightedUNet(nn.Module):
    """PyG's ``GraphUNet``, with the weights of the edges as its third argument."""

    def __init__(self, features: int, width: int, classes: int, depth: int, ratios: list[float]) -> None:
        from torch_geometric.nn import GraphUNet

        super().__init__()
        self.net = GraphUNet(features, width, classes, depth, ratios)
        self.net.augment_adj = _two_hops  # PyG's own multiplies CSR matrices: it warns, and on a CPU it needs MKL

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        """[N, F] → [N, C]."""
        weights = {} if edge_weight is None else {"edge_weight": edge_weight}
        z: Tensor = self.net(x, edge_index, **weights)
        return z


class Block(nn.Module):
    """A convolution with a residual and a norm, where there are any, then ReLU and dropout."""

    def __init__(self, fan_in: int, fan_out: int, residual: bool, norm: str, rate: float) -> None:
        from torch_geometric.nn import GCNConv

        super().__init__()
        self.conv, self.rate = GCNConv(fan_in, fan_out), rate
        self.beside = nn.Linear(fan_in, fan_out) if residual else None
        norms = {"none": nn.Identity, "batch": nn.BatchNorm1d, "layer": nn.LayerNorm}
        self.norm = norms[norm](fan_out)

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        """[N, F] → [N, H]."""
        z = self.conv(x, edge_index, edge_weight)
        if self.beside is not None:
            z = z + self.beside(x)
        h: Tensor = self.norm(z).relu()
        return dropout(h, self.rate, self.training)


class _HoldsLabels(nn.Module):
    """Holds the labels of the training nodes of the graph that it was fitted on, [N, C]."""

    labels: Tensor

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.register_buffer("labels", torch.zeros(0, classes))

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        # As many rows as the state has: those of a new module are not known.
        self.labels = torch.zeros_like(state_dict[f"{prefix}labels"], device=self.labels.device)
        super()._load_from_state_dict(state_dict, prefix, *rest)


class SpreadLabels(_HoldsLabels):
    """Label propagation: the labels, spread over the graph."""

    def __init__(self, steps: int, teleport: float, classes: int) -> None:
        super().__init__(classes)
        self.steps, self.teleport = steps, teleport

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        """[N, F] → [N, C]."""
        adjacency = Propagation(edge_index, len(x), edge_weight, norm="sym")
        return diffusion.logarithm(diffusion.personalized(adjacency, self.labels, self.steps, self.teleport))


class SmoothedPredictions(_HoldsLabels):
    """The correction and the smoothing of logits; in training mode the logits themselves."""

    def __init__(self, steps: int, teleport: float, smoothing_teleport: float, classes: int) -> None:
        super().__init__(classes)
        self.shares = steps, teleport, smoothing_teleport

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        """[N, C] → [N, C]."""
        if self.training:
            return x
        adjacency = Propagation(edge_index, len(x), edge_weight, norm="sym")
        return diffusion.logarithm(
            diffusion.corrected_and_smoothed(adjacency, x.softmax(-1), self.labels, *self.shares)
        )


def _two_hops(edge_index: Tensor, edge_weight: Tensor, num_nodes: int) -> tuple[Tensor, Tensor]:
    """The edges of (A + I)² without its diagonal, with A's loops replaced by I, and their weights."""
    loop, nodes = edge_index[0] == edge_index[1], torch.arange(num_nodes, device=edge_index.device)
    places = torch.cat([edge_index[:, ~loop], nodes.expand(2, -1)], 1)
    values = torch.cat([edge_weight[~loop], edge_weight.new_ones(num_nodes)])
    a = torch.sparse_coo_tensor(places, values, (num_nodes, num_nodes), check_invariants=False)
    squared = torch.sparse.mm(a, a).coalesce()
    between = squared.indices()[0] != squared.indices()[1]
    return squared.indices()[:, between], squared.values()[between]


def _with_loops(x: Tensor, edge_index: Tensor, edge_weight: Tensor | None) -> Propagation:
    return Propagation(edge_index, len(x), edge_weight, norm="sym", add_self_loops=True)


def norm_layer(number: int, width: int) -> Layer:
    """Batch norm with the weights of :func:`propreg.engine.models.network.norm`."""
    return Layer(nn.BatchNorm1d(width), state=norm_state(number))


def norm_state(number: int) -> dict[str, Callable[[Weights], Tensor]]:
    """Its state."""
    names = {"weight": "scale", "bias": "shift", "running_mean": "mean", "running_var": "variance"}
    state = {theirs: same(f"{ours}{number}") for theirs, ours in names.items()}
    return state | {"num_batches_tracked": lambda _: torch.tensor(0)}
