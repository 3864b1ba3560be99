"""The replica engine against a serial loop in PyG like that of the official code.

The serial loop: dense features, message passing, two forward passes with their own dropout, an evaluation of all nodes
every epoch, one run at a time. The engine trains the same runs (reference preset, the same dropout rates) as batches.
Both do the same number of steps; per replica and epoch the ratio of their times is printed. Needs the benchmark data.
"""

import itertools
import statistics
import time
from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch import Tensor

from common import Record, parser, seconds, seconds_per_epoch, settled, show, write
from propreg.data.benchmarks.load import load_node_graph
from propreg.data.graph import SparseFeatures
from propreg.data.splits import official_splits
from propreg.engine import Method, Model, Problem, Protocol, Replica
from propreg.engine.training.batches import Options, train_all
from propreg.engine.training.epoch import Epoch
from propreg.engine.training.memory import bytes_per_replica
from propreg.engine.training.phases import one_phase

GCN = Model("gcn")
GAT = Model("gat", hidden=16, input_dropout=0.6, attention_dropout=0.6)
PLANETOID = ("cora", "citeseer", "pubmed")
CPU_ROUNDS = 5
MOST_DRAWN = 300_000_000  # initial weights, drawn on the host for each seed
ROUNDS, ROUNDS_TAKE = (9, 199), 20.0  # the fewest and the most, and the seconds after which they may end


def problem(name: str, device: str) -> Problem:
    """A benchmark dataset as the official code prepares it."""
    graph = load_node_graph(name, normalize_features=True, labels="authors" if name == "citeseer" else None)
    splits = {str(i): split for i, split in enumerate(official_splits(name))}
    return Problem(graph, splits, torch.device(device))


def serial_epoch(data: Problem, model: Model) -> Callable[[], None]:
    """One epoch of the official way, in PyG."""
    from torch_geometric.nn import GATConv, GCNConv

    graph, device = data.graph, data.device
    features = graph.x.to_dense() if isinstance(graph.x, SparseFeatures) else graph.x
    x, y = torch.from_numpy(features).to(device), data.y
    edge_index = torch.from_numpy(graph.edge_index).to(device)
    train = torch.from_numpy(data.splits["0"].train).to(device)
    masks = [torch.from_numpy(getattr(data.splits["0"], part)).to(device) for part in ("train", "val", "test")]
    classes = data.num_classes

    class Gcn(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = GCNConv(x.shape[1], 64, cached=True), GCNConv(64, classes, cached=True)

        def forward(self) -> Tensor:
            h = F.dropout(self.first(x, edge_index).relu(), 0.5, self.training)
            return self.second(h, edge_index)  # type: ignore[no-any-return]

    class Gat(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = GATConv(x.shape[1], 16, heads=8, dropout=0.6)
            self.second = GATConv(128, classes, heads=1, dropout=0.6)

        def forward(self) -> Tensor:
            h = F.elu(self.first(F.dropout(x, 0.6, self.training), edge_index))
            return self.second(F.dropout(h, 0.6, self.training), edge_index)  # type: ignore[no-any-return]

    net = (Gcn() if model.name == "gcn" else Gat()).to(device)
    propagate = GCNConv(classes, classes, bias=False, cached=True).to(device)
    propagate.lin = torch.nn.Identity()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01, weight_decay=5e-4)

    def epoch() -> None:
        net.train()
        optimizer.zero_grad()
        p = net().softmax(-1)
        q = propagate(net(), edge_index).softmax(-1)
        loss = -torch.log(p[train, y[train]] + 1e-15).mean() + 0.5 * -(p * torch.log(q + 1e-15)).sum(-1).mean()
        loss.backward()
        optimizer.step()
        net.eval()
        with torch.no_grad():
            right = net().argmax(-1) == y
        for mask in masks:
            right[mask].double().mean().item()

    return epoch


def engine_epoch(data: Problem, model: Model, method: Method, replicas: int) -> Callable[[], object]:
    """One epoch of a batch, accuracies counted, nothing stopped."""
    lineup = [Replica(seed=i, split=str(i % 10), strength=0.5) for i in range(replicas)]
    (phase,) = one_phase(data, lineup, model=model, method=method, protocol=Protocol())
    run = Epoch(phase, data.y, record=data.device.type == "cuda")
    numbers = itertools.count(1)
    return lambda: run(next(numbers))


def on_cores(data: Problem, model: Model, method: Method, epochs: int, replicas: int = 8) -> float:
    """Seconds per replica and epoch of the whole engine on a CPU, groups on all cores.

    The difference of a long and a short training, without the fixed costs of one, like drawing initial weights.
    """
    lineup = [Replica(seed=i, split=str(i % 10), strength=0.5, patience=10**9) for i in range(replicas)]

    def trained(length: int) -> float:
        start = time.perf_counter()
        for _ in train_all(data, model, method, lineup, Protocol(max_epochs=length), Options()):
            pass
        return time.perf_counter() - start

    short = trained(3)
    return (trained(epochs + 3) - short) / (epochs * replicas)


def compare(name: str, model: Model, device: str, quick: bool) -> list[Record]:
    """The engine's time per replica and epoch beside the serial loop's."""
    data, method = problem(name, device), Method.preset("reference")
    alone = serial_epoch(data, model)
    if device == "cpu":  # the two alternate, and the median counts: others share the machine
        rounds = [
            (seconds_per_epoch(alone, device, 5), on_cores(data, model, method, 5 if quick else 20))
            for _ in range(1 if quick else CPU_ROUNDS)
        ]
        serial, best = (statistics.median(times) for times in zip(*rounds, strict=True))
    else:
        serial = seconds_per_epoch(alone, device, 20)
    case = f"{model.name.upper()}+P-reg {name}"
    records = [Record(case, device, "serial epoch", 1e3 * serial, "ms")]
    if device == "cpu":
        records.append(Record(case, device, "engine, per replica", 1e3 * best, "ms", "serial", serial / best))
        return [*records, limit(case, data, model, best)]
    times = {}
    for replicas in _sizes(data, model, method, quick):
        times[replicas] = seconds_per_epoch(engine_epoch(data, model, method, replicas), device, 10) / replicas
        torch.cuda.empty_cache()
        metric, each = f"engine, per replica of {replicas}", times[replicas]
        records.append(Record(case, device, metric, 1e6 * each, "µs", "serial", serial / each))
    return [*records, limit(case, data, model, min(times.values()))]


def limit(case: str, data: Problem, model: Model, fastest: float) -> Record:
    """The time to move the bytes of an epoch at the memory's bandwidth, and the engine's time over it.

    On a CPU the ratio may be below 1: the working set of a core fits its caches.
    """
    device = data.device.type
    least = bytes_that_move(data, model) / bandwidth(device)
    scale, unit = (1e3, "ms") if device == "cpu" else (1e6, "µs")
    return Record(case, device, "limit by memory bandwidth", scale * least, unit, "engine over it", fastest / least)


def bytes_that_move(data: Problem, model: Model) -> float:
    """The least that an epoch of a replica reads and writes, if reused data stay in caches and registers.

    GCN, the hidden layer [N, H] ten times: X W written and read by Â, the layer written and read by the evaluation, by
    both training passes (as one) and by the backward pass, its gradient written and read by Âᵀ, that written and read
    by Xᵀ. GAT drops inputs, so that both training passes and the evaluation have a first layer [N, heads · H] of their
    own: X W and the layer written and read in each, and in each backward pass both read again, and two gradients
    written and read: 24 times. The first weights eight times: read once, and Adam's four reads and three writes. Logits
    twenty times.
    """
    nodes, classes = data.num_nodes, data.num_classes
    layers, width = 10 if model.name == "gcn" else 24, model.width
    return 4.0 * (layers * nodes * width + 8 * int(data.features.shape[1]) * width + 20 * nodes * classes)


def bandwidth(device: str) -> float:
    """Bytes per second of a large copy."""
    source = torch.zeros(2**28, device=device)
    target = torch.zeros_like(source)
    return 2 * 4 * 2**28 / seconds(lambda: target.copy_(source), device)


def overhead(name: str, device: str) -> list[Record]:
    """A training step with one-pass P-reg over the same step without.

    The two alternate, each first equally often, and the median of the rounds' ratios counts: otherwise a busy moment
    of the machine would look like the term's cost. Nine rounds of an epoch of 10 ms still give anything from 1.0 to 1.2
    on a shared machine, so there are many.
    """
    data, replicas = problem(name, device), 4 if device == "cpu" else 64
    if device == "cpu":
        torch.set_num_threads(1)
    plain, preg = (engine_epoch(data, GCN, method, replicas) for method in (Method("plain"), Method.preset("paper")))
    rounds: list[float] = []
    start = time.perf_counter()
    while len(rounds) < ROUNDS[0] or (len(rounds) < ROUNDS[1] and time.perf_counter() - start < ROUNDS_TAKE):
        order = (plain, preg) if len(rounds) % 2 else (preg, plain)
        took = {epoch: seconds_per_epoch(epoch, device, 5, warm=1 if rounds else 20) for epoch in order}
        rounds.append(took[preg] / took[plain])
    ratio = statistics.median(rounds)
    return [Record(f"GCN {name}", device, "step with P-reg over without", ratio, "×", "plain", ratio)]


def memory(name: str) -> list[Record]:
    """Peak memory that one more replica adds, on a GPU."""
    data, method, peaks = problem(name, "cuda"), Method.preset("reference"), {}
    for replicas in (8, 24):
        torch.cuda.empty_cache()
        epoch = engine_epoch(data, GCN, method, replicas)
        epoch()
        torch.cuda.reset_peak_memory_stats()
        epoch()
        torch.cuda.synchronize()
        peaks[replicas] = torch.cuda.max_memory_allocated()
    each = (peaks[24] - peaks[8]) / 16  # the first epochs are not recorded: this is the peak of an epoch itself
    estimate = bytes_per_replica(data, GCN, method)
    return [Record(f"GCN {name}", "cuda", "peak memory per replica", each / 1e6, "MB", "estimate", each / estimate)]


def beside_rivals(name: str, device: str, quick: bool) -> Iterator[Record]:
    """The engine in the paper form, beside programs that do the same."""
    import rivals

    data, method = problem(name, device), Method.preset("paper")
    task = rivals.Task.of(data.graph, dict(data.splits))
    return rivals.compare(f"GCN+P-reg {name}", task, lambda runs: engine_epoch(data, GCN, method, runs), device, quick)


def _sizes(data: Problem, model: Model, method: Method, quick: bool) -> list[int]:
    free, _ = torch.cuda.mem_get_info()
    most = int(0.35 * free / bytes_per_replica(data, model, method))
    most = min(most, MOST_DRAWN // (int(data.features.shape[1]) * model.width))
    wanted = (16, 64, 256) if quick else (64, 128, 256, 512, 1024, 2048)
    return [size for size in wanted if size <= most][-2:] or [most]


def main() -> None:
    """Measure and print."""
    known = parser(__doc__.splitlines()[0] if __doc__ else "")
    known.add_argument(
        "--rivals", action="store_true", help="against torch.func.vmap and JAX instead: benchmarks/rivals.py"
    )
    options = settled(known)
    device = options.device
    if options.rivals:
        records = []
        for record in beside_rivals("cora", device, options.quick):
            records.append(record)
            write(records, device, options.save)
        show(records, device, options.json)
        return
    gcn = ("cora", "photo") if options.quick else ("cora", "photo", "cs", "physics")
    gat = ("cora",) if options.quick or device == "cpu" else ("cora", "physics")
    records = [r for name in gcn for r in compare(name, GCN, device, options.quick)]
    records += [r for name in gat for r in compare(name, GAT, device, options.quick)]
    for name in ("cora",) if options.quick else ("cora", "physics"):
        records += overhead(name, device)
    if device == "cuda":
        records += memory("physics")
    show(records, device, options.json, options.save)


if __name__ == "__main__":
    main()
