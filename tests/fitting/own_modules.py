"""Modules as users write them, each with something that a training must get right, and a graph for them."""

from dataclasses import replace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from communities import communities
from propreg.data.graph import Split
from propreg.data.own.pyg import to_data

K = np.arange(120) // 3 % 10
SPLIT = Split(K < 2, (K >= 2) & (K < 5), K >= 5)
GRAPH = replace(communities(), split=SPLIT)
DATA = to_data(GRAPH)
QUICK: dict[str, Any] = {"mu": [0.5], "seeds": 2, "max_epochs": 12, "patience": 12, "progress": False}


class Base(nn.Module):
    """Two layers that add up each node's neighbors, with dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(8, 6), nn.Linear(6, 3)

    def hidden(self, x: Tensor, edge_index: Tensor) -> Tensor:
        h = self.a(x)
        out: Tensor = h.index_add(0, edge_index[1], h[edge_index[0]]).relu()
        return out

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        out: Tensor = self.b(F.dropout(self.hidden(x, edge_index), 0.4, self.training))
        return out


class Frozen(Base):
    """A random projection that stays as it was drawn, and a number that is no float."""

    def __init__(self) -> None:
        super().__init__()
        self.a.weight.requires_grad_(False)
        self.order = nn.Parameter(torch.randperm(8), requires_grad=False)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return super().forward(x[:, self.order], edge_index)


class Tied(nn.Module):
    """One matrix under two names."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(8, 3), nn.Linear(8, 3)
        self.b.weight = self.a.weight

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        out: Tensor = self.a(x).index_add(0, edge_index[1], self.b(x)[edge_index[0]])
        return out


class Keeps(Base):
    """Keeps an activation."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        self.h = self.hidden(x, edge_index)
        out: Tensor = self.b(self.h)
        return out


class Scaled(Base):
    """Has a buffer that its state dict leaves out, a sparse one, and running statistics."""

    scale: Tensor
    loops: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(8)
        self.register_buffer("scale", torch.rand(8), persistent=False)
        self.register_buffer("loops", torch.eye(120).to_sparse())

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return super().forward(torch.sparse.mm(self.loops, self.norm(x) * self.scale), edge_index)


class Lazy(Base):
    """Learns its width from the first input."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.LazyLinear(6)


class Unregistered(Base):
    """A constant that is no buffer, but drawn by torch."""

    def __init__(self) -> None:
        super().__init__()
        self.constant = torch.rand(8)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return super().forward(x * self.constant, edge_index)


class Unused(Base):
    """A parameter that forward does not use."""

    def __init__(self) -> None:
        super().__init__()
        self.c = nn.Linear(4, 4)


EVERY = [Base, Frozen, Tied, Keeps, Scaled, Lazy, Unregistered, Unused]
