"""``fit`` with a module of one's own against the loop over strengths and seeds that it stands for.

A GCN of PyG with dropout on the embedded digits and on a random graph of Cora's size. The loop trains with Adam, looks
at the validation accuracy after every epoch, and keeps the weights of the best one, as ``fit`` does.
"""

import copy
import statistics
import time
import warnings
from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import GCNConv

import propreg
from common import Record, arguments, show
from propreg.data.graph import Graph
from propreg.data.own.pyg import to_data
from propreg.data.splits import random_split

MUS = (0.0, 0.5)


def cora_like() -> Graph:
    """2,708 nodes, 10,556 directed edges and 1,433 features, of which a node has 18."""
    rng, nodes = np.random.default_rng(0), 2708
    ends = rng.integers(nodes, size=(2, 5278))
    x = np.zeros((nodes, 1433), np.float32)
    x[np.repeat(np.arange(nodes), 18), rng.integers(1433, size=18 * nodes)] = 1 / 18
    y = rng.integers(7, size=nodes)
    split = random_split(y, 20, 30, 0)
    return Graph("cora-like", np.concatenate([ends, ends[::-1]], axis=1), x, y, split=split)


class Net(nn.Module):
    """Two convolutions."""

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.first, self.second = GCNConv(features, 64, cached=True), GCNConv(64, classes, cached=True)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        h = F.dropout(self.first(x, edge_index).relu(), 0.5, self.training)
        z: Tensor = self.second(h, edge_index)
        return z


def loop(data: Graph, seeds: int, epochs: int, device: str) -> None:
    """All trainings, one after another."""
    given = to_data(data).to(device)
    for mu in MUS:
        for seed in range(seeds):
            torch.manual_seed(seed)
            net, regularizer = Net(data.num_features, data.num_classes).to(device), propreg.PReg()
            adam, best, kept = torch.optim.Adam(net.parameters(), lr=0.01, weight_decay=5e-4), -1.0, {}
            for _ in range(epochs):
                net.train()
                z = net(given.x, given.edge_index)
                loss = F.cross_entropy(z[given.train_mask], given.y[given.train_mask])
                loss = loss + mu * regularizer(z, given.edge_index) if mu else loss
                adam.zero_grad()
                torch.autograd.backward(loss)
                adam.step()
                with torch.no_grad():
                    right = net.eval()(given.x, given.edge_index).argmax(-1) == given.y
                accuracy = right[given.val_mask].float().mean().item()
                if accuracy >= best:
                    best, kept = accuracy, copy.deepcopy(net.state_dict())
            net.load_state_dict(kept)


def fitted(data: Graph, seeds: int, epochs: int, device: str) -> None:
    """The same trainings by ``fit``."""
    propreg.fit(
        data,
        lambda: Net(data.num_features, data.num_classes),
        list(MUS),
        seeds=seeds,
        max_epochs=epochs,
        patience=epochs,
        scale="none",
        lr=0.01,
        device=device,
        progress=False,
    )


def compare(data: Graph, seeds: int, epochs: int, device: str, repeats: int) -> list[Record]:
    """Both in turn, and the median of the ratios."""
    ways: tuple[Callable[..., None], ...] = loop, fitted
    for way in ways:
        way(data, 1, 3, device)
    taken: list[tuple[float, ...]] = []
    for _ in range(repeats):
        both = []
        for way in ways:
            start = time.perf_counter()
            way(data, seeds, epochs, device)
            both.append(time.perf_counter() - start)
        taken.append(tuple(both))
    by_hand, by_fit = (statistics.median(each) for each in zip(*taken, strict=True))
    ratio = statistics.median(one / other for one, other in taken)
    runs = len(MUS) * seeds * epochs
    case = f"{data.name}, {len(MUS) * seeds} runs of {epochs} epochs"
    return [
        Record(case, device, "an epoch of a run in fit", 1e3 * by_fit / runs, "ms", "the loop by hand", ratio),
        Record(case, device, "an epoch of a run in the loop", 1e3 * by_hand / runs, "ms"),
    ]


def main() -> None:
    """Measure and print."""
    options = arguments(__doc__.splitlines()[0] if __doc__ else "")
    seeds, epochs, repeats = (2, 20, 3) if options.quick else (5, 100, 5)
    digits = propreg.data.own.read_graph(propreg.load_dataset("digits", split=0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pixels up to 16
        records = [
            each for data in (digits, cora_like()) for each in compare(data, seeds, epochs, options.device, repeats)
        ]
    show(records, options.device, options.json, options.save)


if __name__ == "__main__":
    main()
