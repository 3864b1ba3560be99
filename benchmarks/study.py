"""How long a part of the study takes on this machine, trained from nothing by several processes on one store.

By default the plain and the P-reg rows (the official code's form) of GCN and MLP in Table 1, seven datasets, 20 values
of μ: 7,350 runs. Wall time, with the start of the processes and what they have to compile. On a GPU NVIDIA's MPS is
started for them where it is installed, since without it processes only take turns. Needs the benchmark data.

``--share 6`` trains every sixth of the batches, ordered by what they cost, and says how long all would take. What a
batch costs is the numbers that an epoch of it touches, times the epochs that its runs took in the record.
"""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from common import Record, parser, settled, show
from propreg.store.batch import Batch, cost_of
from propreg.store.results import Results, load_results
from propreg.store.store import Store
from propreg.study.execute.runner import reproduce
from propreg.study.execute.trainer import Trainer
from propreg.study.spec.batches import cut
from propreg.study.spec.experiment import load_experiment, select_lines

ROWS = ("table1", "model=gcn", "model=mlp", "method=plain", "method=preg-reference")
SMALL = ("digits-smoke",)
RESULTS = Path(__file__).parents[1] / "results"


def batches_of(part: list[str]) -> list[Batch]:
    """All batches of a part of an experiment."""
    experiment, *only = part
    return cut(select_lines(load_experiment(experiment), only))


def cost(batch: Batch, recorded: Results) -> float:
    """How long a batch takes beside others."""
    total = 0.0
    for run in batch.runs:
        outcome = recorded.outcome(run.cell, run.split, run.seed)
        if outcome is None:
            raise SystemExit(f"{run.key[:16]} is not in {RESULTS.name}/: nobody knows what share of the work it is.")
        total += cost_of(run.cell) * outcome.epochs
    return total


def shared_out(batches: list[Batch], share: int) -> tuple[list[Batch], float]:
    """Every so many batches, from the middle of the first so many on, and what part of the work they are."""
    if share == 1:
        return batches, 1.0
    recorded = load_results(RESULTS)
    costs = {batch.id: cost(batch, recorded) for batch in batches}
    ordered = sorted(batches, key=lambda batch: (-costs[batch.id], batch.id))
    chosen = ordered[share // 2 :: share]
    if not chosen:
        raise SystemExit(f"There are only {len(batches)} batches: take a larger share than one of {share}.")
    return chosen, sum(costs[b.id] for b in chosen) / sum(costs.values())


def trained(folder: Path, part: list[str], device: str, processes: int, share: int) -> tuple[int, float]:
    """How many runs were trained, and the seconds that took."""
    store = folder / "study.sqlite"
    command = [sys.executable, __file__, *("--device", device, "--share", str(share), "--work", str(store)), *part]
    start = time.perf_counter()
    crew = []
    for number in range(processes):
        with (folder / f"log-{number}").open("w") as log:
            crew.append(subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=_environment(folder)))
    failed = [number for number, process in enumerate(crew) if process.wait()]
    took = time.perf_counter() - start
    if failed:
        raise SystemExit(f"process {failed[0]} failed: {(folder / f'log-{failed[0]}').read_text()[-2000:]}")
    wanted = {run.key for batch in shared_out(batches_of(part), share)[0] for run in batch.runs}
    with Store(store, "read") as done:
        missing = len(wanted - done.keys())
    if missing:
        raise SystemExit(f"{missing} of {len(wanted)} runs are missing, so that the time says nothing.")
    return len(wanted), took


def work(store: Path, part: list[str], device: str, share: int) -> None:
    """What one of the processes does."""
    chosen, _ = shared_out(batches_of(part), share)
    with Store(store) as opened:
        reproduce(chosen, opened, lambda: Trainer(device))


@contextlib.contextmanager
def shared_gpu(folder: Path, device: str) -> Iterator[bool]:
    """Let MPS run, if it is there and wanted, and say so."""
    control = shutil.which("nvidia-cuda-mps-control")
    if device != "cuda" or control is None:
        yield False
        return
    for name in ("mps", "mps-log"):
        (folder / name).mkdir()
    subprocess.run([control, "-d"], check=True, env=_environment(folder))
    try:
        yield True
    finally:
        subprocess.run([control], input="quit\n", text=True, check=False, env=_environment(folder))


def _environment(folder: Path) -> dict[str, str]:
    paths = {"CUDA_MPS_PIPE_DIRECTORY": str(folder / "mps"), "CUDA_MPS_LOG_DIRECTORY": str(folder / "mps-log")}
    return {**os.environ, **paths}


def main() -> None:
    """Measure and print."""
    options = parser(__doc__.splitlines()[0] if __doc__ else "")
    options.add_argument("part", nargs="*", help="an experiment, and only these lines of it: table1 model=gcn")
    options.add_argument("--processes", type=int, default=3)
    options.add_argument("--share", type=int, default=1, help="train one of so many batches")
    options.add_argument("--work", type=Path, help="be one of the processes on this store")
    chosen = settled(options)
    part = chosen.part or list(SMALL if chosen.quick else ROWS)
    if chosen.work:
        work(chosen.work, part, chosen.device, chosen.share)
        return
    with tempfile.TemporaryDirectory() as name, shared_gpu(Path(name), chosen.device) as shared:
        runs, took = trained(Path(name), part, chosen.device, chosen.processes, chosen.share)
    how = f"{runs} runs, processes: {chosen.processes}{', under MPS' if shared else ''}"
    records = [Record(" ".join(part), chosen.device, how, took, "s")]
    if chosen.share > 1:
        _, weight = shared_out(batches_of(part), chosen.share)
        all_of_it = Record(" ".join(part), chosen.device, f"all of it, by {weight:.1%} of the work", took / weight, "s")
        records.append(all_of_it)
    show(records, chosen.device, chosen.json, chosen.save)


if __name__ == "__main__":
    main()
