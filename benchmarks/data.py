"""How long loading a dataset takes, and how much memory: ``python benchmarks/data.py [--quick] [--json]``.

Each case runs in a fresh process. Times and memory are those after the imports; the baseline of a time is reading the
same file with ``numpy.load`` and nothing else, and its ratio how many times longer loading takes (checks, digests and
building the graph included).
"""

import json
import subprocess
import sys
from typing import Any

from common import Record, arguments, show

CHILD = """
import json, re, sys, time, warnings
warnings.simplefilter("ignore")
import numpy as np
import propreg
from propreg.data.benchmarks.catalog import find
from propreg.data.benchmarks.load import load_molecules, load_node_graph
from propreg.data.benchmarks.locate import dataset_file

name, how, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])

def most():  # not ru_maxrss, which a child inherits from the process that started it
    try:
        return int(re.search(r"VmHWM:\\s*(\\d+)", open("/proc/self/status").read())[1]) / 1024
    except OSError:
        return float("nan")

def load():
    if how == "NumPy arrays":
        return load_molecules(name) if name.startswith("ogbg") else load_node_graph(name)
    return propreg.load_dataset(name, features=how)

def clock(function):
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return times

def plain():
    with np.load(dataset_file(find(name))) as file:
        return [file[member] for member in file.files]

if how != "NumPy arrays":
    import torch_geometric.data
    import propreg.data.own.pyg
before = most()
times = clock(load)
peak = most() - before
baseline = None if dataset_file(find(name)) is None else min(clock(plain))
print(json.dumps({"first": times[0], "best": min(times), "peak": peak, "plain": baseline}))
"""
CASES = [
    ("cora", "dense"), ("physics", "sparse"), ("cora", "NumPy arrays"), ("physics", "NumPy arrays"),
    ("digits", "NumPy arrays"), ("pubmed", "NumPy arrays"), ("computers", "NumPy arrays"),
    ("ogbg-molhiv", "NumPy arrays"), ("physics", "dense"),
]  # fmt: skip


def measure(name: str, how: str, rounds: int) -> dict[str, Any]:
    """Run one case in a process of its own."""
    command = [sys.executable, "-c", CHILD, name, how, str(rounds)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        sys.exit(f"{name} cannot be measured: {last}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def records(quick: bool) -> list[Record]:
    """All measurements."""
    rows = []
    for name, how in CASES[:2] if quick else CASES:
        found = measure(name, how, 2 if quick else 5)
        case = f"{name}, {how}"
        for metric in ("first", "best"):
            plain = found["plain"]
            baseline, ratio = (None, None) if plain is None else ("numpy.load", found[metric] / plain)
            rows.append(Record(case, "cpu", f"{metric} load", found[metric], "s", baseline, ratio))
        rows.append(Record(case, "cpu", "peak memory above import", found["peak"], "MB"))
    return rows


if __name__ == "__main__":
    options = arguments("Loading datasets: time and memory.")
    show(records(options.quick), "cpu", options.json, options.save)
