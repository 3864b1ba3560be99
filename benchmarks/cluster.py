"""What a Ray cluster costs a sweep: the overhead of a batch, and three workers against one, on tasks of a fixed time.

Each node is a process of Ray on this machine with one CPU, each batch sleeps for the same time and hands back its 20
runs one after the other: so it is Ray, the driver and the store that are measured, however few cores there are. From
the first batch that is begun to the last that ends; starting Ray and its workers is reported beside it. Needs Ray.
"""

import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from common import Record, arguments, show
from propreg.store.batch import Batch
from propreg.store.run import Outcome
from propreg.store.run import Record as Finished
from propreg.store.store import Store
from propreg.study.execute.cluster import RayExecutor, Share
from propreg.study.execute.runner import Progress, run_sweep
from propreg.study.spec.batches import cut
from propreg.study.spec.experiment import read_experiment

SWEEP = """
[[parts]]
datasets = ["digits"]
models = ["gcn"]
methods = ["plain"]
splits = 10
seeds = {seeds}
batch = 20
"""
SECONDS = 0.5
NODE = {"num_cpus": 1, "object_store_memory": 80_000_000}


class Sleeps:
    """A trainer whose batches take a fixed time."""

    def about(self) -> dict[str, Any]:
        """Nothing in particular."""
        return {"device": "none"}

    def kept(self, batch: Batch) -> None:
        """Nothing."""

    def train(self, batch: Batch, *_: object) -> Iterator[Finished]:
        """Sleep before each run."""
        for run in batch.runs:
            time.sleep(SECONDS / len(batch.runs))
            yield Finished(run, Outcome(1, 300, 1, 1447, 1, 1), batch.id)


def swept(workers: int, batches: list[Batch]) -> tuple[float, float]:
    """The seconds until the first batch begins, and from there to the last one's end."""
    from ray.cluster_utils import Cluster

    nodes = Cluster(initialize_head=True, head_node_args={**NODE, "include_dashboard": False})
    for _ in range(workers - 1):
        nodes.add_node(**NODE)
    moments = list[float]()

    def tell(progress: Progress) -> None:
        if progress.event in ("batch", "batch done"):
            moments.append(time.perf_counter())

    with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "store.sqlite") as store:
        started = time.perf_counter()
        executor = RayExecutor(store, partial(Sleeps), nodes.address, Share(gpus=0.0))
        report = run_sweep(batches, store, executor, tell=tell)
    nodes.shutdown()
    if report.missing:
        raise SystemExit(f"{report.missing} runs are missing: {report.skipped}")
    return moments[0] - started, moments[-1] - moments[0]


def main() -> None:
    """Measure and print."""
    options = arguments(__doc__.splitlines()[0] if __doc__ else "")
    batches = cut(read_experiment("cluster", SWEEP.format(seeds=24 if options.quick else 120)).lines)
    swept(1, batches[:2])  # a warm file cache: the first start reads Ray from the disk
    (begins, alone), (_, three) = swept(1, batches), swept(3, batches)
    over = alone / len(batches) - SECONDS
    case = f"{len(batches)} batches of {SECONDS:g} s and {len(batches[0].runs)} runs"
    records = [
        Record(case, "cpu", "start of a worker", begins, "s"),
        Record(case, "cpu", "overhead of a batch", 1e3 * over, "ms"),
        Record(case, "cpu", "sweep, one worker", alone, "s"),
        Record(case, "cpu", "sweep, three workers", three, "s", "one worker", alone / three),
    ]
    show(records, "cpu", options.json, options.save)


if __name__ == "__main__":
    main()
