"""200 damaged copies of each kind of file: refused with DataError, or read as exactly the honest content.

Nothing else may escape, and no read may allocate more than twice what the honest file takes.
"""

import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from counting import Inputs
from data.corruption import NPZ, PICKLE, TABLES, Damage
from data.raw_files import (
    entry_of,
    molecule_entry,
    ogb_tables,
    sample_graph,
    sample_molecules,
    write_benchmark,
    write_mask,
    write_ogb,
    write_planetoid,
)
from propreg.data.benchmarks.cache import (
    read_molecules,
    read_nodes,
    read_splits,
    write_molecules,
    write_nodes,
    write_splits,
)
from propreg.data.benchmarks.gnn_benchmark import read_benchmark
from propreg.data.benchmarks.masks import read_mask
from propreg.data.benchmarks.molecules import Molecules
from propreg.data.benchmarks.ogb import read_ogb
from propreg.data.benchmarks.planetoid import read_planetoid
from propreg.data.benchmarks.verify import verify_molecules, verify_nodes, verify_splits
from propreg.data.errors import DataError
from propreg.data.graph import Graph, SparseFeatures, Split
from propreg.data.splits import random_split

COPIES = 200
SLACK = 128 << 10

Read = Callable[[], Any]


def stored_nodes(folder: Path) -> tuple[list[Path], Read]:
    graph = sample_graph(values="float", gaps=2)
    entry, path = entry_of(graph, "planetoid"), folder / "cora.npz"
    write_nodes(path, graph)
    return [path], lambda: verify_nodes(read_nodes(path, "cora"), entry, str(path))


def packed_nodes(folder: Path) -> tuple[list[Path], Read]:
    """The form of the Amazon files: packed bits, compressed."""
    graph = sample_graph()
    entry, path = entry_of(graph, "planetoid"), folder / "cora.npz"
    assert isinstance(graph.x, SparseFeatures)
    assert graph.split is not None
    np.savez_compressed(
        path,
        edge_index=graph.edge_index[:, graph.edge_index[0] < graph.edge_index[1]].astype(np.int32),
        y=graph.y.astype(np.uint8),
        num_nodes=np.int32(graph.num_nodes),
        num_features=np.int32(graph.num_features),
        num_classes=np.int32(graph.extra["classes"]),
        x_packed=np.packbits(graph.x.to_dense() > 0, axis=1),
        x_shape=np.array(graph.x.shape),
        train_idx=np.flatnonzero(graph.split.train),
        val_idx=np.flatnonzero(graph.split.val),
        test_idx=np.flatnonzero(graph.split.test),
    )
    return [path], lambda: verify_nodes(read_nodes(path, "cora"), entry, str(path))


def stored_splits(folder: Path) -> tuple[list[Path], Read]:
    graph, path = sample_graph(), folder / "splits.npz"
    splits = [random_split(graph.y, 5, 5, seed) for seed in range(10)]
    entry = entry_of(graph, "planetoid", splits=splits)
    write_splits(path, "cora", splits)
    return [path], lambda: verify_splits(read_splits(path, "cora", 640), entry, str(path))


def stored_molecules(folder: Path) -> tuple[list[Path], Read]:
    data, path = sample_molecules(graphs=40), folder / "m.npz"
    entry = molecule_entry(data)
    write_molecules(path, data)
    return [path], lambda: verify_molecules(read_molecules(path, data.name), entry, str(path))


def planetoid(folder: Path) -> tuple[list[Path], Read]:
    graph = sample_graph(values="float", gaps=2)
    entry = entry_of(graph, "planetoid")
    write_planetoid(folder, graph)
    (folder / "ind.cora.x").unlink()
    return sorted(folder.iterdir()), lambda: verify_nodes(read_planetoid(folder, "cora"), entry, str(folder))


def benchmark(folder: Path) -> tuple[list[Path], Read]:
    graph, path = sample_graph(), folder / "raw.npz"
    entry = entry_of(graph, "gnn-benchmark")
    write_benchmark(path, graph)
    return [path], lambda: verify_nodes(read_benchmark(path, "cora"), entry, str(path))


def masks(folder: Path) -> tuple[list[Path], Read]:
    graph = sample_graph()
    splits = [random_split(graph.y, 5, 5, seed) for seed in range(10)]
    entry = entry_of(graph, "planetoid", splits=splits)
    for i, split in enumerate(splits):
        write_mask(folder / f"{i}.mask", split)
    paths = sorted(folder.iterdir())
    return paths, lambda: verify_splits([read_mask(path) for path in paths], entry, str(folder))


def archive(folder: Path) -> tuple[list[Path], Read]:
    data, path = sample_molecules(graphs=40), folder / "raw.zip"
    entry = molecule_entry(data)
    write_ogb(path, ogb_tables(data))
    return [path], lambda: verify_molecules(read_ogb(path, data.name), entry, str(path))


def plain(value: Any) -> Any:
    """The whole content as something that == compares."""
    if isinstance(value, np.ndarray):
        return value.shape, value.dtype.str, np.nan_to_num(value, nan=-9e9).tolist()
    if isinstance(value, Graph | SparseFeatures | Split | Molecules):
        return plain({key: part for key, part in vars(value).items() if not key.startswith("_")})
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    return [plain(part) for part in value] if isinstance(value, list | tuple) else value


def peak(read: Read) -> tuple[Any, int]:
    """What ``read`` gives, or the DataError it raises, and the most memory it held meanwhile."""
    tracemalloc.start()
    try:
        value = read()
    except DataError as error:
        value = error
    finally:
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return value, most


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "damages"),
    [
        (stored_nodes, NPZ), (packed_nodes, NPZ), (stored_splits, NPZ), (stored_molecules, NPZ), (benchmark, NPZ),
        (planetoid, PICKLE), (masks, PICKLE), (archive, TABLES),
    ],
)  # fmt: skip
def test_damaged_copies(tmp_path: Path, kind: Any, damages: list[Damage], inputs: Inputs) -> None:
    paths, read = kind(tmp_path)
    honest, allowed = peak(read)
    assert not isinstance(honest, DataError), honest
    expected, refused = plain(honest), 0
    for number in range(COPIES):
        rng = np.random.default_rng([zlib.crc32(kind.__name__.encode()), number])
        path = paths[int(rng.integers(len(paths)))]
        good = path.read_bytes()
        path.write_bytes(damages[number % len(damages)](good, rng))
        value, most = peak(read)
        path.write_bytes(good)
        assert most <= 2 * allowed + SLACK, (number, most, allowed)
        if isinstance(value, DataError):
            refused += 1
            assert "\n" not in str(value)
        else:
            assert plain(value) == expected, number
    assert refused > COPIES // 2
    inputs(COPIES)
