"""The first thing to run: a plain GCN against the same GCN with P-reg, on the embedded digits graph."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, dropout

from propreg._preg import preg
from propreg._propagation import Propagation
from propreg.data.digits import digits, digits_splits
from propreg.data.graph import SparseFeatures, Split

Term = Callable[[Tensor], Tensor]
EPOCHS = 150


@dataclass(frozen=True)
class Pair:
    """Test accuracies of one split, from the same initial weights and dropout masks."""

    split: int
    plain: float
    preg: float


class TwoLayerGCN(nn.Module):
    """Kipf and Welling's network: linear, propagate, ReLU, dropout, linear, propagate."""

    def __init__(self, graph: Propagation, features: int, classes: int, hidden: int = 64) -> None:
        super().__init__()
        self.graph = graph
        self.first, self.second = nn.Linear(features, hidden), nn.Linear(hidden, classes)

    def forward(self, x: Tensor) -> Tensor:
        """Logits of every node."""
        h = dropout(self.graph(self.first(x)).relu(), 0.5, self.training)
        return self.graph(self.second(h))


def compare_on_digits(mu: float = 0.5, splits: int = 5) -> Iterator[Pair]:
    """Train both on each of the splits and yield each pair of test accuracies as soon as it is there."""
    graph = digits()
    x = torch.from_numpy(graph.x.to_dense() if isinstance(graph.x, SparseFeatures) else graph.x) / 16
    y, edge_index = torch.from_numpy(graph.y), torch.from_numpy(graph.edge_index)
    convolution = Propagation(edge_index, len(y), norm="sym", add_self_loops=True)
    neighbours = Propagation(edge_index, len(y))
    for number, split in enumerate(digits_splits(graph.y, splits)):
        scores = []
        for strength in (0.0, mu):
            torch.manual_seed(number)
            model = TwoLayerGCN(convolution, x.shape[1], graph.num_classes)
            scores.append(_train(model, x, y, split, partial(_term, strength, neighbours)))
        yield Pair(number, *scores)


def _term(strength: float, graph: Propagation, z: Tensor) -> Tensor:
    return strength * preg(z, graph)


def _train(model: nn.Module, x: Tensor, y: Tensor, split: Split, term: Term) -> float:
    """Train with the loop of section 5 and return the test accuracy at the latest best validation accuracy."""
    train, val, test = (torch.from_numpy(np.flatnonzero(m)) for m in (split.train, split.val, split.test))
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    best, reported = -1.0, 0.0
    for _ in range(EPOCHS):
        model.train()
        optimiser.zero_grad()
        z = model(x)
        torch.autograd.backward(cross_entropy(z[train], y[train]) + term(z))
        optimiser.step()
        model.eval()
        with torch.no_grad():
            right = (model(x).argmax(-1) == y).double()
        if (accuracy := right[val].mean().item()) >= best:
            best, reported = accuracy, right[test].mean().item()
    return reported
