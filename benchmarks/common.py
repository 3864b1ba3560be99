"""What every benchmark shares: timing, records, a table for people and ``--json`` for scripts."""

import argparse
import contextlib
import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import torch


def times(ratio: float) -> str:
    """A ratio in three digits: 1.06×, 48.8×, 1,070×."""
    return f"{float(f'{ratio:.3g}'):,.0f}×" if ratio >= 100 else f"{ratio:.3g}×"


@dataclass(frozen=True)
class Record:
    """One measurement; ``ratio`` is against ``baseline``: times better, or times its value, as ``metric`` says."""

    case: str
    device: str
    metric: str
    value: float
    unit: str
    baseline: str | None = None
    ratio: float | None = None


def arguments(description: str) -> argparse.Namespace:
    """Parse the options that every benchmark has."""
    return settled(parser(description))


def parser(description: str) -> argparse.ArgumentParser:
    """The options that every benchmark has."""
    options = argparse.ArgumentParser(description=description)
    options.add_argument("--quick", action="store_true", help="under a minute")
    options.add_argument("--json", action="store_true", help="print a list of records instead of a table")
    options.add_argument("--save", type=Path, help="also write the records, and the machine they are of, to this file")
    default = "cuda" if torch.cuda.is_available() else "cpu"
    options.add_argument("--device", default=default, choices=("cpu", "cuda"))
    options.add_argument("--threads", type=int, default=None, help="CPU threads (default: torch's own choice)")
    return options


def settled(options: argparse.ArgumentParser) -> argparse.Namespace:
    """Parse the options, and set the number of threads."""
    given = options.parse_args()
    if given.threads:
        torch.set_num_threads(given.threads)
    return given


def seconds(step: Callable[[], object], device: str, repeats: int = 15) -> float:
    """The median time of a step, after two runs to warm up."""
    for _ in range(2):
        step()
    times = []
    for _ in range(repeats):
        _wait(device)
        start = time.perf_counter()
        step()
        _wait(device)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def seconds_per_epoch(epoch: Callable[[], object], device: str, epochs: int, warm: int = 4) -> float:
    """The time of an epoch, after a few to warm up."""
    for _ in range(warm):
        epoch()
    _wait(device)
    start = time.perf_counter()
    for _ in range(epochs):
        epoch()
    _wait(device)
    return (time.perf_counter() - start) / epochs


def peak_bytes(step: Callable[[], object]) -> int:
    """The peak GPU memory of a step, including graph and inputs."""
    step()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    step()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated()


def machine(device: str) -> str:
    """The machine of the measurements, in words."""
    if device == "cuda":
        return f"{torch.cuda.get_device_name()}, torch {torch.__version__}"
    return f"{_processor()}, {os.cpu_count()} cores, torch {torch.__version__}"


def _processor() -> str:
    """The processor's name, if the system reports it."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.machine()


def show(records: list[Record], device: str, as_json: bool, save: Path | None = None) -> None:
    """Print the records: a list for scripts or a table for people; and write them to a file."""
    write(records, device, save)
    if as_json:
        print(json.dumps([asdict(r) for r in records], indent=1))
        return
    print(f"on {machine(device)}\n")
    rows = [("case", "metric", "value", "against", "ratio")]
    for r in records:
        ratio = "" if r.ratio is None else times(r.ratio)
        rows.append((r.case, r.metric, f"{r.value:.4g} {r.unit}", r.baseline or "", ratio))
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def write(records: list[Record], device: str, file: Path | None) -> None:
    """Write the records, and the machine they are of, to a file if there is one."""
    if file:
        found = {"machine": machine(device), "records": [asdict(r) for r in records]}
        file.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")


def _wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()
