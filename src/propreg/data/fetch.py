"""From the publisher's files to the package's own: download, read, check, store."""

import os
import ssl
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from propreg.data.catalog import MoleculeSet, NodeSet, RawFile
from propreg.data.download import download
from propreg.data.errors import DataError
from propreg.data.gnn_benchmark import read_benchmark
from propreg.data.locate import dataset_file, download_folder, splits_file
from propreg.data.masks import read_mask
from propreg.data.ogb_raw import read_ogb
from propreg.data.planetoid import read_planetoid
from propreg.data.stored import write_nodes
from propreg.data.stored_molecules import write_molecules
from propreg.data.stored_splits import write_splits
from propreg.data.verified import verify_molecules, verify_nodes, verify_splits

Root = str | os.PathLike[str] | None


def ensure_nodes(entry: NodeSet, root: Root = None, *, context: ssl.SSLContext | None = None) -> Path:
    """The file of a node dataset, downloaded from its publisher if it is nowhere yet.

    Args:
        entry: The dataset.
        root: A folder to look at first, and to download to.
        context: The TLS settings of the download.

    Raises:
        DataError: If it cannot be had; nothing half-written stays behind.
    """

    def make(folder: Path, target: Path) -> None:
        if entry.source == "planetoid":
            graph = read_planetoid(folder, entry.name)
        else:
            graph = read_benchmark(folder / entry.raw[0].name, entry.name)
        write_nodes(target, verify_nodes(graph, entry, str(folder)))

    return dataset_file(entry, root) or _fetch(
        entry.name, entry.raw, f"{entry.file}.npz", make, root=root, context=context
    )


def ensure_splits(entry: NodeSet, root: Root = None, *, context: ssl.SSLContext | None = None) -> Path:
    """The file of a dataset's official splits, downloaded from the paper's authors if it is nowhere yet."""

    def make(folder: Path, target: Path) -> None:
        splits = [read_mask(folder / raw.name) for raw in entry.raw_splits]
        write_splits(target, entry.file, verify_splits(splits, entry, str(folder)))

    file = f"{entry.file}_splits.npz"
    return splits_file(entry, root) or _fetch(entry.name, entry.raw_splits, file, make, root=root, context=context)


def ensure_molecules(entry: MoleculeSet, root: Root = None, *, context: ssl.SSLContext | None = None) -> Path:
    """The file of a molecule dataset, downloaded from OGB if it is nowhere yet."""

    def make(folder: Path, target: Path) -> None:
        data = read_ogb(folder / entry.raw[0].name, entry.name)
        write_molecules(target, verify_molecules(data, entry, str(folder / entry.raw[0].name)))

    return dataset_file(entry, root) or _fetch(
        entry.name, entry.raw, f"{entry.file}.npz", make, root=root, context=context
    )


def _fetch(
    name: str,
    raws: tuple[RawFile, ...],
    file: str,
    make: Callable[[Path, Path], None],
    *,
    root: Root,
    context: ssl.SSLContext | None,
) -> Path:
    """Download what is missing of ``raws`` into the folder ``NAME-raw`` and make ``file`` of them.

    Files that lie there already are used: those of an interrupted call, and those put there by hand.
    """
    target = download_folder(root) / file
    folder = target.parent / f"{name}-raw"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{folder}: cannot be made: {error.strerror or error}: pass another root.") from error
    missing = [raw for raw in raws if not (folder / raw.name).exists()]
    try:
        for raw in missing:
            download(raw, folder / raw.name, context=context)
        make(folder, target)
    except DataError:
        _remove([folder / raw.name for raw in missing])  # else a damaged file would be met again by the next call
        if not target.exists():  # another process may have fetched it meanwhile, and tidied up
            raise
    finally:
        if target.exists():
            _remove([folder / raw.name for raw in raws])
        _remove([path for path in folder.glob(".*.tmp") if _is_old(path)])  # of calls that were killed
        with suppress(OSError):  # not empty: an interrupted call's files stay for the next
            folder.rmdir()
    return target


def _is_old(path: Path) -> bool:
    with suppress(OSError):
        return time.time() - path.stat().st_mtime > 3600
    return False


def _remove(paths: list[Path]) -> None:
    for path in paths:
        with suppress(OSError):
            path.unlink()
