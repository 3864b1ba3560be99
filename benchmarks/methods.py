"""GRAND with P-reg in the engine against a serial loop in torch like that of the authors' code.

The serial loop: dense features, a sparse product for each hop, S augmentations one after another, an evaluation every
epoch whose numbers are read, one run at a time. The engine trains seeds × strengths as one batch with the same settings
(GRAND's published ones) and the same steps; per replica and epoch the ratio of their times is printed. Replicas of a
seed share its augmentations, so more strengths cost little. Needs the benchmark data.
"""

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from common import Record, arguments, seconds_per_epoch, show
from propreg.data.benchmarks.load import load_node_graph
from propreg.data.graph import SparseFeatures
from propreg.engine import Method, Problem, Protocol, Replica
from propreg.engine.training.epoch import Epoch
from propreg.methods.grand import GrandModel, phases
from propreg.study.spec.presets import published

STRENGTHS = (0.0, 0.01, 0.03, 0.05, 0.1, 0.2, 0.3, 0.5, 0.8)
SEEDS = {"cpu": 1, "cuda": 10}


def problem(name: str, device: str) -> Problem:
    """A citation graph with its public split."""
    graph = load_node_graph(name, normalize_features=True)
    if graph.split is None:
        raise ValueError(f"{name} has no public split.")
    return Problem(graph, {"public": graph.split}, torch.device(device))


def serial_epoch(data: Problem, model: GrandModel, training: Mapping[str, Any], strength: float) -> Callable[[], None]:
    """One epoch of the authors' way, with P-reg on the logits of each augmentation."""
    graph, device = data.graph, data.device
    x = torch.from_numpy(graph.x.to_dense() if isinstance(graph.x, SparseFeatures) else graph.x).to(device)
    adjacency, average = (_sparse(data, norm, loops) for norm, loops in (("sym", True), ("rw", False)))
    y, split = data.y, data.splits["public"]
    train, val = (torch.from_numpy(part).to(device) for part in (split.train, split.val))
    norms = [torch.nn.BatchNorm1d(n) if model.batch_norm else torch.nn.Identity() for n in (x.shape[1], model.hidden)]
    first, second = torch.nn.Linear(x.shape[1], model.hidden), torch.nn.Linear(model.hidden, data.num_classes)
    net = torch.nn.ModuleList([*norms, first, second]).to(device)
    optimizer = torch.optim.Adam(net.parameters(), lr=training["lr"], weight_decay=training["weight_decay"])

    def mlp(x: Tensor) -> Tensor:
        h = F.dropout(norms[0](x), model.input_dropout, net.training)
        h = F.dropout(norms[1](first(h).relu()), training["dropout"], net.training)
        z: Tensor = second(h)
        return z

    def propagated(step: Tensor) -> Tensor:
        total = step
        for _ in range(model.steps):
            step = torch.sparse.mm(adjacency, step)
            total = total + step
        return total / (model.steps + 1)

    def epoch() -> None:
        net.train()
        optimizer.zero_grad()
        each = []
        for _ in range(model.augmentations):
            keep = torch.bernoulli(torch.full((len(x), 1), 1 - model.drop_node, device=device))
            each.append(mlp(propagated(x * keep)))
        p = [z.softmax(-1) for z in each]
        mean = torch.stack(p).mean(0).detach() ** (1 / model.temperature)
        target = mean / mean.sum(1, keepdim=True)
        loss = torch.zeros((), device=device)
        for z, q in zip(each, p, strict=True):
            loss = loss + F.cross_entropy(z[train], y[train])
            loss = loss + model.consistency * (q - target).square().sum(1).mean()
            if strength:
                loss = loss - strength * (q * torch.sparse.mm(average, z).log_softmax(-1)).sum(1).mean()
        (loss / model.augmentations).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        net.eval()
        with torch.no_grad():
            z = mlp(propagated((1 - model.drop_node) * x))
            F.cross_entropy(z[val], y[val]).item()
            (z[val].argmax(-1) == y[val]).float().mean().item()

    return epoch


def engine_epoch(data: Problem, model: GrandModel, training: Mapping[str, Any], seeds: int) -> Callable[[], object]:
    """One epoch of a batch of seeds × strengths, accuracies and losses of validation nodes counted, nothing stopped."""
    known = {name: training[name] for name in ("lr", "weight_decay", "dropout")}
    lineup = [Replica(seed=i, split="public", strength=mu, **known) for i in range(seeds) for mu in STRENGTHS]
    protocol = Protocol("loss_or_accuracy")
    (phase,) = phases(data, lineup, model=model, method=Method("preg"), protocol=protocol)
    run = Epoch(phase, data.y, record=data.device.type == "cuda")
    numbers = itertools.count(1)
    return lambda: run(next(numbers))


def _sparse(data: Problem, norm: str, loops: bool) -> Tensor:
    row, col, values = data.propagation(norm, loops).entries(torch.float32)
    size = (data.num_nodes, data.num_nodes)
    matrix = torch.sparse_coo_tensor(torch.stack([row, col]), values, size, check_invariants=False)
    return matrix.coalesce().to(data.device)


def compare(name: str, device: str, quick: bool) -> list[Record]:
    """The engine's time per replica and epoch beside the serial loop's."""
    data = problem(name, device)
    model, training, _ = published("grand", name)
    if not isinstance(model, GrandModel):
        raise TypeError(f"grand is not a GrandModel but a {type(model).__name__}.")
    epochs = (2 if quick else 5) if device == "cpu" else 20
    serial = seconds_per_epoch(serial_epoch(data, model, training, 0.1), device, epochs, warm=1 if quick else 4)
    seeds = SEEDS[device]
    batch = engine_epoch(data, model, training, seeds)
    each = seconds_per_epoch(batch, device, epochs, warm=1 if quick else 4) / (seeds * len(STRENGTHS))
    case = f"GRAND+P-reg {name}"
    metric = f"engine, per replica of {seeds} seeds × {len(STRENGTHS)} strengths"
    return [
        Record(case, device, "serial epoch", 1e3 * serial, "ms"),
        Record(case, device, metric, 1e3 * each, "ms", "serial", serial / each),
    ]


def main() -> None:
    """Measure and print."""
    options = arguments(__doc__.splitlines()[0] if __doc__ else "")
    names = ("citeseer",) if options.quick else ("cora", "citeseer", "pubmed")
    records = [record for name in names for record in compare(name, options.device, options.quick)]
    show(records, options.device, options.json, options.save)


if __name__ == "__main__":
    main()
