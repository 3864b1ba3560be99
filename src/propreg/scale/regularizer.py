"""P-reg on mini-batches, with seeds of its own."""

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from propreg import Propagation, preg
from propreg._options import Detach, Options, PhiLike
from propreg._propagation import Norm


class MiniBatchPReg(nn.Module):
    r"""P-reg on batches of :class:`propreg.scale.Loader`: ``loss = ce + mu * regularizer(z, batch)``.

    Each batch holds a few nodes drawn uniformly from the whole graph for this term alone, with all of their neighbors.
    The model computes logits for these rows too, from sampled neighborhoods like any other's. For given logits the
    mean over many batches is the term of the whole graph, and so is the gradient, for every ``phi`` and ``norm``.

    With ``num_neighbors=k`` a seed keeps k random neighbors, or some more, and these stand for all. The mean is still
    that of the whole graph, for every ``phi``: ``"squared_error"`` is corrected by the variance among k neighbors, all
    others by what changes when the number of neighbors of some random seeds is doubled, once or repeatedly. A seed then
    keeps less than 3 k neighbors on average. ``docs/large-graphs.md`` measures how much noise is added.

    Args:
        phi, norm, add_self_loops, detach: As for :func:`propreg.preg`.
        cost: How large batches may become, by their nodes and by their edges, as a multiple of those without the term.
            The loader chooses the number of seeds by it.
        seeds: The number of seeds, instead of ``cost``.
        num_neighbors: The neighbors that each seed keeps at least, 2 or more; −1 for all.

    Example:
        >>> import torch
        >>> from torch_geometric.data import Data
        >>> from propreg.scale import Loader, MiniBatchPReg
        >>> ring = torch.stack([torch.arange(9), torch.arange(9).roll(1)])
        >>> data = Data(x=torch.eye(9), edge_index=torch.cat([ring, ring.flip(0)], 1), y=torch.arange(9) % 3)
        >>> regularizer = MiniBatchPReg("squared_error", seeds=2)
        >>> for batch in Loader(data, [2], batch_size=5, preg=regularizer):
        ...     print(batch.batch_size, regularizer(batch.x[:, :3], batch).shape)
        5 torch.Size([])
        4 torch.Size([])
    """

    def __init__(
        self,
        phi: PhiLike = "cross_entropy",
        norm: Norm = "rw",
        add_self_loops: bool = False,
        *,
        detach: Detach = None,
        cost: float = 1.25,
        seeds: int | None = None,
        num_neighbors: int = -1,
    ) -> None:
        super().__init__()
        self.options = Options(phi, norm, add_self_loops, detach, None, "mean", None)
        if isinstance(phi, nn.Module):
            self.phi_module = phi
        if isinstance(cost, bool) or not isinstance(cost, int | float) or not 1 < cost < math.inf:
            raise ValueError(f"cost must be a number above 1, for example 1.25 for a quarter more, got {cost!r}.")
        if seeds is not None and (type(seeds) is not int or seeds < 1):
            raise ValueError(
                f"seeds must be a whole number of at least 1, or None to choose it by cost, got {seeds!r}."
            )
        if type(num_neighbors) is not int or (num_neighbors < 2 and num_neighbors != -1):
            raise ValueError(f"num_neighbors must be -1 for all neighbors or at least 2, got {num_neighbors!r}.")
        self.cost, self.seeds, self.num_neighbors = float(cost), seeds, num_neighbors

    def forward(self, z: Tensor, batch: Any, *, source: Tensor | None = None) -> Tensor:
        """The term, for logits ``z`` of all nodes of the batch; ``source`` as for :func:`propreg.preg`."""
        rows = getattr(batch, "preg_rows", None)
        if rows is None:
            raise ValueError(
                "batch holds no nodes for P-reg: pass preg= this regularizer to propreg.scale.Loader, or use "
                "PReg.on_batch for batches of other loaders."
            )
        if z.shape[:1] != batch.n_id.shape:
            raise ValueError(
                f"batch has {len(batch.n_id)} nodes but z has shape {tuple(z.shape)}: pass logits of the whole batch."
            )
        o, seeds = self.options, batch.preg_seeds
        z = z.index_select(0, rows)
        source = z if source is None else source.index_select(0, rows)
        index, values = _into_seeds(batch, o.norm, o.add_self_loops)

        def term(weight: Tensor) -> Tensor:
            size = len(rows), seeds
            ones = weight.new_ones(seeds)  # the values are normalized already
            into = Propagation(index, None, weight, size=size, degree=ones, backend="gather", validate=False)
            return preg(z[:seeds], into, phi=o.phi, source=source, detach=o.detach, reduction="none")

        if self.num_neighbors < 0:
            return term(values).mean()
        corrected = o.phi != "squared_error"
        parts = _parts(batch, self.num_neighbors, corrected=corrected)
        means = [(share * term(values * _scaled(batch, low, high, values))).mean() for low, high, share in parts]
        if not corrected:
            z = source.detach() if o.detach == "neighbors" else source
            means.append(-_bias(z, values, batch, self.num_neighbors))
        return torch.stack(means).sum()

    def extra_repr(self) -> str:
        o = self.options
        amount = f"cost={self.cost:g}" if self.seeds is None else f"seeds={self.seeds}"
        shown = f"phi={o.phi!r}, norm={o.norm!r}, add_self_loops={o.add_self_loops}, {amount}"
        return shown if self.num_neighbors < 0 else f"{shown}, num_neighbors={self.num_neighbors}"


def _into_seeds(batch: Any, norm: Norm, add_self_loops: bool) -> tuple[Tensor, Tensor]:
    """The edges into the seeds and their values in Â, loops last."""
    index, degree = batch.preg_edge_index, batch.preg_degree
    weight = batch.preg_edge_weight if "preg_edge_weight" in batch else None
    rows = Propagation(
        index, len(degree), weight, norm=norm, add_self_loops=add_self_loops, degree=degree, validate=False
    )
    target, source, values = rows.entries(torch.float64)
    count = index.shape[1] + (batch.preg_seeds if add_self_loops else 0)  # rows of neighbors get loops, too
    return torch.stack([source[:count], target[:count]]), values[:count]


def _parts(batch: Any, k: int, *, corrected: bool) -> Iterator[tuple[Tensor | int, Tensor, Tensor | float]]:
    r"""Which of the neighbors stand for all: from which rank to which, and with which factor.

    A part that was doubled ℓ times, with probability p, corrects what the first k neighbors give:

    .. math::
        \phi(q_k) + \tfrac1p \bigl[\phi(q_{2^\ell k}) - \tfrac12 \phi(q_{2^{\ell - 1} k})
            - \tfrac12 \phi(q'_{2^{\ell - 1} k})\bigr]

    where q and q' are the means over its two halves. The mean over ℓ is a telescoping sum whose last term is that of
    all neighbors: no bias is left, whatever φ is (Blanchet, Glynn and Pei, 2019).
    """
    degree, level = batch.preg_in_edges, batch.preg_level
    yield 0, degree.clamp(max=k), 1.0
    if corrected:
        part = torch.minimum(k << level, degree)
        half = torch.where(level > 0, (k << level) >> 1, part)
        share = torch.where(level > 0, 2.0 ** (1.5 * level.double()), 0.0)
        yield 0, part, share
        yield 0, half, -share / 2
        yield part - half, part, -share / 2


def _scaled(batch: Any, low: Tensor | int, high: Tensor, values: Tensor) -> Tensor:
    """The factor of each value when the neighbors of these ranks stand for all; loops are known."""
    rank, target = batch.preg_rank, batch.preg_edge_index[1]
    low = torch.zeros_like(high) + low
    share = batch.preg_in_edges.double() / (high - low).clamp(min=1)
    inside = (rank >= low[target]) & (rank < high[target])
    return torch.cat([torch.where(inside, share[target], 0.0), values.new_ones(len(values) - len(target))])


def _bias(z: Tensor, values: Tensor, batch: Any, k: int) -> Tensor:
    r"""The mean over the seeds of ½ tr Cov q̂, estimated without bias.

    q̂ is the mean of :math:`b_j = d \hat A_{ij} z_j` over k of the d edges, so its variance is
    :math:`(1 - k/d) S^2 / k` with :math:`S^2` the sample variance of the :math:`b_j`.
    """
    z = z.to(torch.promote_types(z.dtype, torch.float32))
    (source, target), degree, seeds = batch.preg_edge_index, batch.preg_in_edges, batch.preg_seeds
    drawn = degree.clamp(max=k).to(z.dtype)  # k, or all if there are no more
    kept = batch.preg_rank < k
    terms = (degree[target] * kept * values[: len(target)]).to(z.dtype).unsqueeze(-1) * z[source]
    mean = z.new_zeros(seeds, z.shape[1]).index_add(0, target, terms) / drawn.clamp(min=1).unsqueeze(-1)
    squares = z.new_zeros(seeds).index_add(0, target, kept * (terms - mean[target]).square().sum(-1))
    left_out = 1 - drawn / degree.to(z.dtype).clamp(min=1)
    bias: Tensor = 0.5 * (left_out * squares / ((drawn - 1) * drawn).clamp(min=1)).sum() / seeds
    return bias
