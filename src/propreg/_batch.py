"""The graph of a mini-batch: with the degrees of the whole graph, and exact neighborhoods of the nodes that count."""

from typing import Any

import torch
from torch import Tensor

from propreg import _errors
from propreg._options import Options
from propreg._propagation import Propagation

_DEGREE = "data.degree = propreg.Propagation(data.edge_index, data.num_nodes{}).degree()"


def seeds_of(z: Tensor, batch: Any, options: Options, layers: int | None) -> tuple[Propagation, Tensor]:
    """Â of a neighbor loader's batch, complete in the rows of its seeds, and the mask of the seeds."""
    size = _batch_size(z, batch)
    sampled = getattr(batch, "num_sampled_nodes", None)  # PyG counts them with pyg-lib alone
    hops = None if sampled is None else len(sampled) - 1
    if hops is not None and hops < 1 + (layers or 0):
        raise ValueError(
            f"batch holds {hops} hops, but a model of {layers or 0} layers and P-reg reach {1 + (layers or 0)}: pass "
            f"num_neighbors={[-1] + [10] * (layers or 0)} to the loader."
        )
    edge_index, weight, degree = _parts(z, batch, options)
    kept = edge_index[1] < size
    edge_index, weight = edge_index[:, kept], None if weight is None else weight[kept]
    made = _propagation(edge_index, z, weight, degree, options)
    here = Propagation(edge_index, z.shape[0], weight, add_self_loops=options.add_self_loops, validate=False)
    missing = ~torch.isclose(here.degree()[:size], degree[:size].to(here.degree().dtype), rtol=1e-5)
    if bool(missing.any()):
        node = int(missing.nonzero()[0])
        raise ValueError(
            f"batch does not hold all neighbors of its seeds (the edges of seed {node} weigh {here.degree()[node]:g}, "
            f"its degree is {degree[node]:g}): start the loader's num_neighbors with -1, and first set "
            f"{_degree_fix(batch, options)}."
        )
    return made, torch.arange(z.shape[0], device=z.device) < size


def saint_of(z: Tensor, batch: Any, options: Options) -> tuple[Propagation, Tensor]:
    """Â of a GraphSAINT batch and the weight of each node, whose sum over many batches is a mean over the graph.

    The neighbors in the batch stand for all: their weights are scaled so that each row keeps its sum in the whole
    graph. A loop is in the batch whenever its node is, and keeps its weight.
    """
    edge_index, weight, degree = _parts(z, batch, options)
    if options.reduction != "mean":
        raise ValueError(f"GraphSAINT's node_norm makes a mean: use reduction='mean', not {options.reduction!r}.")
    weight = torch.ones(edge_index.shape[1], device=z.device) if weight is None else weight
    loop = edge_index[0] == edge_index[1]
    alone = Propagation(
        edge_index[:, loop], z.shape[0], weight[loop], add_self_loops=options.add_self_loops, validate=False
    ).degree()
    present = alone.new_zeros(z.shape[0]).index_add(0, edge_index[1, ~loop], weight[~loop].to(alone.dtype))
    scale = (degree.to(alone.dtype) - alone).clamp(min=0) / present.where(present > 0, 1)
    scaled = torch.where(loop, weight.to(alone.dtype), weight * scale[edge_index[1]])
    return _propagation(edge_index, z, scaled, degree, options), batch.node_norm


def _propagation(edge_index: Tensor, z: Tensor, weight: Tensor | None, degree: Tensor, options: Options) -> Propagation:
    return Propagation(
        edge_index,
        z.shape[0],
        weight,
        norm=options.norm,
        add_self_loops=options.add_self_loops,
        degree=degree,
        validate=False,
    )


def _batch_size(z: Tensor, batch: Any) -> int:
    size = getattr(batch, "batch_size", None)
    if size is None:
        raise ValueError(
            "batch has neither batch_size nor node_norm: pass a batch of a neighbor loader, or of a GraphSAINT sampler "
            "with sample_coverage above 0."
        )
    if not 0 < size <= z.shape[0]:
        raise ValueError(f"batch has {size} seeds but z has {z.shape[0]} rows: pass logits of the whole batch.")
    return int(size)


def _parts(z: Tensor, batch: Any, options: Options) -> tuple[Tensor, Tensor | None, Tensor]:
    if options.threshold is not None:
        raise ValueError("threshold acts on the mean over all nodes, which a batch does not have: leave it out.")
    degree = getattr(batch, "degree", None)
    if not isinstance(degree, Tensor):
        raise ValueError(f"batch has no degrees of the whole graph: set {_degree_fix(batch, options)} before.")
    if degree.shape != z.shape[:1]:
        raise ValueError(f"batch has {len(degree)} nodes but z has {z.shape[0]} rows: pass logits of the whole batch.")
    _errors.same_device("z", z, "batch.edge_index", batch.edge_index)
    return batch.edge_index, getattr(batch, "edge_weight", None), degree


def _degree_fix(batch: Any, options: Options) -> str:
    more = ", data.edge_weight" if getattr(batch, "edge_weight", None) is not None else ""
    return _DEGREE.format(more + (", add_self_loops=True" if options.add_self_loops else ""))
