"""Three nodes of Ray on this machine, and a driver on them: programs of their own, so that no test imports Ray.

``python ray_nodes.py cluster`` prints the cluster's address, removes a node for each line that it reads, and ends with
its input. ``python ray_nodes.py drive ADDRESS STORE FOLDER [how]`` trains the smoke experiment on it.
"""

import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator, Set
from functools import partial
from pathlib import Path

from propreg.store.batch import Batch
from propreg.store.errors import StudyError
from propreg.store.run import Record
from propreg.store.store import Store
from propreg.study.execute import cluster
from propreg.study.execute.runner import Progress, run_sweep
from propreg.study.execute.trainer import Trainer
from study.sweeping import batches

SMALL = {"num_cpus": 1, "object_store_memory": 80_000_000}


class Unruly(Trainer):
    """Trains for real, hands runs back in another order each time, and is killed at its first batch of P-reg."""

    def __init__(self, folder: Path) -> None:
        super().__init__("cpu")
        self._folder = folder

    def train(
        self, batch: Batch, stop: Callable[[], bool] = lambda: False, known: Set[str] = frozenset()
    ) -> Iterator[Record]:
        """Shuffled, and slowly enough that something can be broken meanwhile."""
        found = list(super().train(batch, stop, known))
        random.shuffle(found)
        for place, record in enumerate(found):
            time.sleep(0.05)
            if place == 7 and "preg" in batch.title:
                self._die_once()
            yield record

    def _die_once(self) -> None:
        try:
            (self._folder / "killed").touch(exist_ok=False)
        except FileExistsError:
            return
        os.kill(os.getpid(), signal.SIGKILL)


def keep() -> None:
    """The cluster."""
    from ray.cluster_utils import Cluster

    nodes = Cluster(initialize_head=True, head_node_args={**SMALL, "include_dashboard": False})
    others = [nodes.add_node(**SMALL) for _ in range(2)]
    print(nodes.address, flush=True)
    for _ in sys.stdin:
        nodes.remove_node(others.pop())
        print("removed", flush=True)
    nodes.shutdown()


def drive(address: str, path: str, folder: str, how: str = "") -> None:
    """Train what is missing; ``how`` is something that goes wrong with the driver."""
    if how == "other-engine":
        vars(cluster)["engine_digest"] = lambda: "another"

    def tell(progress: Progress) -> None:
        if progress.event == "lost":
            print(progress.note, flush=True)

    with Store(path) as store:
        if how == "full":
            (pages,) = store.db.execute("PRAGMA page_count").fetchone()
            store.db.execute(f"PRAGMA max_page_count = {pages + 4}")
        executor = cluster.RayExecutor(store, partial(Unruly, Path(folder)), address, cluster.Share(memory=2.0))
        try:
            report = run_sweep(batches(), store, executor, tell=tell)
        except StudyError as error:
            sys.exit(str(error))
    print(report.reason)


if __name__ == "__main__":
    if sys.argv[1] == "cluster":
        keep()
    else:
        drive(*sys.argv[2:])
