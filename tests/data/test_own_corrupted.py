"""Two hundred damaged copies of each kind of file: refused, or read as what they say; never more memory than honest."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from counting import Inputs
from damaged_files import SLACK, damaged_npy, damaged_npz, damaged_text, peak, rewrite
from own_graphs import assert_same
from plain_csv import PlainGraph, read_plain
from propreg import DataError
from propreg.data.features import from_dense
from propreg.data.formats.npz import write_npz
from propreg.data.graph import Graph, SparseFeatures, Split
from propreg.data.own.edges_csv import read_edges
from propreg.data.own.load import read_graph
from propreg.data.own.npz import write_graph

COPIES = 200


def tried(
    path: Path, copies: Iterator[bytes], read: Callable[[], Graph], most: int
) -> Iterator[tuple[int, Graph | None]]:
    """Each copy's number, and what it was read as (None: refused), with a watch on memory."""
    for number, copy in enumerate(copies):
        rewrite(path, copy)
        said: list[str] = []

        def attempt() -> Graph | None:
            try:
                return read()
            except DataError as error:
                said.append(str(error))  # noqa: B023  (called at once)
                return None

        found, took = peak(attempt)
        assert all(len(sentence) < 1000 and "\n" not in sentence for sentence in said)
        assert took <= most, f"copy {number} took {took} bytes, over {most}"
        yield number, found


def sample(*, sparse: bool) -> Graph:
    rng = np.random.default_rng(0)
    count = 1500
    x = (rng.random((count, 200)) < 0.1).astype(np.float32) * rng.random((count, 1), np.float32)
    edges = rng.integers(0, count, (2, 6000))
    codes = rng.integers(0, 4, count)
    return Graph(
        "sample",
        edges,
        from_dense(x) if sparse else x,
        rng.integers(0, 5, count),
        rng.random(6000, np.float32),
        Split(codes == 1, codes == 2, codes == 3),
        ("a", "b", "c", "d", "é"),
        tuple(f"node {number}" for number in range(count)),
    )


def size(graph: Graph) -> int:
    """The bytes of the arrays, and of the ids as text in an array."""
    x = graph.x
    features = (x.indptr.nbytes + x.indices.nbytes + x.filled().nbytes) if isinstance(x, SparseFeatures) else x.nbytes
    weight = 0 if graph.edge_weight is None else graph.edge_weight.nbytes
    ids = np.array(graph.node_ids).nbytes if graph.node_ids else 0
    return features + weight + ids + graph.edge_index.nbytes + 4 * graph.y.nbytes


@pytest.mark.parametrize("sparse", [False, True])
def test_npz(tmp_path: Path, sparse: bool, inputs: Inputs) -> None:
    graph, path = sample(sparse=sparse), tmp_path / "graph.npz"
    write_graph(path, graph)
    copies = damaged_npz(path.read_bytes(), COPIES, seed=2)
    refused = 0
    for _, found in tried(path, copies, lambda: read_graph(path), 2 * size(graph) + SLACK):
        if found is None:
            refused += 1
        else:
            assert_same(found, graph)
    assert refused > COPIES // 2
    inputs(COPIES)


NODES = 80


def write_sample(folder: Path, *, weights: bool, features: bool, ids: list[str], end: str = "\n") -> None:
    rng = np.random.default_rng(1)
    header = "id,label,split" + ",height,width,depth" * features + "\n"
    rows = []
    for node in ids:
        split = ["", "train", "val", "test"][rng.integers(4)]
        label = ["cat", "dog", "7"][rng.integers(3)] if split or rng.random() < 0.5 else ""
        values = [f",{value:.3g}" for value in rng.normal(size=3)] * features
        rows.append(f"{node},{label},{split}{''.join(values)}\n")
    (folder / "nodes.csv").write_bytes((header + "".join(rows)).replace("\n", end).encode())
    pairs = {tuple(sorted(pair)) for pair in rng.integers(0, len(ids), (250, 2)).tolist()}
    lines = [f"{ids[a]},{ids[b]}" + f",{rng.random():.3f}" * weights + "\n" for a, b in sorted(pairs)]
    header = "source,target" + ",weight" * weights + "\n"
    (folder / "edges.csv").write_bytes((header + "".join(lines)).replace("\n", end).encode())


def matches(graph: Graph, plain: PlainGraph, *, features: bool = True) -> bool:
    parts = ["", "train", "val", "test"]
    codes = np.zeros(len(plain.ids), int)
    if graph.split is not None:
        codes = graph.split.train + 2 * graph.split.val + 3 * graph.split.test
    weights = graph.edge_weight if graph.edge_weight is not None else [None] * graph.edge_index.shape[1]
    edges = dict(zip(map(tuple, graph.edge_index.T.tolist()), weights, strict=True))
    return (
        list(graph.node_ids) == plain.ids
        and [graph.class_names[label] if label >= 0 else "" for label in graph.y] == plain.labels
        and [parts[code] for code in codes] == plain.splits
        and edges == plain.edges
        and (not features or np.array_equal(graph.x, plain.x))  # type: ignore[arg-type]
    )


PLAIN_IDS = [str(3 * number) for number in range(NODES)]
ODD_IDS = [f'"{number}, or\n""é"""' if number % 7 == 0 else f"n{number}" for number in range(NODES)]


@pytest.mark.slow
@pytest.mark.parametrize("file", ["edges.csv", "nodes.csv"])
@pytest.mark.parametrize(
    ("ids", "weights", "end"), [(PLAIN_IDS, False, "\n"), (PLAIN_IDS, True, "\n"), (ODD_IDS, True, "\r\n")]
)
def test_csv(tmp_path: Path, file: str, ids: list[str], weights: bool, end: str, inputs: Inputs) -> None:
    write_sample(tmp_path, weights=weights, features=True, ids=ids, end=end)
    honest, took = peak(lambda: read_graph(tmp_path))
    assert matches(honest, read_plain(tmp_path))
    copies = damaged_text((tmp_path / file).read_bytes(), COPIES, seed=3)
    refused = 0
    for number, found in tried(tmp_path / file, copies, lambda: read_graph(tmp_path), 2 * took + SLACK):
        try:
            plain = read_plain(tmp_path)
        except ValueError:
            plain = None
        assert (found is None) == (plain is None), f"copy {number} of {file}"
        refused += found is None
        if found is not None and plain is not None:
            assert matches(found, plain), f"copy {number} of {file}"
    assert 0 < refused < COPIES
    inputs(COPIES)


def test_damage_does_not_make_a_large_edge_list_large_in_memory(tmp_path: Path) -> None:
    """One odd line sends the rest to the exact reader, which must be as frugal."""
    path, ids = tmp_path / "edges.csv", {str(number): number for number in range(1000)}
    rng = np.random.default_rng(0)
    text = "source,target\n" + "".join(f"{a},{b}\n" for a, b in rng.integers(0, 1000, (100_000, 2)).tolist())
    path.write_text(text)
    _, honest = peak(lambda: read_edges(path, ids))
    path.write_text(text.replace("\n", "\n ", 2))
    _, odd = peak(lambda: read_edges(path, ids))
    assert odd <= 2 * honest


def features_npy(folder: Path) -> Path:
    np.save(folder / "features.npy", np.random.default_rng(0).random((NODES, 300), np.float32))
    return folder / "features.npy"


def features_npz(folder: Path) -> Path:
    np.savez_compressed(folder / "features.npz", x=np.random.default_rng(0).random((NODES, 300)))
    return folder / "features.npz"


def features_csr(folder: Path) -> Path:
    rng = np.random.default_rng(0)
    x = from_dense((rng.random((NODES, 300)) < 0.3) * rng.integers(1, 9, (NODES, 300)))
    parts: dict[str, NDArray[Any]] = {
        "indptr": x.indptr,
        "indices": x.indices,
        "data": x.filled(),
        "shape": np.array(x.shape),
    }
    write_npz(folder / "features.npz", parts | {"format": np.array(b"csr")})
    return folder / "features.npz"


@pytest.mark.parametrize("make", [features_npy, features_npz, features_csr])
def test_features(tmp_path: Path, make: Callable[[Path], Path], inputs: Inputs) -> None:
    write_sample(tmp_path, weights=False, features=False, ids=PLAIN_IDS)
    path = make(tmp_path)
    honest, _ = peak(lambda: read_graph(tmp_path))
    damage = damaged_npy if path.suffix == ".npy" else damaged_npz
    copies = damage(path.read_bytes(), COPIES, seed=4)
    refused = 0
    for number, found in tried(path, copies, lambda: read_graph(tmp_path), 2 * size(honest) + SLACK):
        if found is None:
            refused += 1
        elif path.suffix == ".npy":  # has no checksum: what the bytes say
            expected = np.load(path, allow_pickle=False).astype(np.float32)
            np.testing.assert_array_equal(np.asarray(found.x), expected)
        elif number % 2 == 0:
            assert_same(found, honest)
        elif make is features_npz:  # well-formed, of another type: what the file says
            with np.load(path, allow_pickle=False) as arrays:
                np.testing.assert_array_equal(np.asarray(found.x), arrays["x"].astype(np.float32))
    assert refused > COPIES // 4
    inputs(COPIES)
