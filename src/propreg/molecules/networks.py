"""OGB's GCN and GIN with bond encoders, replica-first: a tensor of atoms is [S, M, N, W].

S seeds have mini-batches of their own; the M replicas of a seed (its strengths) share them, and its dropout masks.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from propreg.data.graph_list import ATOM_DIMS, BOND_DIMS
from propreg.engine.models.molecules import MoleculeModel
from propreg.engine.ops.dropout import Masks
from propreg.molecules import ops
from propreg.molecules.packing import ATOM_ROWS, BOND_CODES, Batch, Packed

Parameters = dict[str, Tensor]
Draw = Callable[[str], Masks | None]


@dataclass(frozen=True)
class Weight:
    """A parameter of one replica: its shape, and the distribution it is drawn from."""

    shape: tuple[int, ...]
    draw: Literal["zeros", "ones", "normal", "uniform"] = "zeros"
    bounds: tuple[float, ...] = ()  # of "uniform": one for each block of rows
    blocks: tuple[int, ...] = ()


@dataclass(frozen=True)
class Encoders:
    """How features become vectors: OGB's tables for integer-coded atoms and bonds, or linear maps of so many columns.

    A graph without features of edges has none of these columns: all edges then share one learned vector, the bias.
    """

    nodes: int | None = None
    edges: int | None = None

    @staticmethod
    def of(packed: Packed) -> "Encoders":
        """Those that packed graphs need."""
        if packed.attributes is None:
            return Encoders()
        return Encoders(packed.atoms.shape[1], packed.attributes.shape[1])

    def node_weights(self, width: int) -> dict[str, Weight]:
        """The parameters of the node encoder."""
        return {"atoms": _tables(ATOM_DIMS, width)} if self.nodes is None else _map("atoms", self.nodes, width)

    def edge_weights(self, name: str, width: int) -> dict[str, Weight]:
        """The parameters of one of the edge encoders."""
        return {name: _tables(BOND_DIMS, width)} if self.edges is None else _map(name, self.edges, width)


def weights_of(
    model: MoleculeModel, tasks: int, learned_propagation: bool = False, encoders: Encoders | None = None
) -> dict[str, Weight]:
    """The parameters of a model by name.

    Embeddings are Xavier-uniform table by table, linear layers have torch's default.
    """
    w, encoders = model.hidden, encoders or Encoders()
    found = encoders.node_weights(w)
    for i in range(model.layers):
        found |= encoders.edge_weights(f"conv{i}.bonds", w)
        if model.name == "mol-gin":
            found[f"conv{i}.epsilon"] = Weight(())
            found |= _mlp(f"conv{i}", (w, 2 * w, w), last_norm=False)
        else:
            found |= _linear(f"conv{i}.linear", w, w)
            found[f"conv{i}.root"] = Weight((w,), "normal")
        found |= _norm(f"norm{i}", w)
        if model.virtual_node and i < model.layers - 1:
            found |= _mlp(f"virtual{i}", (w, 2 * w, w), last_norm=True)
    if model.virtual_node:
        found["virtual"] = Weight((w,))
    found |= _linear("head", w, tasks)
    if learned_propagation:
        found |= encoders.edge_weights("propagation.bonds", w)
        found["propagation.root"] = Weight((w,), "normal")
    return found


def buffers_of(model: MoleculeModel) -> dict[str, Weight]:
    """The running statistics of batch norm by name."""
    names = [name.removesuffix(".scale") for name in weights_of(model, 1) if name.endswith(".scale")]
    shapes = {name: weights_of(model, 1)[f"{name}.scale"].shape for name in names}
    means = {f"{name}.mean": Weight(shapes[name]) for name in names}
    return means | {f"{name}.variance": Weight(shapes[name], "ones") for name in names}


def _tables(sizes: tuple[int, ...], width: int) -> Weight:
    bounds = tuple(math.sqrt(6 / (size + width)) for size in sizes)
    return Weight((sum(sizes), width), "uniform", bounds, sizes)


def _map(name: str, fan_in: int, fan_out: int) -> dict[str, Weight]:
    """A linear encoder, whose weight has the name of the tables that it replaces."""
    weight, bias = _linear(name, max(fan_in, 1), fan_out).values()
    return {name: replace(weight, shape=(fan_in, fan_out)), f"{name}.bias": bias}


def _linear(name: str, fan_in: int, fan_out: int) -> dict[str, Weight]:
    bound = (1 / math.sqrt(fan_in),)
    return {f"{name}.weight": Weight((fan_in, fan_out), "uniform", bound),
            f"{name}.bias": Weight((fan_out,), "uniform", bound)}  # fmt: skip


def _norm(name: str, width: int) -> dict[str, Weight]:
    return {f"{name}.scale": Weight((width,), "ones"), f"{name}.shift": Weight((width,))}


def _mlp(name: str, widths: tuple[int, int, int], last_norm: bool) -> dict[str, Weight]:
    """Linear, batch norm, ReLU, linear, and another batch norm for a virtual node."""
    found = _linear(f"{name}.first", *widths[:2]) | _norm(f"{name}.norm1", widths[1])
    found |= _linear(f"{name}.second", *widths[1:])
    return found | _norm(f"{name}.norm2", widths[2]) if last_norm else found


class MoleculeNetwork:
    """Forward passes of all replicas on a mini-batch per seed."""

    def __init__(self, model: MoleculeModel) -> None:
        self.model = model

    def atoms(
        self, p: Parameters, buffers: Parameters, batch: Batch, draw: Draw, training: bool, passes: int = 1
    ) -> Tensor:
        """The last layer's node embeddings, [S, M, N, W]: what P-reg regularizes.

        In training, each of the passes, [S, M·P, N, W], has masks of its own and updates the running statistics once.
        They go through a layer together: a small batch takes as long as the number of its kernels.
        """
        m, replicas, seeds = self.model, passes * len(p["atoms"]), len(batch.count)
        h = ops.each(embed_nodes(p, batch), replicas).view(seeds, replicas // seeds, batch.atoms.shape[1], -1)
        member = ops.each(batch.membership, replicas) if m.virtual_node else None
        virtual = None
        if m.virtual_node:
            virtual = ops.each(p["virtual"], replicas).unsqueeze(1).expand(-1, batch.membership.shape[1], -1)
        for i in range(m.layers):
            last = i == m.layers - 1
            if member is not None and virtual is not None:
                h = torch.baddbmm(h.flatten(0, 1), member.transpose(1, 2), virtual).view(h.shape)
                if not last:
                    pooled = torch.baddbmm(virtual, member, h.flatten(0, 1)).view(*h.shape[:2], *virtual.shape[1:])
                    virtual = self._mlp(p, buffers, f"virtual{i}", pooled, batch.molecules, training)
                    virtual = self._norm(p, buffers, f"virtual{i}.norm2", virtual, batch.molecules, training, True,
                                         draw(f"virtual{i}")).flatten(0, 1)  # fmt: skip
            h = self._conv(p, buffers, f"conv{i}", h, batch, training)
            h = self._norm(p, buffers, f"norm{i}", h, batch.count, training, not last, draw(f"layer{i}"))
        return h

    def predict(self, p: Parameters, h: Tensor, batch: Batch) -> Tensor:
        """One output per molecule and task from node embeddings, [S, M, B, tasks]: the mean over atoms, then a head."""
        sums = torch.bmm(ops.each(batch.membership, len(p["head.bias"])), h.flatten(0, 1)).view(
            *h.shape[:2], -1, h.shape[3]
        )
        return ops.linear(sums / batch.sizes[:, None, :, None], p["head.weight"], p["head.bias"])

    def _conv(self, p: Parameters, b: Parameters, at: str, h: Tensor, batch: Batch, training: bool) -> Tensor:
        table = edge_table(p, f"{at}.bonds", batch)
        if self.model.name == "mol-gin":
            return self._mlp(
                p, b, at, ops.messages(h, table, batch.bonds, 1 + p[f"{at}.epsilon"]), batch.count, training
            )
        x = ops.linear(h, p[f"{at}.linear.weight"], p[f"{at}.linear.bias"])
        return gcn_propagation(x, table, p[f"{at}.root"], batch)

    def _mlp(self, p: Parameters, b: Parameters, at: str, h: Tensor, count: Tensor, training: bool) -> Tensor:
        h = ops.linear(h, p[f"{at}.first.weight"], p[f"{at}.first.bias"])
        h = self._norm(p, b, f"{at}.norm1", h, count, training, relu=True)
        return ops.linear(h, p[f"{at}.second.weight"], p[f"{at}.second.bias"])

    def _norm(
        self, p: Parameters, b: Parameters, at: str, h: Tensor, count: Tensor, training: bool, relu: bool,
        masks: Masks | None = None,
    ) -> Tensor:  # fmt: skip
        running = b[f"{at}.mean"], b[f"{at}.variance"]
        scale, shift = p[f"{at}.scale"], p[f"{at}.shift"]
        return ops.normalize(h, scale, shift, running, count, training=training, relu=relu, masks=masks)


def gcn_propagation(x: Tensor, bonds: Tensor, root: Tensor, batch: Batch) -> Tensor:
    """OGB's GCN convolution without its linear map: also the official code's propagation of P-reg.

    Σ over bonds of relu(x_j + e_ij) / √(d_i d_j), plus relu(x_i + root) / d_i, with d one more than the degree.
    """
    return ops.messages(x, torch.cat([bonds, root.unsqueeze(1)], dim=1), batch.looped)


def embed_nodes(p: Parameters, batch: Batch) -> Tensor:
    """The sum of each atom's nine embeddings, as a product with a matrix of ones and zeros; or a linear map. [R, N, W].

    Of padding there is anything.
    """
    table = p["atoms"]
    if batch.attributes is not None:
        return torch.baddbmm(p["atoms.bias"].unsqueeze(1), ops.each(batch.atoms, len(table)), table)
    seeds, nodes, _ = batch.atoms.shape
    hot = torch.zeros(seeds, nodes, ATOM_ROWS, dtype=table.dtype, device=table.device)
    return torch.bmm(ops.each(hot.scatter_(2, batch.atoms, 1.0), len(table)), table)


def edge_table(p: Parameters, name: str, batch: Batch) -> Tensor:
    """The embedding of each code of a mini-batch's links, [R, codes, W], by one of the edge encoders."""
    if batch.attributes is None:
        return bond_table(p[name])
    return torch.baddbmm(p[f"{name}.bias"].unsqueeze(1), ops.each(batch.attributes, len(p[name])), p[name])


def bond_table(tables: Tensor) -> Tensor:
    """The embedding of each combination of bond features, [R, codes, W], from the three tables laid end to end."""
    replicas, _, width = tables.shape
    a, b, c = torch.split(tables, list(BOND_DIMS), dim=1)
    summed: Tensor = a[:, :, None, None] + b[:, None, :, None] + c[:, None, None, :]
    return summed.view(replicas, BOND_CODES, width)
