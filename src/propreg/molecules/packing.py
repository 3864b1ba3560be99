"""Graphs packed on a device once, and the mini-batches that are cut from them without Python per graph."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from propreg.data.benchmarks.molecules import Molecules
from propreg.data.graph_list import ATOM_DIMS, BOND_DIMS, GraphList, of_molecules

ATOM_ROWS, BOND_CODES = sum(ATOM_DIMS), 5 * 6 * 2


@dataclass(frozen=True)
class Packed:
    """All molecules one after the other, both directions of each bond; or a user's graphs, with edges as listed.

    Attributes:
        atoms: Each atom's nine rows in the one table of atom embeddings, int64 [atoms, 9]; or features, [nodes, F].
        source, target: Ends of each directed bond, numbered within the molecule, int64 [bonds].
        code: Each directed bond's combination of the three bond features, int64 [bonds].
        first_atom, first_bond: Where each molecule starts, int64 [molecules + 1].
        y: Labels [molecules, tasks], 0 where one is missing.
        labeled: 1 where there is a label, else 0, [molecules, tasks].
        atoms_of, bonds_of: Sizes on the host: padding is decided there.
        attributes: Features of edges in the place of codes, [edges, K].
        directed: Whether an edge's reverse may be missing or have other features.
    """

    atoms: Tensor
    source: Tensor
    target: Tensor
    code: Tensor
    first_atom: Tensor
    first_bond: Tensor
    y: Tensor
    labeled: Tensor
    atoms_of: NDArray[np.int64]
    bonds_of: NDArray[np.int64]
    attributes: Tensor | None = None
    directed: bool = False

    @staticmethod
    def of(data: Molecules | GraphList, device: torch.device, dtype: torch.dtype) -> "Packed":
        """Those of a dataset, or a user's."""

        def to(array: NDArray[Any]) -> Tensor:
            there = torch.from_numpy(np.ascontiguousarray(array)).to(device)
            return there.to(dtype) if there.is_floating_point() else there

        graphs = of_molecules(data) if isinstance(data, Molecules) else data
        known, (source, target), kinds = ~np.isnan(graphs.y), graphs.edge_index, graphs.edge_attr
        if not source.size:  # padding reads a row: one that no graph has
            source = target = np.zeros(1, np.int64)
            kinds = np.zeros((1, kinds.shape[1]), kinds.dtype)
        return Packed(
            atoms=to(graphs.x + _ATOM_OFFSETS if graphs.coded else graphs.x),
            source=to(source),
            target=to(target),
            code=to(_codes(kinds) if graphs.coded else np.zeros(0, np.int64)),
            first_atom=to(np.concatenate([[0], np.cumsum(graphs.num_nodes)])),
            first_bond=to(np.concatenate([[0], np.cumsum(graphs.num_edges)])),
            y=to(np.where(known, graphs.y, 0)),
            labeled=torch.from_numpy(known).to(device, dtype),
            atoms_of=graphs.num_nodes,
            bonds_of=graphs.num_edges,
            attributes=None if graphs.coded else to(kinds),
            directed=not isinstance(data, Molecules),
        )


_ATOM_OFFSETS = np.concatenate([[0], np.cumsum(ATOM_DIMS)[:-1]])


def _codes(kinds: NDArray[Any]) -> NDArray[np.int64]:
    """The combination of each bond's three features."""
    a, b, c = kinds.T
    return np.asarray((a * BOND_DIMS[1] + b) * BOND_DIMS[2] + c, np.int64)


@dataclass(frozen=True)
class Links:
    """Directed links between atoms, sorted by target; what pads a row has weight 0 and comes last.

    Attributes:
        source, target: int64 [S, L].
        code: Which embedding a link adds to its message, int64 [S, L].
        weight: [S, L]; ``weight_back`` is that of the link in the other direction.
        first: Where each target's links start, int32 [S, N + 1].
        by_code: The links sorted by code, int32 [S, L], and where each code's start, int32 [S, codes + 1].
        back: The links turned around, with the weights of the originals, for the gradient of a directed graph; None
            where each link's reverse is there and has its code.
    """

    source: Tensor
    target: Tensor
    code: Tensor
    weight: Tensor
    weight_back: Tensor
    first: Tensor
    by_code: Tensor
    code_first: Tensor
    back: "Links | None" = None

    @staticmethod
    def of(
        source: Tensor, target: Tensor, code: Tensor, real: Tensor, factors: tuple[Tensor, Tensor], codes: int,
        directed: bool = False,
    ) -> "Links":  # fmt: skip
        """Sort links; a link's weight is the product of its source's and its target's factor, [S, N] each."""
        turned = Links.of(target, source, code, real, factors[::-1], codes) if directed else None
        nodes = factors[0].shape[1]
        order = torch.where(real, target, nodes).sort(dim=1, stable=True).indices
        source, target, code, real = (t.gather(1, order) for t in (source, target, code, real))
        there = real.to(factors[0].dtype)
        weight, back = (a.gather(1, source) * b.gather(1, target) * there for a, b in (factors, factors[::-1]))
        sorted_code = torch.where(real, code, codes).sort(dim=1, stable=True)
        return Links(
            source=source,
            target=target,
            code=code,
            weight=weight,
            weight_back=back,
            first=_pointers(torch.where(real, target, nodes), nodes),
            by_code=sorted_code.indices.int(),
            code_first=_pointers(sorted_code.values, codes),
            back=None if turned is None else replace(turned, weight_back=turned.weight),
        )


def _pointers(ordered: Tensor, count: int) -> Tensor:
    wanted = torch.arange(count + 1, device=ordered.device).expand(len(ordered), count + 1).contiguous()
    return torch.searchsorted(ordered, wanted).int()


@dataclass(frozen=True)
class Batch:
    """One mini-batch per seed, padded to the same numbers of atoms and bonds; padding comes last.

    Attributes:
        atoms: Rows in the table of atom embeddings, int64 [S, N, 9]; or features, [S, N, F].
        bonds: Both directions of each bond, weight 1.
        averaged: The same with weight 1/degree of the target: a mean over neighbors.
        looped: With a link from each atom to itself, its code the last, weights 1/√(d_i d_j), d = degree + 1.
        count: Real atoms of each seed, int32 [S].
        molecules: Real molecules of each seed, int32 [S].
        membership: 1 where an atom belongs to a molecule, [S, B, N].
        sizes: Atoms of each molecule, at least 1, [S, B].
        real: 1 for an atom, 0 for padding, [S, N].
        degree: Bonds of each atom, [S, N].
        y, labeled: As in :class:`Packed`, [S, B, tasks].
        attributes: Features of edges by code, [S, codes, K], where each edge has a code of its own; else None.
    """

    atoms: Tensor
    bonds: Links
    averaged: Links
    looped: Links
    count: Tensor
    molecules: Tensor
    membership: Tensor
    sizes: Tensor
    real: Tensor
    degree: Tensor
    y: Tensor
    labeled: Tensor
    attributes: Tensor | None = None


def assemble(packed: Packed, molecules: Tensor, atoms: int, bonds: int) -> Batch:
    """Cut a mini-batch per seed out of the packed molecules; every shape depends on the arguments' shapes alone.

    Args:
        packed: The dataset.
        molecules: Their numbers, int64 [S, B], −1 where a row is shorter (at its end).
        atoms: What atoms are padded to.
        bonds: What directed bonds are padded to.
    """
    chosen, is_molecule = molecules.clamp(min=0), (molecules >= 0).long()
    atom_graph, atom_at, real = _ragged(packed.first_atom, chosen, is_molecule, atoms)
    bond_graph, bond_at, real_bond = _ragged(packed.first_bond, chosen, is_molecule, bonds)
    counts = (packed.first_atom[chosen + 1] - packed.first_atom[chosen]) * is_molecule
    offset = (counts.cumsum(1) - counts).gather(1, bond_graph)
    source = (packed.source[bond_at] + offset) * real_bond
    target = (packed.target[bond_at] + offset) * real_bond
    attributes, codes = None, BOND_CODES
    if packed.attributes is None:
        code = packed.code[bond_at]
    else:
        attributes, codes = packed.attributes[bond_at], bonds
        code = torch.arange(bonds, device=target.device).expand(len(chosen), bonds)
    dtype = packed.y.dtype
    nothing = torch.zeros(len(chosen), atoms, dtype=dtype, device=target.device)
    degree = nothing.scatter_add(1, target, real_bond.to(dtype))
    ones, inverse, root = torch.ones_like(degree), 1 / degree.clamp(min=1), (degree + 1).rsqrt()
    loops = torch.arange(atoms, device=target.device).expand(len(chosen), atoms)
    looped = [torch.cat(pair, dim=1) for pair in (
        (source, loops), (target, loops), (code, torch.full_like(loops, codes)), (real_bond, real)
    )]  # fmt: skip
    graphs = torch.arange(chosen.shape[1], device=target.device).view(1, -1, 1)
    return Batch(
        atoms=packed.atoms[atom_at],
        bonds=Links.of(source, target, code, real_bond, (ones, ones), codes, packed.directed),
        averaged=Links.of(source, target, code, real_bond, (ones, inverse), codes, packed.directed),
        looped=Links.of(*looped, (root, root), codes + 1, packed.directed),  # type: ignore[call-arg, arg-type]
        count=counts.sum(1).int(),
        molecules=is_molecule.sum(1).int(),
        membership=((atom_graph.unsqueeze(1) == graphs) & real.unsqueeze(1)).to(dtype),
        sizes=counts.clamp(min=1).to(dtype),
        real=real.to(dtype),
        degree=degree,
        y=packed.y[chosen],
        labeled=packed.labeled[chosen] * is_molecule.unsqueeze(-1),
        attributes=attributes,
    )


def _ragged(first: Tensor, chosen: Tensor, is_molecule: Tensor, size: int) -> tuple[Tensor, Tensor, Tensor]:
    """For each of ``size`` places: the graph it belongs to, its row in the packed array, and whether it is real."""
    counts = (first[chosen + 1] - first[chosen]) * is_molecule
    ends = counts.cumsum(1)
    place = torch.arange(size, device=first.device).expand(len(chosen), size).contiguous()
    graph = torch.searchsorted(ends, place, right=True)
    real = graph < chosen.shape[1]
    graph = graph.clamp(max=chosen.shape[1] - 1)
    row = first[chosen].gather(1, graph) + place - (ends - counts).gather(1, graph)
    return graph, torch.where(real, row, 0), real
