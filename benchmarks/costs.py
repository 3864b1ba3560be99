"""What a training of each method of Table 2 costs: time per epoch and peak memory, alone and per run of a batch.

Plain and with P-reg, with the settings of the table, next to GCN and GAT. Epochs are timed after the first eight, in
which kernels compile and an epoch is recorded, until half a second has passed. The batch is 10 seeds × 8 strengths;
what is no program, such as GAM, has none. Memory is the peak of the tensors on a GPU, with the graph, and in a batch
what each further run adds; torch counts none on a CPU. ``--save`` writes after every line. Needs the benchmark data.
"""

import gc
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch

from common import Record, parser, settled, show, write
from propreg.engine import Problem, Replica
from propreg.engine.training.batches import Options, train_all
from propreg.store.run import Cell, Run
from propreg.study.execute.trainer import Trainer
from propreg.study.spec.part import Line
from propreg.study.tables.costs import EPOCH, EPOCH_IN_BATCH, PEAK, PEAK_IN_BATCH, case_of, compared

STRENGTHS = (0.01, 0.03, 0.05, 0.1, 0.2, 0.3, 0.5, 0.8)
EVERY = 4  # epochs between two looks at the clock, each of which waits for the GPU


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    warm: int = 8
    seconds: float = 0.5
    seeds: int = 10
    strengths: int = len(STRENGTHS)


QUICK, QUICKLY = Size(warm=2, seconds=0.05, seeds=1, strengths=2), ("gcn", "appnp")


class Clock:
    """Called once per epoch of a training; True ends it when it has been timed for long enough."""

    def __init__(self, size: Size, device: torch.device) -> None:
        self.size, self.device = size, device
        self.epochs, self.started, self.first = 0, self._now(), 0.0
        self.seconds, self.timed = 0.0, 0

    def __call__(self) -> bool:
        self.epochs += 1
        since = self.epochs - self.size.warm
        if since == 0:
            self.first = self._now()
        elif since > 0 and since % EVERY == 0:
            self.seconds, self.timed = self._now() - self.first, since
        return self.seconds > self.size.seconds

    def per_epoch(self, epochs: int) -> float:
        """Milliseconds; of a training that ended before an epoch was timed, of the whole of it."""
        if self.timed:
            return 1e3 * self.seconds / self.timed
        return 1e3 * (self._now() - self.started) / max(epochs, 1)

    def _now(self) -> float:
        if self.device.type == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter()


def train(problem: Problem, cell: Cell, replicas: Sequence[Replica], size: Size) -> tuple[float, int]:
    """Milliseconds of an epoch of a batch, and its peak memory in bytes."""
    held(problem.device)
    clock = Clock(size, problem.device)
    options = Options(batch=len(replicas), workers=1, stop=clock)
    protocol = replace(cell.protocol, rule="last")  # so that no run leaves the batch
    results = [result for _, result in train_all(problem, cell.model, cell.method, replicas, protocol, options)]
    epochs = max((result.epochs for result in results), default=0)
    return clock.per_epoch(epochs), torch.cuda.max_memory_allocated() if problem.device.type == "cuda" else 0


def held(device: torch.device) -> int:
    """The bytes that are held once nothing is held in vain; the peak is counted anew from here."""
    gc.collect()
    if device.type != "cuda":
        return 0
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    return torch.cuda.memory_allocated()


def measure(line: Line, trainer: Trainer, size: Size) -> Iterator[Record]:
    """The records of a line: alone at its first strength, and in a batch of seeds × strengths."""
    cell, device, case = line.cells[0], trainer.device.type, case_of(line)
    before = held(trainer.device)  # without the graph, which counts
    plain = line.method.method == "plain"
    cells = [cell if plain else replace(cell, strength=mu) for mu in STRENGTHS[: size.strengths]]
    runs = [Run(each, line.splits[0], seed) for each in cells for seed in range(size.seeds)]
    problem = trainer.problem(tuple(runs))
    replicas = [run.replica() for run in runs]
    alone, alone_bytes = train(problem, cell, replicas[:1], size)
    yield Record(case, device, EPOCH, alone, "ms")
    if device == "cuda":
        yield Record(case, device, PEAK, (alone_bytes - before) / 1e6, "MB")
    if cell.model.architecture.trainer is not None:
        return
    together, together_bytes = train(problem, cell, replicas, size)
    each = together / len(runs)
    yield Record(case, device, EPOCH_IN_BATCH, each, "ms", "alone", alone / each)
    if device == "cuda":
        yield Record(case, device, PEAK_IN_BATCH, (together_bytes - alone_bytes) / 1e6 / (len(runs) - 1), "MB")


def main() -> None:
    """Measure and print."""
    options = parser(__doc__.splitlines()[0] if __doc__ else "")
    options.add_argument("--models", nargs="*", help="only these, for example gcn grand")
    options.add_argument("--datasets", nargs="*", help="only these, for example cora")
    given = settled(options)
    models = given.models or (QUICKLY if given.quick else None)
    lines = [line for line in compared() if models is None or line.model in models]
    datasets = given.datasets or (["citeseer"] if given.quick else None)
    lines = [line for line in lines if datasets is None or line.dataset in datasets]
    size = QUICK if given.quick else Size()
    records: list[Record] = []
    for line in lines:
        records += measure(line, Trainer(given.device), size)
        write(records, given.device, given.save)
    show(records, given.device, given.json, given.save)


if __name__ == "__main__":
    main()
