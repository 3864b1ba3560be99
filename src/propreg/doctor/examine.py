"""The examination: what is there, what is missing, and the command that mends it."""

import platform
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from propreg import __version__
from propreg.data.errors import DataError
from propreg.doctor.devices import Devices, cores, has_nvidia_driver, probe_devices
from propreg.doctor.found import Folder, Found, datasets, folders
from propreg.doctor.packages import INSTALL, Package, packages

LITTLE_SPACE = 2 << 30  # bytes; all datasets together take less


@dataclass(frozen=True)
class Remark:
    """Something missing and what mends it; a ``problem`` stops a command from working, a hint does not."""

    problem: bool
    what: str
    fix: str


@dataclass(frozen=True)
class Examination:
    """Everything that was found. ``devices`` is None where they were not probed."""

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


def machine() -> dict[str, Any]:
    """Python and the computer."""
    return {
        "python": platform.python_version(),
        "executable": sys.executable,
        "system": f"{platform.system()} {platform.machine()}",
        "cores": cores(),
    }


def examine(store: Path, results: Path, *, root: Path | None = None, probe: bool = False) -> Examination:
    """Look at everything; ``probe`` also starts torch, in another process, to see its devices."""
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


def _about_packages(installed: tuple[Package, ...]) -> list[Remark]:
    wrong = [package for package in installed if not package.fine]
    if not wrong:
        return []
    named = ", ".join(
        f"{p.name} is missing" if p.version is None else f"{p.name} {p.version} is older than {p.least}" for p in wrong
    )
    return [Remark(True, f"{named}.", f"{INSTALL.replace('install', 'install --upgrade')}")]


def _about_devices(devices: Devices | None, installed: tuple[Package, ...]) -> list[Remark]:
    torch = next((p.version for p in installed if p.name == "torch"), None) or ""
    if devices is None:
        if has_nvidia_driver() and torch.endswith("+cpu"):
            what = f"There is an NVIDIA driver, but torch {torch} is built for CPUs only."
            return [Remark(False, what, "install a CUDA build of torch: see pytorch.org, Get started")]
        return []
    if devices.error is not None:
        fix = INSTALL if "torch" in devices.error and "module" in devices.error else "propreg run --device cpu"
        return [Remark(True, f"torch's devices cannot be used: {devices.error}.", fix)]
    if has_nvidia_driver() and not devices.gpus:
        what = "There is an NVIDIA driver, but torch sees no GPU."
        return [Remark(False, what, "install a CUDA build of torch: see pytorch.org, Get started")]
    return []


def _about_data(data: tuple[Found, ...]) -> list[Remark]:
    if not data[0].complete:
        remarks = [Remark(True, "The digits come with scikit-learn, which is not installed.", INSTALL)]
    else:
        remarks = []
    missing = [found.name for found in data[1:] if not found.complete]
    if missing:
        what = f"{len(missing)} datasets are not on disk; each is downloaded when it is first used."
        named = missing if len(missing) < len(data) - 1 else []  # without names, it fetches all
        remarks.append(Remark(False, what, " ".join(["propreg data fetch", *named])))
    return remarks


def _about_folders(places: tuple[Folder, ...]) -> list[Remark]:
    cache = next(place for place in places if place.what == "data cache")
    if not cache.writable:
        what = f"The data cache {cache.path} cannot be written, so that nothing can be downloaded to it."
        return [Remark(True, what, "export XDG_CACHE_HOME=/a/folder/of/yours")]
    if cache.free is not None and cache.free < LITTLE_SPACE:
        what = f"There are {cache.free >> 20} MB left on the disk of the data cache {cache.path}."
        return [Remark(False, what, "export XDG_CACHE_HOME=/a/folder/on/a/larger/disk")]
    return []
