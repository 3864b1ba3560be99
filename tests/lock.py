"""``make lock``: write ``requirements.lock``, every pinned package with the SHA-256 of its file, for this platform."""

import json
import platform
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "requirements.lock"
BUILD = ("editables",)  # what the build backend asks for when it makes an editable install
HEAD = """\
# Every package of constraints.txt, and the build backend, with the SHA-256 of its file on {platform}.
# Made by make lock. To install exactly these files, and nothing else:
#   pip install --require-hashes --no-deps -r requirements.lock
#   pip install --no-build-isolation --no-deps -e .
"""


def reported(*arguments: str) -> list[dict[str, Any]]:
    """What pip would install; it installs nothing."""
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet", "--report", "-"]
    done = subprocess.run([*command, *arguments], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    found: list[dict[str, Any]] = json.loads(done.stdout)["install"]
    return found


def line_of(package: dict[str, Any]) -> str:
    """A package with its version and hash."""
    about, digest = package["metadata"], package["download_info"]["archive_info"]["hashes"]["sha256"]
    return f"{about['name']}=={about['version']} --hash=sha256:{digest}"


def normalized(name: str) -> str:
    """A package's name as pip compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(text: str) -> dict[str, str]:
    """The versions of a constraints or lock file by name; of a build such as 1.0+cpu the version alone."""
    found = re.findall(r"^([\w.-]+)==([\w.]+)", text, re.M)
    return {normalized(name): version for name, version in found}


def main() -> None:
    """Write the file."""
    backend = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]["requires"]
    constraints = ("-c", "constraints.txt")
    packages = [*reported("--no-deps", "-r", "constraints.txt"), *reported(*constraints, *backend, *BUILD)]
    lines = {normalized(each["metadata"]["name"]): line_of(each) for each in packages}
    version = ".".join(platform.python_version_tuple()[:2])
    head = HEAD.format(platform=f"{platform.system()} {platform.machine()} with Python {version}")
    LOCK.write_text(head + "\n".join(line for _, line in sorted(lines.items())) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
