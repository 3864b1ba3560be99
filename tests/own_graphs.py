"""Graphs of any shape for the tests of your own graph, how to write them as CSV, and what equal means."""

import csv
from pathlib import Path

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from propreg.data.features import from_dense
from propreg.data.graph import Graph, SparseFeatures, Split

words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=6).filter(
    lambda word: word == word.strip(" \t")
)
awkward = ["0", "01", "1", "-1", "10", "a,b", 'say "x"', "two\nlines", "c\rr", "é", "\ufeff", "nan", "'", "\u2028"]
names = words | st.sampled_from(awkward)
finite = st.floats(width=32, allow_nan=False, allow_infinity=False)


@st.composite
def graphs(draw: st.DrawFn, *, plain: bool = False) -> Graph:
    """A graph; ``plain`` ones are what a folder can say: dense features, ids, classes that all occur, merged edges."""
    count = draw(st.integers(1, 7))
    x = draw(hnp.arrays(np.float32, (count, draw(st.integers(1 if plain else 0, 4))), elements=finite))
    ids = draw(st.lists(names, min_size=count, max_size=count, unique=True)) if plain or draw(st.booleans()) else ()
    classes = draw(st.lists(names, max_size=4, unique=True))
    y = draw(hnp.arrays(np.int64, count, elements=st.integers(-1, len(classes) - 1 if classes or plain else 5)))
    if plain:
        classes, y = _in_order([classes[place] if place >= 0 else "" for place in y])
    ends = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1))
    pairs = draw(st.lists(ends, max_size=12, unique=plain))
    if plain:
        pairs = sorted({*pairs, *((target, source) for source, target in pairs)})
    weight = None
    if draw(st.booleans()):
        weights = st.floats(0, width=32, allow_infinity=False, allow_nan=False)
        weight = draw(hnp.arrays(np.float32, len(pairs), elements=weights))
        if plain:
            one = {(min(pair), max(pair)): value for pair, value in zip(pairs, weight, strict=True)}
            weight = np.array([one[min(pair), max(pair)] for pair in pairs], np.float32)
    codes = draw(hnp.arrays(np.int8, count, elements=st.integers(0, 3))) * (y >= 0)
    some = bool(codes.any()) if plain else draw(st.booleans())
    return Graph(
        "" if plain else draw(st.sampled_from(["", "mine", "é \n"])),
        np.array(pairs, np.int64).reshape(-1, 2).T.copy(),
        from_dense(x) if not plain and draw(st.booleans()) else x,
        y,
        weight,
        Split(codes == 1, codes == 2, codes == 3) if some else None,
        tuple(classes),
        tuple(ids),
    )


def _in_order(labels: list[str]) -> tuple[list[str], np.ndarray]:
    found = set(labels) - {""}
    whole = all(name.removeprefix("-").removeprefix("+").isascii() and _is_int(name) for name in found)
    classes = sorted(found, key=lambda name: (int(name), name)) if whole else sorted(found)
    return classes, np.array([classes.index(label) if label else -1 for label in labels], np.int64)


def _is_int(name: str) -> bool:
    return name.removeprefix("-" if name.startswith("-") else "+").isdigit()


def write_folder(folder: Path, graph: Graph, *, directed: bool = False, terminator: str = "\r\n") -> None:
    """The graph as a folder would say it, each undirected edge once."""
    assert isinstance(graph.x, np.ndarray)
    split = [""] * graph.num_nodes
    if graph.split is not None:
        for part, mask in vars(graph.split).items():
            split = [part if inside else old for inside, old in zip(mask, split, strict=True)]
    with open(folder / "nodes.csv", "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator=terminator, quoting=csv.QUOTE_ALL)
        writer.writerow(["id", "label", "split", *(f"f{place}" for place in range(graph.num_features))])
        for node, row in enumerate(graph.x):
            label = graph.class_names[graph.y[node]] if graph.y[node] >= 0 else ""
            writer.writerow([graph.node_ids[node], label, split[node], *(repr(float(value)) for value in row)])
    with open(folder / "edges.csv", "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator=terminator, quoting=csv.QUOTE_ALL)
        writer.writerow(["source", "target"] + ["weight"] * (graph.edge_weight is not None))
        for place, (source, target) in enumerate(graph.edge_index.T):
            if directed or source <= target:
                ends = [graph.node_ids[source], graph.node_ids[target]]
                writer.writerow(ends + ([] if graph.edge_weight is None else [repr(float(graph.edge_weight[place]))]))


def assert_same(found: Graph, expected: Graph, *, name: bool = True) -> None:
    """Equal in everything but digests and extra."""
    assert not name or found.name == expected.name
    assert found.class_names == expected.class_names
    assert found.node_ids == expected.node_ids
    for part in ("edge_index", "y", "edge_weight"):
        _assert_equal(getattr(found, part), getattr(expected, part))
    if isinstance(expected.x, SparseFeatures):
        assert isinstance(found.x, SparseFeatures)
        assert found.x.shape == expected.x.shape
        for part in ("indptr", "indices", "values"):
            _assert_equal(getattr(found.x, part), getattr(expected.x, part))
    else:
        assert isinstance(found.x, np.ndarray)
        _assert_equal(found.x, expected.x)
    for part in ("train", "val", "test"):
        _assert_equal(getattr(found.split, part, None), getattr(expected.split, part, None))


def _assert_equal(found: np.ndarray | None, expected: np.ndarray | None) -> None:
    assert (found is None) == (expected is None)
    if found is not None and expected is not None:
        assert found.dtype == expected.dtype
        assert found.shape == expected.shape
        assert found.tobytes() == expected.tobytes()
