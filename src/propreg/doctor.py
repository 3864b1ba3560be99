"""The examination of an installation: packages, devices, data, folders, and the command that fixes each problem.

Nothing here imports torch, PyG or NumPy, or starts CUDA, in this process.
"""

import importlib.util
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from propreg import __version__
from propreg.data.benchmarks import catalog
from propreg.data.benchmarks.locate import VARIABLE, cache_folder, dataset_file, splits_file
from propreg.data.errors import DataError
from propreg.devices import cores

LITTLE_SPACE = 2 << 30  # bytes; all datasets together take less
TIMEOUT = 180.0
INSTALL = "pip install 'propreg[all]'"
GET_CUDA = "install a CUDA build of torch: see pytorch.org, Get started"
PURPOSES = {
    "torch": "the library itself",
    "numpy": "the library itself",
    "torch_geometric": "Data objects, and the models that fit returns",
    "scikit-learn": "the digits; t-SNE",
    "scipy": "required by scikit-learn",
    "matplotlib": "figures",
    "Jinja2": "pages",
    "typer": "this command",
    "rich": "progress bars",
    "rdkit": "molecules from SMILES",
}
OPTIONAL = frozenset({"rdkit"})
"""What an installation is healthy without."""
_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:>=\s*([0-9][0-9.]*))?")

# Runs in another process: CUDA is started there, and a crash stays there. It computes a small product, since a driver
# that is too old fails only then.
_PROBE = """
import json, torch
found = {"torch": torch.__version__, "built_for": torch.version.cuda or torch.version.hip, "devices": []}
try:
    for number in range(torch.cuda.device_count()):
        about = torch.cuda.get_device_properties(number)
        torch.ones(8, 8, device=f"cuda:{number}").mm(torch.ones(8, 8, device=f"cuda:{number}")).sum().item()
        found["devices"].append({"name": about.name, "memory": about.total_memory})
except Exception as error:
    found["error"] = str(error).strip().splitlines()[0]
print(json.dumps(found))
"""


@dataclass(frozen=True)
class Remark:
    """What is missing and the command that fixes it; a ``problem`` stops a command from working, a hint does not."""

    problem: bool
    what: str
    fix: str


@dataclass(frozen=True)
class Package:
    """A package that propreg uses; ``version`` is None if it is not installed."""

    name: str
    purpose: str
    version: str | None
    least: str | None

    @property
    def fine(self) -> bool:
        """Whether it is installed and new enough; without an optional one all is well, too."""
        if self.version is None:
            return self.name in OPTIONAL
        return self.least is None or numbers(self.version) >= numbers(self.least)


@dataclass(frozen=True)
class Gpu:
    """A device that works."""

    name: str
    memory: int


@dataclass(frozen=True)
class Devices:
    """The result of the probe; ``error`` is the reason if it, or a device, did not work."""

    built_for: str | None = None
    gpus: tuple[Gpu, ...] = ()
    error: str | None = None


@dataclass(frozen=True)
class Found:
    """A dataset, its file (None: not on disk), and whether its official splits are on disk."""

    name: str
    where: str | None
    splits: bool | None  # None: its one split is in the same file

    @property
    def complete(self) -> bool:
        """Whether nothing needs to be downloaded."""
        return self.where is not None and self.splits is not False


@dataclass(frozen=True)
class Folder:
    """A folder or file that propreg reads or writes."""

    what: str
    path: str
    exists: bool
    writable: bool
    free: int | None  # bytes left on its disk


@dataclass(frozen=True)
class Examination:
    """All findings. ``devices`` is None if they were not probed."""

    packages: tuple[Package, ...]
    devices: Devices | None
    data: tuple[Found, ...]
    folders: tuple[Folder, ...]
    remarks: tuple[Remark, ...]

    @property
    def healthy(self) -> bool:
        """Whether nothing stops a command from working."""
        return not any(remark.problem for remark in self.remarks)

    def as_json(self) -> dict[str, Any]:
        """For scripts."""
        return {"propreg": __version__, **machine(), **asdict(self), "healthy": self.healthy}


def examine(store: Path, results: Path, *, root: Path | None = None, probe: bool = False) -> Examination:
    """Examine the installation; ``probe`` also starts torch, in another process, to see its devices."""
    installed = tuple(packages())
    devices = probe_devices() if probe else None
    places = tuple(folders(store, results))
    remarks = [*_about_packages(installed), *_about_devices(devices, installed)]
    try:
        data = tuple(datasets(root))
        remarks += _about_data(data)
    except DataError as error:
        data = ()
        remarks.append(Remark(True, str(error), "unset PROPREG_DATA"))
    remarks += _about_folders(places)
    return Examination(installed, devices, data, places, tuple(remarks))


def machine() -> dict[str, Any]:
    """Python and the computer."""
    return {
        "python": platform.python_version(),
        "executable": sys.executable,
        "system": f"{platform.system()} {platform.machine()}",
        "cores": cores(),
    }


def packages() -> list[Package]:
    """Every package that propreg uses, by its metadata (imports take seconds), with the oldest version that works."""
    least = _least()
    return [Package(name, purpose, _version(name), least.get(_plain(name))) for name, purpose in PURPOSES.items()]


def numbers(version: str) -> tuple[int, ...]:
    """A version's leading numbers, to compare.

    Example:
        >>> numbers("2.13.0+cpu") >= numbers("2.11")
        True
    """
    return tuple(int(part) for part in re.findall(r"\d+", re.split(r"[^0-9.]", version, maxsplit=1)[0]))


def _least() -> dict[str, str]:
    """The oldest versions in propreg's own metadata."""
    try:
        lines = metadata.requires("propreg") or []
    except metadata.PackageNotFoundError:  # run from a folder of sources
        return {}
    found = [_REQUIREMENT.match(line) for line in lines]
    return {_plain(match[1]): match[2] for match in found if match and match[2]}


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _plain(name: str) -> str:
    return name.lower().replace("_", "-")


def _about_packages(installed: tuple[Package, ...]) -> list[Remark]:
    wrong = [package for package in installed if not package.fine]
    if not wrong:
        return []
    named = ", ".join(
        f"{p.name} is missing" if p.version is None else f"{p.name} {p.version} is older than {p.least}" for p in wrong
    )
    return [Remark(True, f"{named}.", INSTALL.replace("install", "install --upgrade"))]


def probe_devices(timeout: float = TIMEOUT) -> Devices:
    """Import torch in another process and let it compute on every GPU it sees."""
    try:
        done = subprocess.run(
            [sys.executable, "-c", _PROBE], capture_output=True, text=True, timeout=timeout, check=False
        )
    except (OSError, subprocess.SubprocessError) as error:
        return Devices(error=f"the probe did not end: {error}")
    try:
        found = json.loads(done.stdout.splitlines()[-1])
        gpus = tuple(Gpu(str(gpu["name"]), int(gpu["memory"])) for gpu in found["devices"])
        return Devices(found["built_for"], gpus, found.get("error"))
    except (IndexError, KeyError, TypeError, ValueError):
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        return Devices(error=last)


def has_nvidia_driver() -> bool:
    """Whether an NVIDIA driver is installed, without starting anything."""
    return os.path.exists("/proc/driver/nvidia/version") or shutil.which("nvidia-smi") is not None


def _about_devices(devices: Devices | None, installed: tuple[Package, ...]) -> list[Remark]:
    torch = next((p.version for p in installed if p.name == "torch"), None) or ""
    if devices is None:
        if has_nvidia_driver() and torch.endswith("+cpu"):
            what = f"There is an NVIDIA driver, but torch {torch} is built for CPUs only."
            return [Remark(False, what, GET_CUDA)]
        return []
    if devices.error is not None:
        fix = INSTALL if "torch" in devices.error and "module" in devices.error else "propreg run --device cpu"
        return [Remark(True, f"torch's devices cannot be used: {devices.error}.", fix)]
    if has_nvidia_driver() and not devices.gpus:
        return [Remark(False, "There is an NVIDIA driver, but torch sees no GPU.", GET_CUDA)]
    return []


def datasets(root: Path | None = None) -> list[Found]:
    """The file of each dataset; :class:`propreg.DataError` if a folder that was named does not exist."""
    return [_found(name, root) for name in catalog.names()]


def _found(name: str, root: Path | None) -> Found:
    entry = catalog.find(name)
    if not entry.file:
        there = importlib.util.find_spec("sklearn") is not None  # looks for it, imports nothing
        return Found(name, "scikit-learn" if there else None, None)
    path = dataset_file(entry, root)
    where = None if path is None else str(path)
    if isinstance(entry, catalog.MoleculeSet):
        return Found(name, where, None)
    return Found(name, where, splits_file(entry, root) is not None)


def _about_data(data: tuple[Found, ...]) -> list[Remark]:
    if not data[0].complete:
        remarks = [Remark(True, "The digits need scikit-learn, which is not installed.", INSTALL)]
    else:
        remarks = []
    fetchable = catalog.fetchable()[1:]  # without the digits
    missing = [found.name for found in data[1:] if not found.complete and found.name in fetchable]
    if missing:
        what = f"{len(missing)} datasets are not on disk; each is downloaded when it is first used."
        named = missing if len(missing) < len(fetchable) else []  # without names, it fetches all
        remarks.append(Remark(False, what, " ".join(["propreg data fetch", *named])))
    return remarks


def folders(store: Path, results: Path) -> list[Folder]:
    """The cache, the data folder, the store of runs and the recorded results."""
    named = os.environ.get(VARIABLE)
    places = [("data cache", cache_folder()), ("store of runs", store), ("recorded results", results)]
    if named:
        places.insert(0, (VARIABLE, Path(named)))
    return [_folder(what, path) for what, path in places]


def _folder(what: str, path: Path) -> Folder:
    near = path.absolute()
    while not near.exists() and near != near.parent:
        near = near.parent
    try:
        free = shutil.disk_usage(near).free
    except OSError:
        free = None
    return Folder(what, str(path), path.exists(), os.access(near, os.W_OK), free)


def _about_folders(places: tuple[Folder, ...]) -> list[Remark]:
    cache = next(place for place in places if place.what == "data cache")
    if not cache.writable:
        what = f"The data cache {cache.path} cannot be written, so nothing can be downloaded to it."
        return [Remark(True, what, "export XDG_CACHE_HOME=/a/folder/of/yours")]
    if cache.free is not None and cache.free < LITTLE_SPACE:
        what = f"The disk of the data cache {cache.path} has {cache.free >> 20} MB left."
        return [Remark(False, what, "export XDG_CACHE_HOME=/a/folder/on/a/larger/disk")]
    return []
