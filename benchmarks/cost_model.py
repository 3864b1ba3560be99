"""Time per epoch and peak memory on random graphs of known size: what the cost model is fitted to and checked against.

One core, in a process of its own for each point: its processor time, so that others on the machine matter less, the
fastest of some epochs, per run of a group as large as the engine trains at a time; and the most memory that the graph's
tables and the epochs took beyond the graph itself, from the kernel's own count. The constants in
``propreg/engine/training/cost.py`` are those with the smallest largest error over these points, those in
``propreg/scale/cost.py`` over the points in mini-batches: an epoch is as many of the fastest steps, and an evaluation.
"""

import argparse
import ctypes
import itertools
import json
import re
import statistics
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from common import Record, arguments, show
from engine import engine_epoch
from propreg.data.graph import Graph, SparseFeatures, Split
from propreg.data.scaling import Scaling
from propreg.engine import Method, Model, Problem, Protocol, Replica
from propreg.engine.models import MODELS
from propreg.engine.training.batches import replicas_that_fit
from propreg.scale.blocks import LargeGraph
from propreg.scale.trainer import Batch, MiniBatches, Part

POINTS = """
2708 nodes, degree 4, 1433 features (1.3%), 7 classes, gcn 64 x 2, plain
2708 nodes, degree 4, 1433 features (1.3%), 7 classes, gcn 64 x 2, paper
2708 nodes, degree 4, 1433 features (1.3%), 7 classes, gcn 64 x 2, reference
20000 nodes, degree 4, 500 features (10%), 3 classes, gcn 64 x 2, paper
20000 nodes, degree 4, 500 features (10%), 3 classes, gcn 16 x 2, paper
20000 nodes, degree 40, 500 features (2%), 10 classes, gcn 64 x 2, paper
20000 nodes, degree 40, 500 features (2%), 10 classes, gcn 128 x 2, reference
20000 nodes, degree 10, 5000 features (1%), 15 classes, gcn 64 x 2, paper
50000 nodes, degree 10, 100 features (100%), 10 classes, gcn 64 x 2, plain
50000 nodes, degree 10, 100 features (100%), 10 classes, gcn 64 x 2, paper
50000 nodes, degree 40, 100 features (100%), 47 classes, gcn 64 x 2, paper
100000 nodes, degree 10, 100 features (100%), 10 classes, gcn 64 x 2, paper
100000 nodes, degree 10, 100 features (100%), 10 classes, gcn 256 x 2, paper
200000 nodes, degree 20, 50 features (100%), 20 classes, gcn 64 x 2, paper
20000 nodes, degree 10, 200 features (100%), 10 classes, gcn 64 x 3, paper
20000 nodes, degree 10, 200 features (100%), 10 classes, mlp 64 x 2, paper
8000 nodes, degree 30, 300 features (100%), 8 classes, gcn 64 x 2, paper
8000 nodes, degree 30, 3000 features (2%), 8 classes, gcn 64 x 2, paper
100000 nodes, degree 4, 1000 features (2%), 10 classes, gcn 64 x 2, paper
100000 nodes, degree 30, 300 features (3%), 10 classes, gcn 32 x 2, plain
2708 nodes, degree 4, 1433 features (1.3%), 7 classes, appnp 64 x 2, paper
20000 nodes, degree 10, 500 features (10%), 3 classes, appnp 64 x 2, plain
20000 nodes, degree 40, 200 features (100%), 10 classes, appnp 64 x 2, paper
100000 nodes, degree 10, 100 features (100%), 40 classes, appnp 64 x 2, paper
50000 nodes, degree 20, 100 features (100%), 10 classes, appnp 128 x 2, reference
2708 nodes, degree 4, 1433 features (1.3%), 7 classes, gat 8 x 2, plain
2708 nodes, degree 4, 1433 features (1.3%), 7 classes, gat 8 x 2, paper
20000 nodes, degree 10, 500 features (10%), 3 classes, gat 8 x 2, paper
20000 nodes, degree 40, 200 features (100%), 10 classes, gat 8 x 2, paper
50000 nodes, degree 10, 100 features (100%), 40 classes, gat 8 x 2, plain
20000 nodes, degree 20, 100 features (100%), 10 classes, gat 16 x 2, reference
50000 nodes, degree 10, 300 features (100%), 5 classes, gat 8 x 2, paper
50000 nodes, degree 4, 1000 features (2%), 20 classes, gat 8 x 2, reference
100000 nodes, degree 4, 50 features (100%), 10 classes, gat 4 x 2, paper
50000 nodes, degree 10, 300 features (100%), 5 classes, appnp 64 x 2, paper
50000 nodes, degree 10, 1000 features (2%), 20 classes, appnp 64 x 2, reference
20000 nodes, degree 20, 100 features (100%), 40 classes, appnp 16 x 2, plain
"""
BATCHED = """
50000 nodes, degree 10, 100 features (100%), 10 classes, gcn 64 x 2, plain, batches of 512
50000 nodes, degree 10, 100 features (100%), 10 classes, gcn 64 x 2, paper, batches of 512
100000 nodes, degree 40, 100 features (100%), 40 classes, gcn 64 x 2, paper, batches of 1024
50000 nodes, degree 10, 100 features (100%), 10 classes, gcn 64 x 2, paper, batches of 128
100000 nodes, degree 4, 1000 features (2%), 10 classes, gcn 64 x 2, paper, batches of 1024
50000 nodes, degree 20, 300 features (100%), 10 classes, gcn 128 x 2, plain, batches of 256
100000 nodes, degree 10, 50 features (100%), 10 classes, gcn 16 x 2, paper, batches of 2048
200000 nodes, degree 20, 50 features (100%), 20 classes, gcn 64 x 3, paper, batches of 128
100000 nodes, degree 10, 500 features (10%), 5 classes, gcn 256 x 2, paper, batches of 256
200000 nodes, degree 20, 100 features (100%), 47 classes, gcn 64 x 2, paper, batches of 1024
100000 nodes, degree 10, 200 features (100%), 10 classes, gcn 256 x 2, plain, batches of 512
100000 nodes, degree 20, 30 features (100%), 100 classes, gcn 64 x 2, paper, batches of 512
100000 nodes, degree 10, 128 features (100%), 10 classes, gcn 128 x 3, plain, batches of 64
200000 nodes, degree 10, 2000 features (1%), 5 classes, gcn 64 x 2, paper, batches of 256
100000 nodes, degree 30, 500 features (100%), 10 classes, gcn 32 x 2, paper, batches of 512
50000 nodes, degree 10, 1000 features (3%), 8 classes, gcn 256 x 2, plain, batches of 256
100000 nodes, degree 10, 300 features (5%), 20 classes, gcn 128 x 2, paper, batches of 512
200000 nodes, degree 30, 50 features (100%), 10 classes, gcn 32 x 2, paper, batches of 512
"""
PATTERN = re.compile(
    r"(\d+) nodes, degree (\d+), (\d+) features \(([\d.]+)%\), (\d+) classes, (\w+) (\d+) x (\d), (\w+)"
    r"(?:, batches of (\d+))?"
)
EPOCHS = 7
STEPS = 8
SIZES = ("nodes", "edges")


def setup(point: str) -> tuple[Graph, dict[str, Split], Model, Method]:
    """The graph of a point, and what is trained on it."""
    found = PATTERN.fullmatch(point)
    assert found is not None, point
    nodes, degree, features, classes, hidden, layers = (int(found[i]) for i in (1, 2, 3, 5, 7, 8))
    draw = np.random.default_rng(0)
    ends = draw.integers(0, nodes, (2, nodes * degree // 2))
    ends = ends[:, ends[0] != ends[1]]
    edges = np.unique(np.concatenate([ends, ends[::-1]], 1), axis=1)
    per = round(features * float(found[4]) / 100)
    x: Any = draw.standard_normal((nodes, features), np.float32)
    if per < features:
        columns = np.sort(draw.integers(0, features, (nodes, per)), 1)
        first = np.concatenate([np.ones((nodes, 1), bool), columns[:, 1:] != columns[:, :-1]], 1)
        indptr = np.concatenate([[0], np.cumsum(first.sum(1))]).astype(np.int64)
        x = SparseFeatures(indptr, columns[first].astype(np.int32), None, (nodes, features)).row_normalized()
    share = draw.random(nodes)
    split = Split(share < 0.1, (share >= 0.1) & (share < 0.3), share >= 0.3)
    graph = Graph("random", edges, x, draw.integers(0, classes, nodes), digests={"edges": "0", "features": "0"})
    forms = {"plain": Method("plain"), "paper": Method.preset("paper"), "reference": Method.preset("reference")}
    return graph, {str(i): split for i in range(10)}, as_published(found[6], hidden, layers), forms[found[9]]


def as_published(name: str, hidden: int, layers: int) -> Model:
    """A model with its own dropout of features and of attention."""
    return replace(Model(name, hidden=hidden, layers=layers), **{**MODELS[name].defaults, "hidden": hidden})


def measure(point: str, epochs: int) -> dict[str, float]:
    """Milliseconds per run and epoch, and megabytes; in this process, which has done nothing else."""
    torch.set_num_threads(1)
    engine_epoch(Problem(*setup(TINY)[:2], "cpu"), *setup(TINY)[2:], 1)()  # imports, and the heap's first growth
    graph, splits, model, method = setup(point)
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")  # the peak so far is forgotten
    before = status("VmRSS")
    problem = Problem(graph, splits, "cpu")
    runs = replicas_that_fit(problem, model, method)
    epoch = engine_epoch(problem, model, method, runs)
    times = []
    for _ in range(2 + epochs):
        start = time.process_time()
        epoch()
        times.append(time.process_time() - start)
    peak = status("VmHWM") - before
    sizes = problem.sizes
    return {
        "ms": 1e3 * min(times[2:]) / runs,
        "MB": peak / 1e6,
        "runs": runs,
        "edges": sizes.edges,
        "nonzeros": sizes.nonzeros,
    }


def measure_batches(point: str) -> dict[str, float]:
    """Milliseconds of an epoch of one run in mini-batches, and the sizes of a batch."""
    torch.set_num_threads(1)
    graph, splits, model, method = setup(point)
    found = PATTERN.fullmatch(point)
    assert found is not None
    problem, split = Problem(graph, splits, "cpu"), splits["0"]
    whole = LargeGraph(problem, Scaling())
    trainer = MiniBatches(whole, model, method, Protocol(max_epochs=100), int(found[10]))
    replica = Replica(seed=0, split="0", strength=0.5)
    loader = trainer.loader(problem, replica)
    judged = np.flatnonzero(split.val | split.test)
    logits = trainer.evaluation(trainer.network_of(), torch.from_numpy(judged))
    part = Part(trainer, problem, [replica], judged, logits)
    endless = (batch for _ in itertools.count() for batch in loader)
    times, nodes, edges = [], [], []
    for _ in range(STEPS):
        start = time.process_time()
        batch = next(endless)
        part.step(Batch(trainer, batch), 1)
        times.append(time.process_time() - start)
        nodes.append(len(batch.n_id))
        edges.append(batch.edge_index.shape[1])
    for _ in range(2):  # the first makes the blocks of the neighborhoods
        start = time.process_time()
        list(part.finished())
        evaluation = time.process_time() - start
    kept = whole.counts(torch.arange(graph.num_nodes)).clamp(max=trainer.num_neighbors).double().mean()
    return {
        "ms": 1e3 * (len(loader) * min(times[2:]) + evaluation),
        "nodes of a batch": statistics.median(nodes),
        "edges of a batch": statistics.median(edges),
        "kept": float(kept),
        "train": int(split.train.sum()),
        "edges": problem.sizes.edges,
        "nonzeros": problem.sizes.nonzeros,
    }


TINY = "60 nodes, degree 4, 8 features (100%), 3 classes, gcn 16 x 2, paper"


def status(name: str) -> int:
    """A number of bytes that the kernel counts of this process."""
    found = re.search(rf"^{name}:\s+(\d+) kB$", Path("/proc/self/status").read_text(), re.M)
    assert found is not None
    return 1024 * int(found[1])


def main() -> None:
    """Measure and print."""
    if sys.argv[1:2] == ["--point"]:
        own = argparse.ArgumentParser()
        own.add_argument("--point")
        own.add_argument("--epochs", type=int)
        given = own.parse_args()
        in_batches = "batches" in given.point
        print(json.dumps(measure_batches(given.point) if in_batches else measure(given.point, given.epochs)))
        return
    options = arguments(__doc__.splitlines()[0] if __doc__ else "")
    points, batched = POINTS.strip().splitlines(), BATCHED.strip().splitlines()
    records = []
    for point in [*points[:3], *batched[:1]] if options.quick else [*points, *batched]:
        command = [sys.executable, __file__, "--point", point, "--epochs", str(EPOCHS)]
        found = json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
        if point in batched:
            case = f"{point} of {found['train']}, keeping {found['kept']:.3f}; "
            case += f"{found['edges']:.0f} edges, {found['nonzeros']:.0f} nonzeros"
            records += [Record(case, "cpu", "epoch of a run on one core", found["ms"], "ms")]
            records += [Record(case, "cpu", f"{what} of a batch", found[f"{what} of a batch"], what) for what in SIZES]
            continue
        case = f"{point}; {found['edges']:.0f} edges, {found['nonzeros']:.0f} nonzeros, {found['runs']:.0f} runs"
        records += [Record(case, "cpu", "epoch of a run on one core", found["ms"], "ms")]
        records += [Record(case, "cpu", "peak memory beyond the graph", found["MB"], "MB")]
    show(records, "cpu", options.json, options.save)


if __name__ == "__main__":
    main()
