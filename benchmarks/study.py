"""How long a part of the study takes on this machine, trained from nothing by several processes on one store.

By default the plain and the P-reg rows (the official code's form) of GCN and MLP in Table 1, seven datasets, 20 values
of μ: 7,350 runs. Wall time, with the start of the processes and what they compile. On a GPU NVIDIA's MPS is started for
them where it is installed, since without it processes only take turns. Needs the benchmark data.
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
from propreg.study.choosing import choose
from propreg.study.experiment import load_experiment
from propreg.study.store import Store

ROWS = ("table1", "model=gcn", "model=mlp", "method=plain", "method=preg-reference")
SMALL = ("digits-smoke",)


def trained(folder: Path, experiment: str, only: tuple[str, ...], device: str, processes: int) -> tuple[int, float]:
    """How many runs were trained, and the seconds that took."""
    store = folder / "study.sqlite"
    command = [sys.executable, "-m", "propreg", "reproduce", experiment, "--device", device, "--store", str(store)]
    for filter_ in only:
        command += ["--only", filter_]
    start = time.perf_counter()
    crew = []
    for number in range(processes):
        with (folder / f"log-{number}").open("w") as log:
            crew.append(subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=_environment(folder)))
    failed = [number for number, process in enumerate(crew) if process.wait()]
    took = time.perf_counter() - start
    if failed:
        raise SystemExit(f"process {failed[0]} failed: {(folder / f'log-{failed[0]}').read_text()[-2000:]}")
    wanted = {run.key for line in choose(load_experiment(experiment), only) for run in line.runs()}
    with Store(store, "read") as done:
        missing = len(wanted - done.keys())
    if missing:
        raise SystemExit(f"{missing} of {len(wanted)} runs are missing, so that the time says nothing.")
    return len(wanted), took


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
    options.add_argument("--processes", type=int, default=3)
    options.add_argument("--experiment", help="another part of the study")
    options.add_argument("--only", action="append", default=[], help="and only these lines of it, as propreg has it")
    chosen = settled(options)
    experiment, *only = SMALL if chosen.quick else ROWS
    if chosen.experiment:
        experiment, only = chosen.experiment, chosen.only
    with tempfile.TemporaryDirectory() as name, shared_gpu(Path(name), chosen.device) as shared:
        runs, took = trained(Path(name), experiment, tuple(only), chosen.device, chosen.processes)
    case = " ".join([experiment, *only])
    how = f"{runs} runs, processes: {chosen.processes}{', under MPS' if shared else ''}"
    show([Record(case, chosen.device, how, took, "s")], chosen.device, chosen.json, chosen.save)


if __name__ == "__main__":
    main()
