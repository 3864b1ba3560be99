"""How long commands take, each in a Python of its own, beside a Python that does nothing.

``python benchmarks/startup.py [--quick] [--json]``. On a quiet machine ``propreg --help`` is to answer in under 0.3 s,
``propreg table`` in under 2 s, ``propreg run`` in under a minute; what takes longest to import for the first is listed.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import Record, arguments, show

ROOT = Path(__file__).parent.parent
LIMIT = 0.3
COMMANDS = (["--help"], ["--version"], ["run", "--help"], ["doctor"], ["table", "table1"])
WRITING = (["report"], ["run"])  # each into a folder of its own, fewer times


def main() -> None:
    """Measure and print."""
    options = arguments(__doc__.splitlines()[0] if __doc__ else "")
    repeats = 5 if options.quick else 15
    bare = seconds([sys.executable, "-c", "pass"], repeats)
    records = [Record("python -c pass", "cpu", "median time", bare, "s")]
    for command in COMMANDS:
        taken = seconds([sys.executable, "-m", "propreg", *command], repeats)
        records.append(
            Record(f"propreg {' '.join(command)}", "cpu", "median time", taken, "s", "python -c pass", taken / bare)
        )
    for command in WRITING:
        with tempfile.TemporaryDirectory() as folder:
            taken = seconds(
                [sys.executable, "-m", "propreg", *command, "-o", f"{folder}/out"], 1 if options.quick else 3
            )
        records.append(Record(f"propreg {' '.join(command)}", "cpu", "median time", taken, "s"))
    show(records, "cpu", options.json, options.save)
    if not options.json:
        verdict = "within" if records[1].value < LIMIT else "over"
        print(f"\npropreg --help: {records[1].value:.2f} s, {verdict} the limit of {LIMIT} s. Its slowest imports:")
        print(slowest_imports())


def seconds(command: list[str], repeats: int) -> float:
    """The median wall time of a command, after one run that fills the caches."""
    times = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:])


def slowest_imports(count: int = 15) -> str:
    """The imports of ``propreg --help`` that take longest, what they import included, in milliseconds."""
    command = [sys.executable, "-X", "importtime", "-m", "propreg", "--help"]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=True, env={**os.environ, "LC_ALL": "C"}
    )
    rows = [line.split("|") for line in done.stderr.splitlines() if line.startswith("import time:")][1:]
    ranked = sorted(rows, key=lambda row: -int(row[1]))[:count]
    return "\n".join(f"{int(row[1]) / 1000:8.1f} ms  {row[2].strip()}" for row in ranked)


if __name__ == "__main__":
    main()
