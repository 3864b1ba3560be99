"""Which data and which folders are there."""

import importlib.util
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from propreg.data import catalog
from propreg.data.locate import VARIABLE, cache_folder, dataset_file, splits_file


@dataclass(frozen=True)
class Found:
    """A dataset, the file it is in (None: not on disk), and whether its official splits are there."""

    name: str
    where: str | None
    splits: bool | None  # None: it has one split, which comes with it

    @property
    def complete(self) -> bool:
        """Whether nothing needs to be downloaded."""
        return self.where is not None and self.splits is not False


def datasets(root: Path | None = None) -> list[Found]:
    """Where each dataset is; :class:`propreg.DataError` where a folder that was named is not there."""
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


@dataclass(frozen=True)
class Folder:
    """A folder or file that propreg reads or writes."""

    what: str
    path: str
    exists: bool
    writable: bool
    free: int | None  # bytes left on its disk


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
