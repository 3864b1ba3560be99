"""The time that ``fit`` takes outside of the epochs, in parts, against three epochs of a plain PyG GCN of width 64.

A random graph: on a CPU 200 k nodes, 4 M directed edges and 128 dense features; on a GPU 2.4 M nodes, 124 M directed
edges and 100 features. A small ``fit`` runs first, so that imports and the compilation of kernels do not count.
"""

import functools
import importlib
import statistics
import threading
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from common import Record, arguments, show
from propreg import fit
from propreg.data.graph import Graph
from propreg.data.own.pyg import to_data

TRAINING = "training, apart from its epochs"
# (part, module, and in it the function or method that belongs to the part); a call inside of another counts apart.
PARTS = (
    ("load", "propreg.fitting.inputs", "read_graph"),
    ("validate", "propreg.data.own.pyg", "checked_graph"),
    ("validate", "propreg.engine.tasks.node", "check_graph"),
    ("warn and describe", "propreg.fitting.inputs", "one_way"),
    ("warn and describe", "propreg.fitting.inputs", "unused_classes"),
    ("warn and describe", "propreg.fitting.job", "facts_of"),
    ("splits", "propreg.fitting.fit", "named_splits"),
    ("scale", "propreg.fitting.fit", "scaling_of"),
    ("scale", "propreg.data.scaling", "Scaling.__call__"),
    ("digest", "propreg.engine.tasks.node", "graph_digest"),
    ("problem", "propreg.engine.tasks.node", "Problem.__init__"),
    ("network", "propreg.engine.tasks.node", "Problem.network"),
    ("regularizer", "propreg.engine.tasks.node", "Problem.regularizer"),
    ("initial weights", "propreg.engine.models.network", "Network.initial"),
    (TRAINING, "propreg.fitting.fit", "_train"),
    ("epochs", "propreg.engine.training.epoch", "Epoch.__call__"),
    ("selection", "propreg.fitting.job", "choose"),
    ("export", "propreg.fitting.job", "as_module"),
    ("predictions", "propreg.fitting.job", "_predicted"),
)
EPOCHS = 3


class Stopwatch:
    """Seconds by part, each call less the calls inside of it, and when epochs ran."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.epochs: list[tuple[float, float]] = []
        self._inside = threading.local()

    def timed(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, its time taken."""

        @functools.wraps(function)
        def call(*args: object, **kwargs: object) -> object:
            stack = self._inside.__dict__.setdefault("stack", [])
            stack.append(0.0)
            start = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                _wait()
                end = time.perf_counter()
                self.seconds[part] += end - start - stack.pop()
                if stack:
                    stack[-1] += end - start
                if part == "epochs":
                    self.epochs.append((start, end))

        return call

    def in_epochs(self) -> float:
        """The time in which at least one epoch ran: groups run next to each other."""
        total, until = 0.0, 0.0
        for start, end in sorted(self.epochs):
            total += max(end - max(start, until), 0.0)
            until = max(until, end)
        return total


@contextmanager
def watched() -> Iterator[Stopwatch]:
    """All parts with a stopwatch around them."""
    watch, before = Stopwatch(), []
    for part, module, name in PARTS:
        owner: Any = importlib.import_module(module)
        *path, last = name.split(".")
        for step in path:
            owner = getattr(owner, step)
        before.append((owner, last, getattr(owner, last)))
        setattr(owner, last, watch.timed(part, getattr(owner, last)))
    try:
        yield watch
    finally:
        for owner, last, function in reversed(before):
            setattr(owner, last, function)


def graph(nodes: int, edges: int, features: int, classes: int) -> Graph:
    """Undirected edges between random nodes, both directions listed, and random dense features."""
    rng = np.random.default_rng(0)
    ends = rng.integers(nodes, size=(2, edges // 2))
    ends = ends[:, ends[0] != ends[1]]
    x = rng.standard_normal((nodes, features), dtype=np.float32)
    return Graph("random", np.concatenate([ends, ends[::-1]], axis=1), x, rng.integers(classes, size=nodes))


def pyg_epochs(data: Graph, device: str) -> float:
    """Seconds of three epochs of a plain GCN: forward, backward, a step of Adam."""
    from torch_geometric.nn import GCNConv

    x, y = torch.from_numpy(data.x).to(device), torch.from_numpy(data.y).to(device)
    edge_index, train = torch.from_numpy(data.edge_index).to(device), torch.arange(len(y), device=device) % 10 == 0

    class Gcn(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = GCNConv(data.num_features, 64, cached=True)
            self.second = GCNConv(64, data.num_classes, cached=True)

        def forward(self) -> Tensor:
            h = nn.functional.dropout(self.first(x, edge_index).relu(), 0.5, self.training)
            return self.second(h, edge_index)  # type: ignore[no-any-return]

    net = Gcn().to(device)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01, weight_decay=5e-4)

    def epoch() -> None:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net()[train], y[train])
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    epoch()  # the normalization is cached in it
    _wait()
    start = time.perf_counter()
    for _ in range(EPOCHS):
        epoch()
    _wait()
    return time.perf_counter() - start


def fitted(data: Graph, device: str, epochs: int) -> tuple[float, Stopwatch]:
    """The wall time of ``fit`` with two strengths, one split and one seed, and where it went."""
    given = to_data(data)
    with watched() as watch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        fit(given, mu=[0.5], splits=1, seeds=1, max_epochs=epochs, device=device, progress=False)
        _wait()
        return time.perf_counter() - start, watch


def compare(data: Graph, device: str) -> list[Record]:
    """The parts, their sum, and its ratio to three epochs in PyG, measured before and after."""
    before = pyg_epochs(data, device)
    total, watch = fitted(data, device, epochs=5)
    pyg = statistics.mean([before, pyg_epochs(data, device)])
    outside = total - watch.in_epochs()
    size = f"{data.num_nodes / 1e3:,.0f} k nodes, {data.edge_index.shape[1] / 1e6:.3g} M edges"
    parts = {part: seconds for part, seconds in watch.seconds.items() if part != "epochs"}
    parts[TRAINING] -= watch.in_epochs()  # which threads of its own run on a CPU, while it waits
    named = [Record(size, device, part, seconds, "s") for part, seconds in sorted(parts.items(), key=lambda p: -p[1])]
    lengths = [end - start for start, end in watch.epochs]
    first = max(lengths) - statistics.median(lengths)
    return [
        *named,
        Record(size, device, "the slowest epoch over the median one, which counts as an epoch", first, "s"),
        Record(size, device, "outside of the epochs", outside, "s", f"{EPOCHS} epochs of PyG's GCN", outside / pyg),
        Record(size, device, f"{EPOCHS} epochs of PyG's GCN", pyg, "s"),
    ]


def _wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def main() -> None:
    """Measure and print."""
    options = arguments(__doc__.splitlines()[0] if __doc__ else "")
    size = (200_000, 4_000_000, 128, 40) if options.device == "cpu" else (2_449_029, 123_718_280, 100, 47)
    fitted(graph(5_000, 250_000, size[2], size[3]), options.device, epochs=8)
    if options.quick:
        size = (size[0] // 10, size[1] // 10, *size[2:])
    show(compare(graph(*size), options.device), options.device, options.json, options.save)


if __name__ == "__main__":
    main()
