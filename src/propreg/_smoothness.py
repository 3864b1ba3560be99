"""How smooth a model's output is over the graph: what over-smoothing drives to zero."""

import torch
from torch import Tensor

from propreg import _errors
from propreg._baselines import laplacian
from propreg._operator import Operator
from propreg._propagation import edges, not_swapped, resolve


def dirichlet_energy(z: Tensor, edge_index: Tensor | Operator, edge_weight: Tensor | None = None) -> Tensor:
    r"""The Dirichlet energy per node,

    .. math::
        E(Z) = \frac1N \sum_{(i,j) \in \mathcal E} w_{ij}
               \Bigl\| \frac{z_i}{\sqrt{d_i}} - \frac{z_j}{\sqrt{d_j}} \Bigr\|_2^2 ,

    over the undirected edges, d the degree. It is 0 where the rows are equal up to :math:`\sqrt{d}`, which is where a
    deep GCN ends (over-smoothing). P-reg pulls there too: watch it when you raise μ.

    Args:
        z: Outputs or embeddings, one row per node.
        edge_index: As for :func:`propreg.preg`.
        edge_weight: One weight per listed edge.

    Shape:
        - z: :math:`(N, F)`; returns a scalar.

    Example:
        >>> import torch
        >>> edge_index = torch.tensor([[0, 1], [1, 0]])
        >>> dirichlet_energy(torch.tensor([[1.0], [3.0]]), edge_index)
        tensor(2.)
    """
    total = laplacian(z, edge_index, edge_weight, norm="sym", reduction="sum")
    return total / max(z.shape[0], 1)


def mean_average_distance(z: Tensor, edge_index: Tensor | Operator) -> Tensor:
    r"""The mean average distance MAD of Chen et al. (AAAI 2020) over neighbors,

    .. math::
        \mathrm{MAD}(Z) = \frac{1}{|\mathcal V'|} \sum_{i \in \mathcal V'} \frac{1}{|\mathcal N(i)|}
            \sum_{j \in \mathcal N(i)} \bigl(1 - \cos(z_i, z_j)\bigr) ,

    where N(i) are the sources of the listed edges into i, without loops, and V' the nodes that have any. It is 0 where
    neighbors point the same way. A row of zeros has no direction: its cosine counts as 0.

    Args:
        z: Outputs or embeddings, one row per node.
        edge_index: As for :func:`propreg.preg`; weights are not used.

    Shape:
        - z: :math:`(N, F)`; returns a scalar.

    Example:
        >>> import torch
        >>> edge_index = torch.tensor([[0, 1], [1, 0]])
        >>> mean_average_distance(torch.tensor([[1.0, 0.0], [0.0, 2.0]]), edge_index)
        tensor(1.)
    """
    not_swapped(z, edge_index)
    _errors.logits("z", z)
    graph = edges(resolve(edge_index, None, z.shape[0], norm="rw", add_self_loops=False, validate=None))
    _errors.same_device("z", z, "edge_index", graph.edge_index)
    z = _errors.at_least_float32(z)
    if _errors.values_are_checked(None, z):
        _errors.finite_rows("z", z)
    source, target = graph.edge_index
    length: Tensor = torch.linalg.vector_norm(z, dim=-1, keepdim=True)
    unit = z / torch.where(length > 0, length, torch.ones_like(length))
    real = (source != target).to(z.dtype)
    apart = (1 - (unit.index_select(0, source) * unit.index_select(0, target)).sum(-1)) * real
    sums, counts = (z.new_zeros(z.shape[0]).index_add(0, target, each) for each in (apart, real))
    there = (counts > 0).to(z.dtype)
    return (sums / counts.clamp(min=1)).sum() / there.sum().clamp(min=1)
