"""The stamp of a GPU run: which kernels were last tested on a GPU, and on which.

``make gpu`` runs the engine's tests with a CUDA device and writes the stamp, which is committed; ``make test``, which
has no GPU, compares its digest with the kernels as they are.
"""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parents[3]
ENGINE = ROOT / "src" / "propreg" / "engine"
STAMP = Path(__file__).with_name("GPU_STAMP.json")
NOTHING_COLLECTED = 5  # pytest's exit code for a file of which -k leaves nothing


def sources() -> list[Path]:
    """The kernels, and the operations whose twins they are."""
    return sorted([*(ENGINE / "kernels").rglob("*.py"), *(ENGINE / "ops").glob("*.py")])


def digest(paths: Iterable[Path]) -> str:
    """SHA-256 of these files of the repository: their names and their text."""
    sha = hashlib.sha256()
    for path in paths:
        text = path.read_text(encoding="utf-8").encode()
        sha.update(f"{path.relative_to(ROOT).as_posix()}\n{len(text)}\n".encode() + text)
    return sha.hexdigest()


def staleness(stamp: Path, paths: Iterable[Path]) -> str:
    """Why the stamp is not that of these files; empty if it is."""
    if not stamp.exists():
        return "no GPU run of the kernels is recorded: run make gpu"
    if json.loads(stamp.read_text())["digest"] != digest(paths):
        return "kernels changed since the last GPU run: run make gpu"
    return ""


def counts(reports: Iterable[Path]) -> dict[str, int]:
    """Passed and skipped tests of JUnit reports."""
    suites = [suite for report in reports for suite in ElementTree.parse(report).getroot().iter("testsuite")]
    total, skipped, bad = (
        sum(int(suite.get(name, 0)) for suite in suites for name in names)
        for names in (("tests",), ("skipped",), ("failures", "errors"))
    )
    return {"passed": total - skipped - bad, "skipped": skipped}


def run_each(files: Sequence[Path], folder: Path) -> dict[str, int]:
    """Run each file's tests in a process of its own, side by side: most of their time is the compiler's, on one core.

    Raises:
        SystemExit: If a test fails, with its process's output printed.
    """

    def run(number: int) -> tuple[Path, subprocess.CompletedProcess[str]]:
        report = folder / f"{number}.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-k", "not twins", f"--junitxml={report}", str(files[number])]
        return report, subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)

    with ThreadPoolExecutor(max(1, (os.cpu_count() or 1) * 3 // 4)) as pool:
        done = list(pool.map(run, range(len(files))))
    failed = [ended.stdout + ended.stderr for _, ended in done if ended.returncode not in (0, NOTHING_COLLECTED)]
    if failed:
        print(*failed, sep="\n")
        sys.exit("The tests failed on this GPU: no stamp is written.")
    return counts(report for report, _ in done)


def main() -> None:
    """Run the engine's tests on the GPU, and write the stamp if they pass."""
    import torch

    from propreg.engine import kernels

    if not torch.cuda.is_available() or not kernels.installed():
        sys.exit("make gpu needs a CUDA device and Triton: run it on a machine with a GPU.")
    import triton

    before = digest(sources())
    checks = Path(__file__).parent.glob("check_*.py")  # test_interpreted.py runs them once more, by themselves
    files = [*checks, *(ROOT / "tests" / "engine").rglob("test_*.py")]
    with tempfile.TemporaryDirectory() as folder:
        tests = run_each(sorted(files, key=lambda path: -path.stat().st_size), Path(folder))
    if digest(sources()) != before:
        sys.exit("The kernels changed while they were tested: run make gpu again.")
    stamp = {
        "digest": before,
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "triton": triton.__version__,
        "tests": tests,
    }
    STAMP.write_text(json.dumps(stamp, indent=1) + "\n")
    print(f"Wrote {STAMP.relative_to(ROOT)}: {tests['passed']} tests passed, {tests['skipped']} were skipped.")


if __name__ == "__main__":
    main()
