"""The regularizers the paper compares with: the graph Laplacian and the confidence penalty.

Label smoothing, the third, is torch's own argument: ``F.cross_entropy(z, y, label_smoothing=alpha)`` is the paper's
:math:`(1-\\alpha) y + \\alpha / C`. The official code gives the wrong classes :math:`\\alpha' / (C-1)` each and the
right one :math:`1-\\alpha'`; that is the same with ``alpha = alpha_official * C / (C - 1)``, valid for
``alpha_official <= (C - 1) / C``.
"""

from typing import Literal

import torch
from torch import Tensor

from propreg import _errors
from propreg._operator import Operator
from propreg._options import REDUCTIONS, Reduction
from propreg._propagation import Propagation, edges, not_swapped, resolve
from propreg._reduce import reduced, selected

VARIANTS = ("paper", "official")


def laplacian(
    z: Tensor,
    edge_index: Tensor | Operator,
    edge_weight: Tensor | None = None,
    *,
    norm: Literal["sym"] | None = None,
    reduction: Literal["mean", "sum"] = "mean",
    variant: Literal["paper", "official"] = "paper",
    validate: bool | None = None,
) -> Tensor:
    r"""The graph Laplacian regularizer of section 4.1.3,

    .. math::
        \mathcal L_{lap} = \sum_{(i,j) \in \mathcal E} w_{ij} \| z_i - z_j \|_2^2 ,

    and returns an average over the undirected edges (``reduction="mean"``, divided by the sum of their weights) or the
    paper's sum.

    Each undirected edge counts once, however often and in whichever direction it is listed; loops count 0. Its weight
    is 1, or with ``edge_weight`` the mean of its directions' weights (an edge listed twice in one direction adds up).
    A listed edge of weight 0 is no edge.

    Args:
        z: Logits, one row per node.
        edge_index: As for :func:`propreg.preg`.
        edge_weight: One weight per listed edge.
        norm: None, or ``"sym"``: rows are divided by the square root of their degree first.
        reduction: ``"mean"`` or ``"sum"``.
        variant: ``"official"`` is what the official code computes, :math:`2\,(\mathrm{mean}_{(i,j)}\|z_i-z_j\|_2)^2`
            over the edges as they are listed.
        validate: As for :func:`propreg.preg`.

    Shape:
        - z: :math:`(N, C)`; returns a scalar.

    Example:
        >>> import torch
        >>> edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> z = torch.tensor([[0.0], [1.0], [3.0]])
        >>> laplacian(z, edge_index, reduction="sum"), laplacian(z, edge_index)
        (tensor(5.), tensor(2.5000))
    """
    not_swapped(z, edge_index)
    _errors.logits("z", z)
    _errors.one_of("reduction", reduction, ("mean", "sum"))
    _errors.one_of("variant", variant, VARIANTS)
    if norm is not None:
        _errors.one_of("norm", norm, ("sym",), " or None")
    graph = edges(resolve(edge_index, edge_weight, z.shape[0], norm="rw", add_self_loops=False, validate=validate))
    _errors.same_device("z", z, "edge_index", graph.edge_index)
    if _errors.values_are_checked(validate, z):
        _errors.finite_rows("z", z)
    z = _errors.at_least_float32(z)
    if variant == "official":
        return _official_laplacian(z, graph, norm, reduction, weighted=edge_weight is not None)
    weight = undirected_weights(graph, z.dtype)
    source, target = graph.edge_index
    if norm == "sym":
        both = torch.cat([source, target])
        degree = z.new_zeros(z.shape[0]).index_add(0, both, torch.cat([weight, weight]))
        z = z / torch.where(degree > 0, degree, torch.ones_like(degree)).sqrt().unsqueeze(-1)
    apart = (z.index_select(0, source) - z.index_select(0, target)).square().sum(-1)
    total = (weight * apart).sum()
    if reduction == "sum":
        return total
    mass = weight.sum()
    return total / torch.where(mass > 0, mass, torch.ones_like(mass))


def confidence_penalty(
    z: Tensor,
    *,
    mask: Tensor | None = None,
    reduction: Reduction = "mean",
    variant: Literal["paper", "official"] = "paper",
    validate: bool | None = None,
) -> Tensor:
    r"""The confidence penalty of section 5.1, the negative entropy of the predictions,

    .. math::
        \sum_c p_{ic} \log p_{ic} = -H(p_i),

    and returns an average over the nodes: adding it to a loss makes predictions *less* confident.

    Args:
        z: Logits, one row per node.
        mask: Only these nodes count: bool [N] or unique int64 node numbers. If there are none, it is 0.
        reduction: ``"mean"`` per counted node, ``"sum"`` or ``"none"``.
        variant: ``"official"`` has the official code's sign, :math:`+H`, which does the opposite.
        validate: As for :func:`propreg.preg`.

    Shape:
        - z: :math:`(N, C)`; returns a scalar, or :math:`(N)` with ``reduction="none"``.

    Example:
        >>> import torch
        >>> confidence_penalty(torch.zeros(3, 2))
        tensor(-0.6931)
    """
    _errors.logits("z", z)
    _errors.one_of("reduction", reduction, REDUCTIONS)
    _errors.one_of("variant", variant, VARIANTS)
    if _errors.values_are_checked(validate, z):
        _errors.finite_rows("z", z)
    counted = selected(mask, z, validate)
    log_p = _errors.at_least_float32(z).log_softmax(-1)
    negative_entropy = (log_p.exp() * log_p).sum(-1)
    return reduced(negative_entropy if variant == "paper" else -negative_entropy, counted, reduction)


def _official_laplacian(z: Tensor, graph: Propagation, norm: str | None, reduction: str, *, weighted: bool) -> Tensor:
    weight = graph.edge_weight  # a sparse tensor always has values: all ones count as unweighted
    weighted = weighted or (
        weight is not None and not (_errors.plain() and _errors.have_values(weight) and bool((weight == 1).all()))
    )
    if weighted or norm is not None or reduction != "mean":
        raise ValueError(
            "variant='official' has no edge weights, no norm and no other reduction than 'mean': leave them out, "
            "or use variant='paper'."
        )
    source, target = graph.edge_index
    lengths: Tensor = torch.linalg.vector_norm(z.index_select(0, source) - z.index_select(0, target), dim=-1)
    return 2 * (lengths.sum() / max(lengths.shape[0], 1)).square()


def undirected_weights(graph: Propagation, dtype: torch.dtype) -> Tensor:
    """A weight per listed edge so that each undirected edge counts once: its listed edges add up to its weight.

    Sorted keys and searches instead of ``unique``: no shape depends on a value, so it can be compiled.
    """
    source, target = graph.edge_index
    real = (source != target).to(dtype)
    nodes = graph.num_nodes
    if graph.edge_weight is None:
        pair = torch.minimum(source, target) * nodes + torch.maximum(source, target)
        share: Tensor = real / _occurrences(pair, pair, torch.ones_like(pair)).to(dtype)
        return share
    forward, backward = source * nodes + target, target * nodes + source
    directions = 1 + (_occurrences(forward, backward, (graph.edge_weight > 0).long()) > 0).to(dtype)
    weight: Tensor = graph.edge_weight.to(dtype) * real / directions
    return weight


def _occurrences(keys: Tensor, wanted: Tensor, counts: Tensor) -> Tensor:
    """How often each wanted key occurs among the keys, each of which counts that often."""
    ordered, order = keys.sort()
    before = torch.cat([counts.new_zeros(1), counts.index_select(0, order).cumsum(0)])
    first, end = torch.searchsorted(ordered, wanted), torch.searchsorted(ordered, wanted, right=True)
    return before.index_select(0, end) - before.index_select(0, first)
