"""The folders of datasets: the argument, then ``PROPREG_DATA``, then the user's cache."""

import os
import sys
from pathlib import Path

from propreg.data.benchmarks.catalog import MoleculeSet, NodeSet
from propreg.data.errors import DataError

VARIABLE = "PROPREG_DATA"


def cache_folder() -> Path:
    """The user's cache folder for datasets, by the system's convention; it need not exist.

    Example:
        >>> cache_folder().name
        'propreg'
    """
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA", "")
    elif sys.platform == "darwin":
        base = str(Path.home() / "Library" / "Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):  # the XDG rules ignore a relative path
        base = str(Path.home() / ".cache")
    return Path(base) / "propreg"


def search_path(root: str | os.PathLike[str] | None = None) -> list[Path]:
    """The folders that are searched, in order.

    Raises:
        DataError: If ``PROPREG_DATA`` names no folder: ignoring it would hide a misspelled path.
    """
    folders = [Path(root)] if root is not None else []
    if named := os.environ.get(VARIABLE):
        if not os.path.isdir(named):
            raise DataError(f"{VARIABLE} names {named}, which is not a folder: correct it, or unset it.")
        folders.append(Path(named))
    return [*folders, cache_folder()]


def download_folder(root: str | os.PathLike[str] | None = None) -> Path:
    """The folder of downloads: the argument, else the cache; ``PROPREG_DATA`` is only read."""
    return Path(root) if root is not None else cache_folder()


def find_file(name: str, root: str | os.PathLike[str] | None = None) -> Path | None:
    """The first file of this name in the folders that are searched."""
    for folder in search_path(root):
        path = folder / name
        try:
            if path.exists():
                return path
        except OSError as error:
            raise DataError(f"{path}: cannot be accessed: {error.strerror or error}.") from error
    return None


def dataset_file(entry: NodeSet | MoleculeSet, root: str | os.PathLike[str] | None = None) -> Path | None:
    """The dataset's npz file, or None."""
    return find_file(f"{entry.file}.npz", root) if entry.file else None


def splits_file(entry: NodeSet, root: str | os.PathLike[str] | None = None) -> Path | None:
    """The file with the dataset's official splits: its own, or the file with the splits of all datasets."""
    if entry.beyond:
        return dataset_file(entry, root)
    if not entry.raw_splits:
        return None
    return find_file(f"{entry.file}_splits.npz", root) or find_file("splits.npz", root)
