"""A learned μ against the grid: a GCN on the benchmark datasets, one split × 3 seeds, everything else the same.

The grid trains once per strength and seed, and mean validation accuracy picks. ``Term(PReg(), mu="learned")`` trains
once per seed, from a start far below and from one in the middle. Each training runs for 200 epochs and reports the test
accuracy at the epoch of its best validation accuracy. Datasets may run side by side, ``--names pubmed --save
results/benchmarks/learned-mu-h200-pubmed.json``: the table of ``docs/choosing-mu.md`` reads all ``learned-mu-*.json``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

import propreg
from common import Record, parser, settled, show

GRID = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
STARTS = (0.05, 0.5)
NAMES = ("cora", "citeseer", "pubmed", "photo", "computers", "cs", "physics")
SEEDS, EPOCHS, HIDDEN = 3, 200, 64


class Gcn(torch.nn.Module):
    """Two layers; the features, which are not negative, are a row-normalized operator themselves."""

    def __init__(self, features: propreg.Propagation, graph: propreg.Propagation, classes: int) -> None:
        super().__init__()
        self.features, self.graph = features, graph
        self.first = torch.nn.Parameter(torch.nn.init.xavier_uniform_(torch.empty(features.size[0], HIDDEN)))
        self.bias = torch.nn.Parameter(torch.zeros(HIDDEN))
        self.second = torch.nn.Linear(HIDDEN, classes)

    def forward(self) -> Tensor:
        hidden = F.dropout((self.graph(self.features(self.first)) + self.bias).relu(), 0.5, self.training)
        logits: Tensor = self.graph(self.second(hidden))
        return logits


@dataclass(frozen=True)
class Problem:
    """A dataset on a device."""

    features: propreg.Propagation
    graph: propreg.Propagation
    neighbors: propreg.Propagation
    y: Tensor
    masks: tuple[Tensor, Tensor, Tensor]


def problem(name: str, device: str) -> Problem:
    """The first official split."""
    data = propreg.load_dataset(name, features="sparse", split=0)
    size = (int(data.x.shape[1]), int(data.num_nodes))
    graph = propreg.Propagation(data.edge_index, size[1], norm="sym", add_self_loops=True)
    features, neighbors = propreg.Propagation(data.x, size=size), propreg.Propagation(data.edge_index, size[1])
    masks = (data.train_mask.to(device), data.val_mask.to(device), data.test_mask.to(device))
    built = [each.to(device).build() for each in (features, graph, neighbors)]
    return Problem(built[0], built[1], built[2], data.y.to(device), masks)


def train(data: Problem, term: propreg.Term, seed: int) -> tuple[float, float]:
    """Validation and test accuracy at the best epoch by validation; ``term`` learns if it can."""
    torch.manual_seed(seed)
    model = Gcn(data.features, data.graph, int(data.y.max()) + 1).to(data.y.device)
    (train_mask, val_mask, test_mask), y = data.masks, data.y
    decayed = [model.first, model.bias]
    groups: list[dict[str, Any]] = [
        {"params": decayed, "weight_decay": 5e-4},
        {"params": list(model.second.parameters())},
    ]
    optimizer = torch.optim.Adam(groups, lr=0.01)
    best = (-1.0, 0.0)
    for _ in range(EPOCHS):
        z = model.train()()
        loss = F.cross_entropy(z[train_mask], y[train_mask]) + term(z, data.neighbors)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.set_grad_enabled(term.learned):
            z = model.eval()()
        if term.learned:
            term.learn(F.cross_entropy(z[val_mask], y[val_mask]), model.parameters(), z, data.neighbors)
        right = (z.argmax(-1) == y).float()
        val, test = right[val_mask].mean().item(), right[test_mask].mean().item()
        if val > best[0]:
            best = (val, test)
    return best


def row(data: Problem, make: Callable[[], propreg.Term]) -> tuple[float, float, float]:
    """Mean validation and test accuracy in percent, and mean final μ, over the seeds."""
    terms = [make() for _ in range(SEEDS)]
    scores = [train(data, term, seed) for seed, term in enumerate(terms)]
    val, test = (100 * sum(each) / SEEDS for each in zip(*scores, strict=True))
    return val, test, sum(term.mu for term in terms) / SEEDS


def learned(start: float) -> propreg.Term:
    """A term that learns from there."""
    term = propreg.Term(propreg.PReg(validate=False), mu="learned")
    term.mu = start
    return term


def compare(name: str, device: str) -> list[Record]:
    """The plain model, the grid's pick, and the learned strengths."""
    data = problem(name, device)
    grid = {mu: row(data, lambda mu=mu: propreg.Term(propreg.PReg(validate=False), mu)) for mu in GRID}  # type: ignore[misc]
    picked = max(grid, key=lambda mu: (grid[mu][0], -mu))
    rows = {"plain": grid[0.0], f"grid of {len(GRID)}": grid[picked]}
    rows |= {f"learned from {start}": row(data, lambda start=start: learned(start)) for start in STARTS}  # type: ignore[misc]
    return [
        Record(name, device, f"{method}: {what}", value, unit)
        for method, values in rows.items()
        for (what, unit), value in zip((("validation", "%"), ("test", "%"), ("μ", "")), values, strict=True)
    ]


def main() -> None:
    """Train, print, and write the record, after each dataset: the large ones take minutes."""
    options = parser(__doc__.splitlines()[0] if __doc__ else "")
    options.add_argument("--names", nargs="+", default=NAMES, choices=NAMES, help="only these datasets")
    given = settled(options)
    names = ("cora",) if given.quick else tuple(given.names)
    records = []
    for name in names:
        records += compare(name, given.device)
        show(records, given.device, given.json, given.save)


if __name__ == "__main__":
    main()
