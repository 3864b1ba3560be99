"""What has to hold before a release: the files build, and the wheel works alone in an empty environment and folder.

Run it with ``make release``; it is also what the workflow in ``.github/workflows/release.yml`` runs.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIBRARY = """
import sys, torch, propreg
z = torch.randn(3, 2, requires_grad=True)
propreg.preg(z, torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])).backward()
assert z.grad.isfinite().all()
assert not {"torch_geometric", "scipy", "typer"} & set(sys.modules)
"""


def run(*command: str | Path, folder: Path = ROOT) -> None:
    """Run a command and end with it if it fails."""
    print("$", *command, flush=True)
    done = subprocess.run([str(part) for part in command], cwd=folder, check=False, env=_environment())
    if done.returncode:
        sys.exit(f"The release is not ready: {command[0]} ended with {done.returncode}.")


def main() -> None:
    """Build, check, install, run."""
    python, target = Path(sys.executable), ROOT / "dist"
    shutil.rmtree(target, ignore_errors=True)
    run(python, "-m", "build", "--outdir", target)
    run(python, "-m", "twine", "check", "--strict", *sorted(target.iterdir()))
    (wheel,) = target.glob("*.whl")
    run(python, "-m", "check_wheel_contents", wheel)
    with tempfile.TemporaryDirectory() as folder:
        here, empty = Path(folder) / "environment", Path(folder) / "empty"
        empty.mkdir()
        venv.create(here, with_pip=True)
        inside = here / ("Scripts" if os.name == "nt" else "bin")
        install: list[str | Path] = [
            inside / "python",
            "-m",
            "pip",
            "install",
            "--quiet",
            "-c",
            ROOT / "constraints.txt",
        ]
        run(*install, wheel)
        run(inside / "python", "-c", LIBRARY, folder=empty)
        run(*install, f"{wheel}[fit,cli,report]")
        run(inside / "propreg", "doctor", folder=empty)
        run(inside / "propreg", "run", folder=empty)
        run(inside / "propreg", "table", "table1", folder=empty)
        run(inside / "propreg", "report", "--study", folder=empty)
    print(f"Ready: {', '.join(sorted(file.name for file in target.iterdir()))}.")


def _environment() -> dict[str, str]:
    """That of a user: nothing of this checkout, and no data on disk."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PROPREG_"))}


if __name__ == "__main__":
    main()
