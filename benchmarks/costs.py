"""What a training of each method of Table 2 costs: time per epoch and peak memory, alone and per run of a batch.

Plain and with P-reg, with the settings of the table, next to GCN and GAT. The time of an epoch is the difference of two
trainings over the difference of their epochs, so that what happens once per training does not count. The batch is 10
seeds × 8 strengths. Memory is the peak of the tensors on a GPU, the graph included, and in a batch what each further
run adds; torch counts none on a CPU. Needs the benchmark data.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch

from common import Record, parser, settled, show
from propreg.engine import Problem, Replica
from propreg.engine.training.batches import Options, train_all
from propreg.store.run import Cell, Run
from propreg.study.execute.trainer import Trainer
from propreg.study.spec.experiment import Line
from propreg.study.tables.costs import EPOCH, EPOCH_IN_BATCH, PEAK, PEAK_IN_BATCH, case_of, compared

STRENGTHS = (0.01, 0.03, 0.05, 0.1, 0.2, 0.3, 0.5, 0.8)
EPOCHS, BATCH = (100, 300), (10, len(STRENGTHS))
QUICK_EPOCHS, QUICK_BATCH = (2, 4), (1, 2)


def train(problem: Problem, cell: Cell, replicas: Sequence[Replica], epochs: int) -> tuple[float, int, int]:
    """Train a batch for so many epochs: seconds, epochs trained (a method may have its own number), peak bytes."""
    cuda = problem.device.type == "cuda"
    if cuda:
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    started = time.perf_counter()
    protocol = replace(cell.protocol, rule="last", max_epochs=epochs)
    options = Options(batch=len(replicas))
    results = [result for _, result in train_all(problem, cell.model, cell.method, replicas, protocol, options)]
    if cuda:
        torch.cuda.synchronize()
    taken = time.perf_counter() - started
    return taken, max(result.epochs for result in results), torch.cuda.max_memory_allocated() if cuda else 0


def per_epoch(problem: Problem, cell: Cell, replicas: Sequence[Replica], epochs: tuple[int, int]) -> tuple[float, int]:
    """Milliseconds of an epoch of a batch, and its peak memory in bytes."""
    train(problem, cell, replicas, epochs[0])  # kernels compile and tables are built
    few, many = (train(problem, cell, replicas, count) for count in epochs)
    apart, more = many[0] - few[0], many[1] - few[1]
    # A method that is not trained has as many epochs in both, and noise may hide the few of a quick measurement.
    return 1e3 * (apart / more if more > 0 and apart > 0 else many[0] / many[1]), max(few[2], many[2])


def measure(
    line: Line, trainer: Trainer, epochs: tuple[int, int] = EPOCHS, batch: tuple[int, int] = BATCH
) -> Iterator[Record]:
    """The records of a line: alone at its first strength, and in a batch of seeds × strengths."""
    cell, device = line.cells[0], trainer.device.type
    plain = line.method.method == "plain"
    seeds, strengths = batch
    runs = [
        Run(cell if plain else replace(cell, strength=mu), line.splits[0], seed)
        for mu in STRENGTHS[:strengths]
        for seed in range(seeds)
    ]
    problem = trainer.problem(tuple(runs))
    replicas = [run.replica() for run in runs]
    alone, alone_bytes = per_epoch(problem, cell, replicas[:1], epochs)
    together, together_bytes = per_epoch(problem, cell, replicas, epochs)
    case = case_of(line)
    yield Record(case, device, EPOCH, alone, "ms")
    each = together / len(runs)
    yield Record(case, device, EPOCH_IN_BATCH, each, "ms", "alone", alone / each)
    if device == "cuda":
        yield Record(case, device, PEAK, alone_bytes / 1e6, "MB")
        yield Record(case, device, PEAK_IN_BATCH, (together_bytes - alone_bytes) / 1e6 / (len(runs) - 1), "MB")


def main() -> None:
    """Measure and print."""
    options = parser(__doc__.splitlines()[0] if __doc__ else "")
    options.add_argument("--models", nargs="*", help="only these, for example gcn grand")
    given = settled(options)
    trainer = Trainer(given.device)
    lines = [line for line in compared() if given.models is None or line.model in given.models]
    if given.quick:
        lines = [line for line in lines if line.dataset == "citeseer" and line.model in (given.models or ["gcn"])]
    sizes = (QUICK_EPOCHS, QUICK_BATCH) if given.quick else (EPOCHS, BATCH)
    show([record for line in lines for record in measure(line, trainer, *sizes)], given.device, given.json, given.save)


if __name__ == "__main__":
    main()
