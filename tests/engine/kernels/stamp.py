"""The stamp of a GPU run: which kernels were last tested on a GPU, and on which.

``make gpu`` runs the engine's tests with a CUDA device and writes the stamp, which is committed; ``make test``, which
has no GPU, compares its digest with the kernels as they are.
"""

import hashlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parents[3]
ENGINE = ROOT / "src" / "propreg" / "engine"
STAMP = Path(__file__).with_name("GPU_STAMP.json")


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


def counts(report: Path) -> dict[str, int]:
    """Passed and skipped tests of a JUnit report."""
    suites = list(ElementTree.parse(report).getroot().iter("testsuite"))
    total, skipped, bad = (
        sum(int(suite.get(name, 0)) for suite in suites for name in names)
        for names in (("tests",), ("skipped",), ("failures", "errors"))
    )
    return {"passed": total - skipped - bad, "skipped": skipped}


def main() -> None:
    """Run the engine's tests on the GPU, and write the stamp if they pass."""
    import torch

    from propreg.engine import kernels

    if not torch.cuda.is_available() or not kernels.installed():
        sys.exit("make gpu needs a CUDA device and Triton: run it on a machine with a GPU.")
    import triton

    before = digest(sources())
    checks = sorted(Path(__file__).parent.glob("check_*.py"))  # test_interpreted.py runs them once more, by themselves
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-k", "not twins", f"--junitxml={report}", "tests/engine"]
        done = subprocess.run([*command, *map(str, checks)], cwd=ROOT, check=False)
        if done.returncode:
            sys.exit("The tests failed on this GPU: no stamp is written.")
        tests = counts(report)
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
