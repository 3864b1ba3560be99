"""OGB's molecule networks as plain modules, one molecule batch at a time: what the engine's are compared with."""

import numpy as np
import torch
from torch import Tensor, nn

from propreg.data.benchmarks.molecules import Molecules
from propreg.data.graph_list import ATOM_DIMS, BOND_DIMS, GraphList
from propreg.engine.models.molecules import MoleculeModel


def together(data: Molecules | GraphList, chosen: list[int]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Atom features, edges, their features and each atom's graph, as PyG's loader would batch them."""
    if isinstance(data, GraphList):
        return _together(data, chosen)
    atoms, edges, features, graph, start = [], [], [], [], 0
    for place, i in enumerate(chosen):
        ends, kinds = data.edges(i)
        atoms.append(torch.from_numpy(data.atoms(i)))
        edges.append(torch.from_numpy(ends) + start)
        features.append(torch.from_numpy(kinds))
        graph.append(torch.full((len(atoms[-1]),), place))
        start += len(atoms[-1])
    return torch.cat(atoms), torch.cat(edges, 1), torch.cat(features), torch.cat(graph)


class Encoder(nn.Module):
    """The sum of one embedding per feature."""

    def __init__(self, dims: tuple[int, ...], width: int) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(dim, width) for dim in dims)

    def forward(self, features: Tensor) -> Tensor:
        found: Tensor = sum(table(features[:, i]) for i, table in enumerate(self.tables))
        return found


def mlp(width: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(width, 2 * width), nn.BatchNorm1d(2 * width), nn.ReLU(), nn.Linear(2 * width, width))


def _together(data: GraphList, chosen: list[int]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    nodes, edges = (np.concatenate([[0], np.cumsum(n)]) for n in (data.num_nodes, data.num_edges))
    x = [data.x[nodes[i] : nodes[i + 1]] for i in chosen]
    starts = np.cumsum([0, *map(len, x)])
    ends = [data.edge_index[:, edges[i] : edges[i + 1]] + start for i, start in zip(chosen, starts, strict=False)]
    kinds = [data.edge_attr[edges[i] : edges[i + 1]] for i in chosen]
    found = [np.concatenate(x), np.concatenate(ends, 1), np.concatenate(kinds)]
    batched = [torch.from_numpy(each) for each in found]
    atoms, edge_index, features = (t if t.dtype == torch.int64 else t.double() for t in batched)
    graph = torch.from_numpy(np.repeat(np.arange(len(chosen)), data.num_nodes[chosen]))
    return atoms, edge_index, features, graph


def encoder(dims: tuple[int, ...], columns: int | None, width: int) -> nn.Module:
    """OGB's encoder of integers, or a linear one of so many columns."""
    return Encoder(dims, width) if columns is None else nn.Linear(columns, width)


class Gin(nn.Module):
    def __init__(self, width: int, columns: int | None = None) -> None:
        super().__init__()
        self.bonds, self.mlp, self.epsilon = (
            encoder(BOND_DIMS, columns, width),
            mlp(width),
            nn.Parameter(torch.zeros(())),
        )

    def forward(self, h: Tensor, edges: Tensor, features: Tensor) -> Tensor:
        around = torch.zeros_like(h).index_add(0, edges[1], (h[edges[0]] + self.bonds(features)).relu())
        out: Tensor = self.mlp((1 + self.epsilon) * h + around)
        return out


def propagated(h: Tensor, bonds: Tensor, root: Tensor, edges: Tensor) -> Tensor:
    degree = torch.bincount(edges[1], minlength=len(h)).to(h.dtype) + 1
    norm = (degree[edges[0]] * degree[edges[1]]).rsqrt()
    around = torch.zeros_like(h).index_add(0, edges[1], norm[:, None] * (h[edges[0]] + bonds).relu())
    return around + (h + root).relu() / degree[:, None]


class Gcn(nn.Module):
    def __init__(self, width: int, columns: int | None = None) -> None:
        super().__init__()
        self.bonds, self.linear = encoder(BOND_DIMS, columns, width), nn.Linear(width, width)
        self.root = nn.Embedding(1, width)

    def forward(self, h: Tensor, edges: Tensor, features: Tensor) -> Tensor:
        return propagated(self.linear(h), self.bonds(features), self.root.weight, edges)


class Plain(nn.Module):
    """Node embeddings of the last layer and the prediction; dropout is left out, since masks are the engine's own."""

    def __init__(self, model: MoleculeModel, tasks: int, columns: tuple[int | None, int | None] = (None, None)) -> None:
        super().__init__()
        w, self.model = model.hidden, model
        self.atoms, self.head = encoder(ATOM_DIMS, columns[0], w), nn.Linear(w, tasks)
        kind = Gin if model.name == "mol-gin" else Gcn
        self.convs = nn.ModuleList(kind(w, columns[1]) for _ in range(model.layers))
        self.norms = nn.ModuleList(nn.BatchNorm1d(w) for _ in range(model.layers))
        self.virtual = nn.Parameter(torch.zeros(w)) if model.virtual_node else None
        inner = model.layers - 1 if model.virtual_node else 0
        self.virtuals = nn.ModuleList(nn.Sequential(mlp(w), nn.BatchNorm1d(w), nn.ReLU()) for _ in range(inner))

    def forward(self, atoms: Tensor, edges: Tensor, features: Tensor, graph: Tensor) -> tuple[Tensor, Tensor]:
        h, graphs = self.atoms(atoms), int(graph.max()) + 1
        virtual = None if self.virtual is None else self.virtual.expand(graphs, -1)
        for i, (conv, norm) in enumerate(zip(self.convs, self.norms, strict=True)):
            if virtual is not None:
                h = h + virtual[graph]
            before, h = h, norm(conv(h, edges, features))
            if i < self.model.layers - 1:
                h = h.relu()
                if virtual is not None:
                    pooled = torch.zeros(graphs, h.shape[1], dtype=h.dtype).index_add(0, graph, before)
                    virtual = self.virtuals[i](pooled + virtual)
        sums = torch.zeros(graphs, h.shape[1], dtype=h.dtype).index_add(0, graph, h)
        return h, self.head(sums / torch.bincount(graph).unsqueeze(1))


def _there(t: Tensor | None) -> Tensor:
    assert t is not None
    return t


def named(plain: Plain) -> dict[str, Tensor]:
    """The plain module's tensors under the engine's names and in its shapes, without the replica axis."""

    def encoded(name: str, of: nn.Module) -> dict[str, Tensor]:
        if isinstance(of, nn.Linear):
            return {name: of.weight.t(), f"{name}.bias": of.bias}
        return {name: torch.cat([table.weight for table in of.tables])}  # type: ignore[union-attr]

    def linear(name: str, layer: nn.Linear) -> dict[str, Tensor]:
        return {f"{name}.weight": layer.weight.t(), f"{name}.bias": layer.bias}

    def norm(name: str, layer: nn.BatchNorm1d) -> dict[str, Tensor]:
        return {
            f"{name}.scale": layer.weight,
            f"{name}.shift": layer.bias,
            f"{name}.mean": _there(layer.running_mean),
            f"{name}.variance": _there(layer.running_var),
        }

    def two_layers(name: str, layers: nn.Sequential) -> dict[str, Tensor]:
        first, norm1, _, second = layers
        return linear(f"{name}.first", first) | norm(f"{name}.norm1", norm1) | linear(f"{name}.second", second)  # type: ignore[arg-type]

    found = encoded("atoms", plain.atoms) | linear("head", plain.head)
    for i, (conv, normed) in enumerate(zip(plain.convs, plain.norms, strict=True)):
        found |= encoded(f"conv{i}.bonds", conv.bonds) | norm(f"norm{i}", normed)  # type: ignore[arg-type]
        if isinstance(conv, Gin):
            found |= {f"conv{i}.epsilon": conv.epsilon} | two_layers(f"conv{i}", conv.mlp)
        elif isinstance(conv, Gcn):
            found |= {f"conv{i}.root": conv.root.weight[0]} | linear(f"conv{i}.linear", conv.linear)
    if plain.virtual is not None:
        found["virtual"] = plain.virtual
    for i, layers in enumerate(plain.virtuals):
        found |= two_layers(f"virtual{i}", layers[0]) | norm(f"virtual{i}.norm2", layers[1])  # type: ignore[index]
    return found
