"""Files in the publishers' own raw formats, made by the tests, and small datasets to put in them."""

import gzip
import io
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from propreg.data.benchmarks.catalog import MoleculeSet, NodeSet, Part
from propreg.data.benchmarks.molecules import PARTS, Molecules, digest_molecules
from propreg.data.digests import digest_edges, digest_features, digest_labels, digest_splits
from propreg.data.edges import undirected
from propreg.data.features import from_dense
from propreg.data.graph import Graph, SparseFeatures, Split

CLASSES = 4


def sample_graph(seed: int = 0, *, nodes: int = 640, values: str = "binary", gaps: int = 0) -> Graph:
    """A small graph with the structure of a Planetoid dataset; the last ``gaps`` inner test nodes are unlabeled."""
    rng = np.random.default_rng(seed)
    ends = rng.integers(0, nodes, (2, 3 * nodes))
    x = (rng.random((nodes, 30)) < 0.1).astype(np.float32)
    if values == "float":
        x *= rng.random(x.shape, np.float32)
    y = rng.integers(0, CLASSES, nodes)
    y[:CLASSES] = np.arange(CLASSES)
    unlabeled = np.arange(nodes - 1 - gaps, nodes - 1)  # inside the test range
    x[unlabeled], y[unlabeled] = 0, 0
    train, val, test = (np.zeros(nodes, bool) for _ in range(3))
    train[:16], val[16:516], test[nodes - 60 :] = True, True, True
    test[unlabeled] = False
    kept = ~np.isin(ends, unlabeled).any(axis=0)
    edges = undirected(ends[0, kept], ends[1, kept], nodes, "sample")
    extra = {"unlabeled": unlabeled, "classes": CLASSES}
    return Graph("cora", edges, from_dense(x), y, split=Split(train, val, test), extra=extra)


def entry_of(graph: Graph, source: str, **more: Any) -> NodeSet:
    """A catalog entry that accepts exactly this graph."""
    digests = {
        "edges": digest_edges(graph.edge_index),
        "features": digest_features(graph.x),
        "labels": digest_labels(graph.y),
    }
    if source == "planetoid" and graph.split is not None:
        authors = graph.y.copy()
        authors[graph.extra["unlabeled"]] = CLASSES - 1
        digests |= {"authors_labels": digest_labels(authors), "public_split": digest_splits([graph.split])}
    if splits := more.pop("splits", None):
        digests["official_splits"] = digest_splits(splits)
    return NodeSet(
        graph.name,
        graph.name,
        source,
        graph.num_nodes,
        graph.edge_index.shape[1] // 2,
        graph.num_features,
        CLASSES,
        "a sample",
        "MIT",
        public_split=source == "planetoid",
        parts={part: Part((digest,), True) for part, digest in digests.items()},
        **more,
    )


# Python 2 pickles, protocol 2, opcode by opcode: no Python 3 writes them.


def py2_int(value: int) -> bytes:
    if 0 <= value < 256:
        return b"K" + struct.pack("<B", value)
    if 0 <= value < 65536:
        return b"M" + struct.pack("<H", value)
    return b"J" + struct.pack("<i", value)


def py2_text(value: bytes) -> bytes:
    return (
        b"U" + struct.pack("<B", len(value)) + value
        if len(value) < 256
        else b"T" + struct.pack("<i", len(value)) + value
    )


def py2_tuple(values: tuple[int, ...]) -> bytes:
    return b"(" + b"".join(map(py2_int, values)) + b"t"


def py2_array(array: NDArray[Any], *, fortran: bool = False) -> bytes:
    kind = array.dtype.newbyteorder("<").str
    dtype = (
        b"cnumpy\ndtype\n" + py2_text(kind[1:].encode()) + py2_int(0) + py2_int(1) + b"\x87R"
        b"(" + py2_int(3) + py2_text(b"|" if kind[0] == "|" else b"<") + b"NNN" + py2_int(-1) * 2 + py2_int(0) + b"tb"
    )  # fmt: skip
    start = (
        b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\n" + py2_int(0) + b"\x85" + py2_text(b"b") + b"\x87R"
    )
    raw = array.tobytes("F" if fortran else "C")
    return (
        start
        + b"("
        + py2_int(1)
        + py2_tuple(array.shape)
        + dtype
        + (b"\x88" if fortran else b"\x89")
        + py2_text(raw)
        + b"tb"
    )


def py2_csr(x: SparseFeatures, dtype: str = "<f4") -> bytes:
    parts = {
        b"_shape": py2_tuple(x.shape),
        b"maxprint": py2_int(50),
        b"indices": py2_array(x.indices.astype("<i4")),
        b"data": py2_array(x.filled().astype(dtype)),
        b"indptr": py2_array(x.indptr.astype("<i4")),
    }
    state = b"".join(py2_text(key) + b"q\x07" + value for key, value in parts.items())
    return b"cscipy.sparse.csr\ncsr_matrix\n)\x81}(" + state + b"ub"


def py2_graph(neighbors: dict[int, list[int]]) -> bytes:
    items = b"".join(py2_int(k) + b"]q\x05(" + b"".join(map(py2_int, v)) + b"e" for k, v in neighbors.items())
    return b"ccollections\ndefaultdict\nc__builtin__\nlist\n\x85R(" + items + b"u"


def py2(body: bytes) -> bytes:
    return b"\x80\x02" + body + b"."


HOSTILE_PICKLE = py2(b"cos\nsystem\nU\x04true\x85R")


def rows_of(x: SparseFeatures, rows: NDArray[np.int64]) -> SparseFeatures:
    take = [np.arange(x.indptr[r], x.indptr[r + 1]) for r in rows]
    indptr = np.concatenate([[0], np.cumsum([len(t) for t in take])])
    flat = np.concatenate([np.zeros(0, np.int64), *take]).astype(np.int64)
    return SparseFeatures(indptr, x.indices[flat], x.filled()[flat], (len(rows), x.shape[1]))


def write_planetoid(folder: Path, graph: Graph, *, seed: int = 0, dtype: str = "<f4") -> None:
    """The eight ``ind.NAME.*`` files, with a shuffled test index, self-loops and doubled edges."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    assert graph.split is not None
    assert isinstance(graph.x, SparseFeatures)
    test = rng.permutation(np.flatnonzero(graph.split.test))
    first = int(test.min())
    train = int(graph.split.train.sum())
    one_hot = np.eye(graph.extra["classes"], dtype=np.int32)[graph.y]
    source, target = graph.edge_index
    bounds = np.searchsorted(source, np.arange(graph.num_nodes + 1))
    neighbors = {node: target[bounds[node] : bounds[node + 1]].tolist() for node in range(graph.num_nodes)}
    neighbors[1] = [*neighbors[1], 1, *neighbors[1][:1]]
    index = np.arange(first)
    bodies = {
        "x": py2_csr(rows_of(graph.x, index[:train]), dtype),
        "tx": py2_csr(rows_of(graph.x, test), dtype),
        "allx": py2_csr(rows_of(graph.x, index), dtype),
        "y": py2_array(one_hot[:train]),
        "ty": py2_array(one_hot[test]),
        "ally": py2_array(one_hot[:first]),
        "graph": py2_graph(neighbors),
    }
    for part, body in bodies.items():
        (folder / f"ind.{graph.name}.{part}").write_bytes(py2(body))
    (folder / f"ind.{graph.name}.test.index").write_text("".join(f"{node}\n" for node in test))


def write_benchmark(path: Path, graph: Graph, *, seed: int = 0) -> None:
    """An npz of the GNN benchmark: edges in one direction only, counts as features, names as pickled objects."""
    rng = np.random.default_rng(seed)
    assert isinstance(graph.x, SparseFeatures)
    once = graph.edge_index[:, graph.edge_index[0] < graph.edge_index[1]]
    loops = np.array([[2], [2]])
    source, target = np.concatenate([once, loops], axis=1)
    order = np.lexsort((target, source))
    indptr = np.concatenate([[0], np.cumsum(np.bincount(source, minlength=graph.num_nodes))])
    names = np.array([{"name": "node"}, None], dtype=object)
    np.savez_compressed(
        path,
        adj_data=np.ones(len(source), np.float32),
        adj_indices=target[order].astype(np.int32),
        adj_indptr=indptr.astype(np.int32),
        adj_shape=np.array([graph.num_nodes] * 2),
        attr_data=rng.integers(1, 9, len(graph.x.indices)).astype(np.float32),
        attr_indices=graph.x.indices,
        attr_indptr=graph.x.indptr.astype(np.int32),
        attr_shape=np.array(graph.x.shape),
        labels=graph.y,
        node_names=names,
    )


def write_mask(path: Path, split: Split) -> None:
    """A mask file as the paper's authors saved theirs."""
    import torch

    mask = Mask()
    for which in ("train", "val", "test"):
        setattr(mask, f"{which}_mask", torch.from_numpy(getattr(split, which)))
    torch.save(mask, path, _use_new_zipfile_serialization=False)


class Mask:
    """The authors' helper class by name."""


def sample_molecules(seed: int = 0, graphs: int = 12, tasks: int = 3) -> Molecules:
    """A few molecules, one of a single atom, with missing labels."""
    rng = np.random.default_rng(seed)
    nodes = rng.integers(2, 9, graphs)
    nodes[3] = 1
    bonds = nodes - 1
    y = rng.integers(0, 2, (graphs, tasks)).astype(np.float32)
    y[rng.random(y.shape) < 0.2] = np.nan
    ends = [np.stack([np.arange(n - 1), np.arange(1, n)]) for n in nodes]
    order = rng.permutation(graphs)
    return Molecules(
        "ogbg-molesol",
        tuple("C" * int(n) for n in nodes),
        tuple(f"task {i}" for i in range(tasks)),
        y,
        nodes,
        bonds,
        rng.integers(0, 120, (nodes.sum(), 9)),
        np.concatenate(ends, axis=1),
        rng.integers(0, 5, (bonds.sum(), 3)),
        {part: np.sort(order[i::3]) for i, part in enumerate(PARTS)},
    )


def molecule_entry(data: Molecules, **more: Any) -> MoleculeSet:
    """A catalog entry that accepts exactly these molecules."""
    first, second, third = (len(data.split[part]) for part in PARTS)
    return MoleculeSet(
        data.name,
        data.name.replace("-", "_"),
        len(data),
        data.y.shape[1],
        len(data.atom_features),
        len(data.bond_features),
        (first, second, third),
        "regression",
        "rmse",
        "a sample",
        "MIT",
        parts={part: Part((digest,), True) for part, digest in digest_molecules(data).items()},
        **more,
    )


def ogb_tables(data: Molecules) -> dict[str, str]:
    """The CSV tables of an OGB archive."""

    def table(array: NDArray[Any]) -> str:
        return "".join(",".join(map(str, row)) + "\n" for row in array.tolist())

    labels = "".join(",".join("" if np.isnan(v) else repr(float(v)) for v in row) + "\n" for row in data.y)
    head = ",".join((*data.task_names, "smiles", "mol_id"))
    rows = [
        f"{line},{smiles},id{i}" for i, (line, smiles) in enumerate(zip(labels.splitlines(), data.smiles, strict=True))
    ]
    return {
        "raw/num-node-list": table(data.num_nodes[:, None]),
        "raw/num-edge-list": table(data.num_bonds[:, None]),
        "raw/edge": table(data.bonds.T),
        "raw/node-feat": table(data.atom_features),
        "raw/edge-feat": table(data.bond_features),
        "raw/graph-label": labels,
        "mapping/mol": "\n".join([head, *rows]) + "\n",
        **{f"split/scaffold/{part}": table(data.split[part][:, None]) for part in PARTS},
    }


def write_ogb(path: Path, tables: dict[str, str], *, extra: dict[str, bytes] | None = None) -> None:
    """OGB's zip of gzipped tables."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("esol/RELEASE_v1.txt", "")
        for name, text in tables.items():
            buffer = io.BytesIO()
            with gzip.GzipFile(fileobj=buffer, mode="wb", mtime=0) as packed:
                packed.write(text.encode())
            archive.writestr(f"esol/{name}.csv.gz", buffer.getvalue())
        for name, content in (extra or {}).items():
            archive.writestr(name, content)
