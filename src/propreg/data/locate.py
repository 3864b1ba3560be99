"""Where datasets are looked for: the argument, then ``PROPREG_DATA``, then the user's cache."""

import os
import sys
from pathlib import Path

from propreg.data.catalog import MoleculeSet, NodeSet
from propreg.data.errors import DataError

VARIABLE = "PROPREG_DATA"


def cache_folder() -> Path:
    """The user's cache folder for datasets, as the system has it; it need not exist.

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
    if not os.path.isabs(base):  # the XDG rules: a relative path is to be ignored
        base = str(Path.home() / ".cache")
    return Path(base) / "propreg"


def search_path(root: str | os.PathLike[str] | None = None) -> list[Path]:
    """The folders that are looked at, in order.

    Raises:
        DataError: If ``PROPREG_DATA`` names no folder: going on without it would hide a misspelt path.
    """
    folders = [Path(root)] if root is not None else []
    if named := os.environ.get(VARIABLE):
        if not os.path.isdir(named):
            raise DataError(f"{VARIABLE} names {named}, which is no folder: correct it, or unset it.")
        folders.append(Path(named))
    return [*folders, cache_folder()]


def download_folder(root: str | os.PathLike[str] | None = None) -> Path:
    """Where a download goes: the argument if there is one, else the cache; ``PROPREG_DATA`` is only read."""
    return Path(root) if root is not None else cache_folder()


def find_file(name: str, root: str | os.PathLike[str] | None = None) -> Path | None:
    """The first file of this name in the folders that are looked at.

    Raises:
        DataError: If a folder or file cannot be looked at.
    """
    for folder in search_path(root):
        path = folder / name
        try:
            if path.exists():
                return path
        except OSError as error:
            raise DataError(f"{path}: cannot be looked at: {error.strerror or error}.") from error
    return None


def dataset_file(entry: NodeSet | MoleculeSet, root: str | os.PathLike[str] | None = None) -> Path | None:
    """The dataset's own npz file, where there is one."""
    return find_file(f"{entry.file}.npz", root) if entry.file else None


def splits_file(entry: NodeSet, root: str | os.PathLike[str] | None = None) -> Path | None:
    """The file that holds the dataset's official splits: its own, or the one with those of all datasets."""
    if not entry.raw_splits:
        return None
    return find_file(f"{entry.file}_splits.npz", root) or find_file("splits.npz", root)
