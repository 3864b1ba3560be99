"""Large graphs: sampling, mini-batch steps with P-reg over without, and full batches of up to 124 M directed edges.

Every graph is drawn anew (``propreg.data.synthetic``). PyG's ``NeighborLoader`` is compared where pyg-lib is installed.
Records are printed and saved as they come; a part that fails loses no other, and none starts later than ``LATEST``.
"""

import contextlib
import importlib.util
import itertools
import multiprocessing
import statistics
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.nn import SAGEConv
from torch_geometric.utils import k_hop_subgraph

from common import Record, arguments, seconds, seconds_per_epoch, show, times, write
from engine import GCN, engine_epoch
from propreg import Propagation, fit, load_graph, preg
from propreg.data.csr import InEdges
from propreg.data.graph import Graph
from propreg.data.own.pyg import graph_from_data
from propreg.data.own.stored import write_stored
from propreg.data.synthetic import random_graph
from propreg.engine import Method, Problem
from propreg.fitting import batching
from propreg.scale import Loader, MiniBatchPReg
from propreg.scale.numpy_sampler import NumpySampler
from propreg.scale.randomness import numpy_generator, torch_generator
from propreg.scale.torch_sampler import TorchSampler, in_edges
from propreg.scale.trainer import COST as FIT_COST
from propreg.scale.trainer import MiniBatches

FANOUTS = ([10, 10], [15, 10, 5])
SEEDS = 1024
COST = 1.25
LATEST = 120.0
"""Seconds after which no part is started on a GPU."""
FAILED: list[str] = []


def size_of(edges: int) -> str:
    """Edges in words."""
    return f"{edges / 1e6:.3g} M edges"


@contextlib.contextmanager
def guarded(part: str) -> Iterator[None]:
    """Report what a part raises, and go on."""
    try:
        yield
    except Exception:
        traceback.print_exc()
        FAILED.append(part)


def sampler(device: str, nodes: int, edges: int) -> Iterator[Record]:
    """Time of a sample, against ``k_hop_subgraph`` of as many hops; exact hops too."""
    index = random_graph(nodes, edges, 1, device=device).edge_index
    case, exact = f"sample, {size_of(edges)}", {}
    for hops in (1, 2, 3):
        seeds = torch.randperm(nodes, device=device)[:SEEDS]
        exact[hops] = seconds(lambda h=hops, s=seeds: k_hop_subgraph(s, h, index, True, nodes), device, 3)  # type: ignore[misc]
        yield Record(case, device, f"k_hop_subgraph, {hops} hops", 1e3 * exact[hops], "ms")
    for fanouts, replace in [([-1], False), ([-1, -1], False), *itertools.product(FANOUTS, (True, False))]:
        draw = drawing(index, nodes, fanouts, replace)
        how = " with replacement" if replace else ""
        for count in (SEEDS,) if device == "cpu" or fanouts[0] < 0 else (SEEDS, 8 * SEEDS):
            some = [torch.randperm(nodes, device=device)[:count] for _ in range(8)]
            turn = itertools.cycle(some)
            took = seconds(lambda d=draw, t=turn: d(next(t)), device)  # type: ignore[misc]
            metric = f"{fanouts}{how}, {count} seeds"
            against = f"k_hop_subgraph, {len(fanouts)} hops" if count == SEEDS else None
            ratio = exact[len(fanouts)] / took if against else None
            yield Record(case, device, metric, 1e3 * took, "ms", against, ratio)
            if device == "cuda":
                yield Record(case, device, metric, count / took / 1e6, "M seeds/s")
    if importlib.util.find_spec("pyg_lib") and device == "cpu":
        yield from neighbor_loader(index, nodes, case)


def drawing(index: Tensor, nodes: int, fanouts: list[int], replace: bool) -> Callable[[Tensor], object]:
    """The sampler of the device."""
    if index.is_cuda:
        start, source, _ = in_edges(index, nodes, None)
        on_gpu, generator = TorchSampler(start, source, fanouts, replace=replace), torch_generator([0], index.device)
        return lambda seeds: on_gpu(seeds, generator)
    on_cpu, rng = NumpySampler(InEdges.of(index.numpy(), nodes), fanouts, replace=replace), numpy_generator([0])
    return lambda seeds: on_cpu(seeds, rng)


def neighbor_loader(index: Tensor, nodes: int, case: str) -> list[Record]:
    """The same through both loaders, without features."""
    from torch_geometric.data import Data
    from torch_geometric.loader import NeighborLoader

    data, records = Data(edge_index=index, num_nodes=nodes), []
    for fanouts in FANOUTS:
        took = []
        for loader in (Loader(data, fanouts, batch_size=SEEDS), NeighborLoader(data, fanouts, batch_size=SEEDS)):
            batches = iter(loader)
            took.append(seconds(lambda b=batches: next(b), "cpu", 30))  # type: ignore[misc]
        metric = f"Loader {fanouts}, {SEEDS} seeds"
        records.append(Record(case, "cpu", metric, 1e3 * took[0], "ms", "NeighborLoader", took[1] / took[0]))
    return records


class Sage(torch.nn.Module):
    """Two layers of width 64."""

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.first, self.second = SAGEConv(features, 64), SAGEConv(64, classes)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        h = F.dropout(self.first(x, edge_index).relu(), 0.5, self.training)
        return self.second(h, edge_index)  # type: ignore[no-any-return]


def step(device: str, nodes: int, degree: int, rounds: int) -> list[Record]:
    """Sampling and a training step, with P-reg over without; the two alternate and the median ratio counts."""
    data = random_graph(nodes, nodes * degree, 100, 40, device=device)
    regularizer, steps = MiniBatchPReg(cost=COST), {}
    for term in (None, regularizer):
        loader = Loader(data, [10, 10], batch_size=SEEDS, preg=term)
        steps[term] = training(loader, Sage(100, 40).to(device), term)
    times: dict[MiniBatchPReg | None, list[float]] = {None: [], regularizer: []}
    for i in range(rounds):
        for term in (None, regularizer) if i % 2 else (regularizer, None):
            times[term].append(seconds_per_epoch(steps[term], device, 5, warm=1 if i else 5))
    ratio = statistics.median(b / a for a, b in zip(*times.values(), strict=True))
    case = f"step, mean degree {degree}, {size_of(nodes * degree)}"
    plain, with_term = (statistics.median(each) for each in times.values())
    return [
        Record(case, device, "without P-reg", 1e3 * plain, "ms"),
        Record(case, device, f"with P-reg at cost={COST}", 1e3 * with_term, "ms", "without", ratio),
        Record(case, device, "seeds of P-reg", loader.preg_seeds, f"beside {SEEDS}"),
    ]


def training(loader: Loader, model: Sage, term: MiniBatchPReg | None) -> Callable[[], None]:
    """One batch and one step of Adam."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

    def endless() -> Iterator[object]:
        while True:
            yield from loader

    batches = endless()

    def run() -> None:
        batch = next(batches)
        z = model(batch.x, batch.edge_index)  # type: ignore[attr-defined]
        size = batch.batch_size  # type: ignore[attr-defined]
        loss = F.cross_entropy(z[:size], batch.y[:size])  # type: ignore[attr-defined]
        if term is not None:
            loss = loss + 0.2 * term(z, batch)
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()

    return run


def full_batch(device: str, nodes: int, edges: int, rounds: int) -> Iterator[Record]:
    """The engine's GCN without and with P-reg, and one run at a time with torch's CSR product."""
    case = f"full batch, {size_of(edges)}, {nodes / 1e6:.3g} M nodes"
    start, one = time.perf_counter(), None
    data = random_graph(nodes, edges, 100, 47, homophily=0.8, device=device)
    waited(device)
    yield Record(case, device, "to draw the graph", time.perf_counter() - start, "s")
    with guarded(f"{case}: plain torch"):
        alone = serial(data.x, data.edge_index, data.y, data.train_mask)
        one = seconds_per_epoch(alone, device, rounds, warm=2)
        del alone
        yield Record(case, device, "GCN + P-reg in plain torch, per epoch", 1e3 * one, "ms")
    graph = graph_from_data(data.to("cpu"))
    del data
    free(device)
    start = time.perf_counter()
    made = problem(graph, device)
    epochs = {name: engine_epoch(made, GCN, method, 1) for name, method in METHODS.items()}
    epochs["plain"]()
    waited(device)
    yield Record(case, device, "ready to train, first epoch included", time.perf_counter() - start, "s")
    took: dict[str, list[float]] = {name: [] for name in METHODS}
    for i in range(3):
        for name in METHODS if i % 2 else reversed(METHODS):
            took[name].append(seconds_per_epoch(epochs[name], device, rounds, warm=1 if i else 5))
    more = statistics.median(b / a for a, b in zip(*took.values(), strict=True))
    plain, with_term = (statistics.median(each) for each in took.values())
    yield Record(case, device, "GCN, per epoch", 1e3 * plain, "ms")
    yield Record(case, device, "GCN + P-reg, per epoch", 1e3 * with_term, "ms", "GCN", more)
    if device == "cuda":
        yield Record(case, device, "peak memory", torch.cuda.max_memory_allocated() / 1e9, "GB")
    del epochs
    free(device)
    four = seconds_per_epoch(engine_epoch(made, GCN, METHODS["preg"], 4), device, rounds, warm=5) / 4
    ratio = None if one is None else one / four
    yield Record(case, device, "GCN + P-reg, per epoch and replica of 4", 1e3 * four, "ms", "plain torch", ratio)


METHODS = {"plain": Method("plain"), "preg": Method.preset("paper")}


def problem(graph: Graph, device: str) -> Problem:
    """A drawn graph with its one split, under the names of all."""
    assert graph.split is not None
    return Problem(graph, {str(i): graph.split for i in range(10)}, torch.device(device))


def from_disk(device: str, nodes: int, edges: int, steps: int) -> list[Record]:
    """Mini-batches of the stored graph on the CPU, in a process of its own: time to write and open, and peak memory."""
    case = f"mini-batches from disk, {size_of(edges)}"
    graph = graph_from_data(random_graph(nodes, edges, 100, 47, homophily=0.8, device=device).to("cpu"))
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        write_stored(f"{folder}/graph", graph)
        wrote = time.perf_counter() - start
        context = multiprocessing.get_context("spawn")
        with context.Pool(1) as pool:
            opened, each, peak = pool.apply(steps_from_disk, (f"{folder}/graph", steps))
    return [
        Record(case, "cpu", "to write the folder", wrote, "s"),
        Record(case, "cpu", "to open it, first step included", opened, "s"),
        Record(case, "cpu", f"SAGE + P-reg, per step of {SEEDS} seeds, two threads", 1e3 * each, "ms"),
        Record(case, "cpu", "peak memory of the process, mapped pages included", peak, "GB"),
    ]


def steps_from_disk(folder: str, steps: int) -> tuple[float, float, float]:
    """Seconds until the first step is done, seconds per step, and the process's peak memory in GB."""
    torch.set_num_threads(2)
    start = time.perf_counter()
    term = MiniBatchPReg(cost=COST)
    run = training(Loader(folder, [10, 10], batch_size=SEEDS, preg=term), Sage(100, 47), term)
    run()
    opened = time.perf_counter() - start
    each = seconds_per_epoch(run, "cpu", steps, warm=1)
    return opened, each, peak_of_process()


def peak_of_process() -> float:
    """In GB, mapped pages included."""
    peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(peak.split()[1]) / 1e6


def fits(nodes: int, edges: int, size: int, seeds: int) -> Iterator[Record]:
    """``fit`` in mini-batches, and on whole graphs for as many steps: accuracy, time and memory, on the CPU."""
    case = f"fit, GCN, {nodes:,} nodes, {size_of(edges)}"
    data = random_graph(nodes, edges, 64, 10, homophily=0.5, feature_accuracy=0.4)
    steps = -(-int(data.train_mask.sum()) // size)
    with tempfile.TemporaryDirectory() as folder:
        write_stored(f"{folder}/graph", graph_from_data(data))
        for batch, cost, epochs in (("full", COST, 10 * steps), (size, FIT_COST, 10), (size, COST, 10)):
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                given = f"{folder}/graph", batch, cost, epochs, seeds
                plain, with_term, took, peak = pool.apply(fitted, given)
            name = "full batches" if batch == "full" else f"batches of {size} nodes, cost={cost:g}"
            yield Record(case, "cpu", f"test accuracy, {name}: plain", 100 * plain, "%")
            for mu, accuracy in with_term.items():
                yield Record(case, "cpu", f"test accuracy, {name}: mu {mu:g}", 100 * accuracy, "%")
            yield Record(case, "cpu", f"time, {name}", took, "s")
            yield Record(case, "cpu", f"peak memory, {name}", peak, "GB")


def fitted(
    folder: str, batch: batching.BatchSize, cost: float, epochs: int, seeds: int
) -> tuple[float, dict[float, float], float, float]:
    """The mean test accuracies, plain and by strength, the seconds, and the process's peak memory in GB."""
    setattr(batching, "MiniBatches", partial(MiniBatches, cost=cost))  # noqa: B010  (fit itself has no such option)
    start = time.perf_counter()
    result = fit(load_graph(folder), mu=[0.2, 0.5], batch=batch, seeds=seeds, max_epochs=epochs, progress=False)
    took = time.perf_counter() - start
    return result.plain.mean, {mu: result.at(mu).mean for mu in result.mus[1:]}, took, peak_of_process()


def serial(x: Tensor, edge_index: Tensor, y: Tensor, train: Tensor) -> Callable[[], None]:
    """An epoch of one run as a careful user writes it: Â built once, an evaluation each epoch."""
    gcn = Propagation(edge_index, len(x), norm="sym", add_self_loops=True)
    average = Propagation(edge_index, len(x))
    first, second = torch.nn.Linear(x.shape[1], 64).to(x.device), torch.nn.Linear(64, int(y.max()) + 1).to(x.device)
    optimizer = torch.optim.Adam([*first.parameters(), *second.parameters()], lr=0.01)

    def forward(training: bool) -> Tensor:
        h = F.dropout(gcn(first(F.dropout(x, 0.5, training))).relu(), 0.5, training)
        return gcn(second(h))

    def epoch() -> None:
        optimizer.zero_grad()
        z = forward(True)
        torch.autograd.backward(F.cross_entropy(z[train], y[train]) + 0.5 * preg(z, average))
        optimizer.step()
        with torch.no_grad():
            (forward(False).argmax(-1) == y).float().mean().item()

    return epoch


def linearity(device: str, sizes: tuple[int, ...]) -> list[Record]:
    """The engine's time per epoch and edge, over that of the largest graph."""
    free(device)
    each = {}
    for edges in sizes:
        graph = graph_from_data(random_graph(edges // 20, edges, 64, 16, device=device).to("cpu"))
        run = engine_epoch(problem(graph, device), GCN, METHODS["preg"], 1)
        each[edges] = seconds_per_epoch(run, device, 10, warm=5) / edges
        del run
        free(device)
    most = each[sizes[-1]]
    return [
        Record(
            "full batch, mean degree 20", device, f"per epoch and edge, {size_of(n)}", 1e9 * took, "ns",
            size_of(sizes[-1]), took / most,
        )
        for n, took in each.items()
    ]  # fmt: skip


def waited(device: str) -> None:
    """Wait for the GPU."""
    if device == "cuda":
        torch.cuda.synchronize()


def free(device: str) -> None:
    """Give back memory that is held for nothing, and count its peak anew."""
    if device == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def main() -> None:
    """Measure and print."""
    options = arguments(__doc__.splitlines()[0] if __doc__ else "")
    device, quick = options.device, options.quick
    if not importlib.util.find_spec("pyg_lib"):
        print("pyg-lib is not installed: PyG's NeighborLoader is not compared", file=sys.stderr)
    many = device == "cuda" and not quick
    nodes = 20_000 if quick else 200_000
    whole = (2_449_029, 123_718_280) if many else (20_000, 1_000_000)
    sizes = (2**20, 2**22, 2**24, 2**26) if many else (2**17, 2**19, 2**21)[: 2 if quick else 3]
    small = (100_000, 1_000_000) if quick else (1_000_000, 10_000_000)
    parts: dict[str, Callable[[], Iterable[Record]]] = {
        "sampler": lambda: sampler(device, *small),
        "step, degree 10": lambda: step(device, nodes, 10, rounds=5 if quick else 15),
        "step, degree 50": lambda: step(device, nodes, 50, rounds=5 if quick else 15),
        "full batch": lambda: full_batch(device, *whole, rounds=10 if many else 5),
        "linearity": lambda: linearity(device, sizes),
    }
    if Path("/proc/self/status").exists():
        parts["fit"] = lambda: fits(20_000, 300_000, 256, seeds=1 if quick else 4)
        parts["from disk"] = lambda: from_disk(device, *whole, steps=20 if many else 10)
    records: list[Record] = []
    start = time.perf_counter()
    for name, part in parts.items():
        if device == "cuda" and time.perf_counter() - start > LATEST:
            FAILED.append(f"{name}: not started, {LATEST:.0f} s are over")
            continue
        with guarded(name):
            for record in part():
                records.append(record)
                ratio = "" if record.ratio is None else f", {times(record.ratio)} {record.baseline}"
                line = f"{record.case}: {record.metric}: {record.value:.4g} {record.unit}{ratio}"
                print(f"{time.perf_counter() - start:5.0f} s  {line}", file=sys.stderr)
                write(records, device, options.save)
        free(device)
    show(records, device, options.json, options.save)
    if FAILED:
        sys.exit("not measured: " + "; ".join(FAILED))


if __name__ == "__main__":
    main()
