"""P-reg on mini-batches, with seeds of its own."""

import math
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

    With ``num_neighbors=k`` a seed keeps k random neighbors, each weighted for the neighbors that it represents. Then
    ``"squared_error"`` is corrected by the variance among the neighbors, and its mean is still that of the whole graph.
    Cross entropy becomes larger, by an extra penalty on differences among neighbors, which ``docs/large-graphs.md``
    measures. The effect on any other ``phi`` is unknown.

    Args:
        phi, norm, add_self_loops, detach: As for :func:`propreg.preg`.
        cost: How large batches may become, by their nodes and by their edges, as a multiple of those without the term.
            The loader chooses the number of seeds by it.
        seeds: The number of seeds, instead of ``cost``.
        num_neighbors: The neighbors that each seed keeps, at least 2; −1 for all.

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
        o, z = self.options, z[rows]
        propagation = Propagation(
            batch.preg_edge_index,
            len(rows),
            batch.preg_edge_weight if "preg_edge_weight" in batch else None,
            norm=o.norm,
            add_self_loops=o.add_self_loops,
            degree=batch.preg_degree,
            validate=False,
        )
        seeds = torch.arange(len(rows), device=z.device) < batch.preg_seeds
        source = None if source is None else source[rows]
        value = preg(
            z, propagation, phi=o.phi, norm=o.norm, add_self_loops=o.add_self_loops, source=source, detach=o.detach,
            mask=seeds,
        )  # fmt: skip
        if self.num_neighbors < 0 or o.phi != "squared_error":
            return value
        return value - _bias(z if source is None else source, propagation, batch, detached=o.detach == "neighbors")

    def extra_repr(self) -> str:
        o = self.options
        amount = f"cost={self.cost:g}" if self.seeds is None else f"seeds={self.seeds}"
        shown = f"phi={o.phi!r}, norm={o.norm!r}, add_self_loops={o.add_self_loops}, {amount}"
        return shown if self.num_neighbors < 0 else f"{shown}, num_neighbors={self.num_neighbors}"


def _bias(z: Tensor, propagation: Propagation, batch: Any, *, detached: bool) -> Tensor:
    r"""The mean over the seeds of ½ tr Cov q̂, estimated without bias.

    q̂ is the mean of :math:`b_j = d \hat A_{ij} z_j` over k of the d edges, so its variance is
    :math:`(1 - k/d) S^2 / k` with :math:`S^2` the sample variance of the :math:`b_j`.
    """
    z = (z.detach() if detached else z).to(torch.promote_types(z.dtype, torch.float32))
    seeds = batch.preg_seeds
    target = batch.preg_edge_index[1]
    _, _, entries = propagation.entries(z.dtype)  # Â d / k; added loops, which are known exactly, come last
    drawn = torch.bincount(target, minlength=seeds).to(z.dtype)  # k, or all where there are no more
    terms = (entries[: len(target)] * drawn[target]).unsqueeze(-1) * z[batch.preg_edge_index[0]]
    mean = z.new_zeros(seeds, z.shape[1]).index_add(0, target, terms) / drawn.clamp(min=1).unsqueeze(-1)
    squares = z.new_zeros(seeds).index_add(0, target, (terms - mean[target]).square().sum(-1))
    left_out = 1 - drawn / batch.preg_in_edges.to(z.dtype).clamp(min=1)
    bias: Tensor = 0.5 * (left_out * squares / ((drawn - 1) * drawn).clamp(min=1)).sum() / seeds
    return bias
