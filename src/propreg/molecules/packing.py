"""Graphs packed on a device once, and the mini-batches that are cut from them without Python per graph."""

from dataclasses import dataclass, replace
from functools import cached_property
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
    def of(ends: "Ends", nodes: int, codes: int, dtype: torch.dtype, directed: bool) -> "Links":
        """Sort links between so many nodes; their weight is 1."""
        source, target, code, real = ends
        turned = Links.of((target, source, code, real), nodes, codes, dtype, False) if directed else None
        order = torch.where(real, target, nodes).sort(dim=1, stable=True).indices
        source, target, code, real = (t.gather(1, order) for t in ends)
        sorted_code = torch.where(real, code, codes).sort(dim=1, stable=True)
        there = real.to(dtype)
        return Links(
            source=source,
            target=target,
            code=code,
            weight=there,
            weight_back=there,
            first=_pointers(torch.where(real, target, nodes), nodes),
            by_code=sorted_code.indices.int(),
            code_first=_pointers(sorted_code.values, codes),
            back=turned,
        )

    def weighted(self, factors: tuple[Tensor, Tensor]) -> "Links":
        """With weights: the product of a link's source's and its target's factor, [S, N] each."""
        weight, back = (
            a.gather(1, self.source) * b.gather(1, self.target) * self.weight for a, b in (factors, factors[::-1])
        )
        turned = self.back.weighted(factors[::-1]) if self.back else None
        return replace(
            self, weight=weight, weight_back=back, back=turned and replace(turned, weight_back=turned.weight)
        )


Ends = tuple[Tensor, Tensor, Tensor, Tensor]
"""Source, target and code of each link, int64 [S, L], and whether it is one or padding."""


def _pointers(ordered: Tensor, count: int) -> Tensor:
    wanted = torch.arange(count + 1, device=ordered.device).expand(len(ordered), count + 1).contiguous()
    return torch.searchsorted(ordered, wanted).int()


@dataclass(frozen=True)
class Batch:
    """One mini-batch per seed, padded to the same numbers of atoms and bonds; padding comes last.

    Attributes:
        atoms: Rows in the table of atom embeddings, int64 [S, N, 9]; or features, [S, N, F].
        ends: Both directions of each bond, as they are listed.
        codes: How many codes bonds have.
        directed: As in :class:`Packed`.
        count: Real atoms of each seed, int32 [S].
        molecules: Real molecules of each seed, int32 [S].
        membership: 1 where an atom belongs to a molecule, [S, B, N].
        sizes: Atoms of each molecule, at least 1, [S, B].
        real: 1 for an atom, 0 for padding, [S, N].
        y, labeled: As in :class:`Packed`, [S, B, tasks].
        attributes: Features of edges by code, [S, codes, K], where each edge has a code of its own; else None.
    """

    atoms: Tensor
    ends: Ends
    codes: int
    directed: bool
    count: Tensor
    molecules: Tensor
    membership: Tensor
    sizes: Tensor
    real: Tensor
    y: Tensor
    labeled: Tensor
    attributes: Tensor | None = None

    # Sorting takes more kernels than a layer of the network, so links are made when a network or P-reg reads them.

    @cached_property
    def degree(self) -> Tensor:
        """Bonds of each atom, [S, N]."""
        _, target, _, real = self.ends
        return torch.zeros_like(self.real).scatter_add(1, target, real.to(self.real.dtype))

    @cached_property
    def bonds(self) -> Links:
        """Both directions of each bond, weight 1."""
        return Links.of(self.ends, self.real.shape[1], self.codes, self.real.dtype, self.directed)

    @cached_property
    def averaged(self) -> Links:
        """The same with weight 1/degree of the target: a mean over neighbors."""
        return self.bonds.weighted((torch.ones_like(self.degree), 1 / self.degree.clamp(min=1)))

    @cached_property
    def looped(self) -> Links:
        """With a link from each atom to itself, its code the last, weights 1/√(d_i d_j), d = degree + 1."""
        seeds, atoms = self.real.shape
        loops = torch.arange(atoms, device=self.real.device).expand(seeds, atoms)
        added = loops, loops, torch.full_like(loops, self.codes), self.real > 0
        source, target, code, real = (torch.cat(pair, dim=1) for pair in zip(self.ends, added, strict=True))
        root = (self.degree + 1).rsqrt()
        links = Links.of((source, target, code, real), atoms, self.codes + 1, self.real.dtype, self.directed)
        return links.weighted((root, root))


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
    graphs = torch.arange(chosen.shape[1], device=target.device).view(1, -1, 1)
    return Batch(
        atoms=packed.atoms[atom_at],
        ends=(source, target, code, real_bond),
        codes=codes,
        directed=packed.directed,
        count=counts.sum(1).int(),
        molecules=is_molecule.sum(1).int(),
        membership=((atom_graph.unsqueeze(1) == graphs) & real.unsqueeze(1)).to(dtype),
        sizes=counts.clamp(min=1).to(dtype),
        real=real.to(dtype),
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
