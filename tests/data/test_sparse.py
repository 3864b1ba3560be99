"""Sparse features, edge lists, digests and graph statistics, against SciPy and by hand."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components

from propreg.data import edges as edges_module
from propreg.data.describe import components, homophily, isolated
from propreg.data.digests import (
    digest_arrays,
    digest_edges,
    digest_features,
    digest_labels,
    digest_splits,
    join_digests,
)
from propreg.data.edges import sort_keys, undirected
from propreg.data.errors import DataError
from propreg.data.features import canonical, checked_csr, from_dense, is_canonical
from propreg.data.graph import SparseFeatures, Split

thorough = settings(max_examples=60, deadline=None)


@st.composite
def messy(draw: st.DrawFn) -> SparseFeatures:
    """CSR with unsorted columns, repeated places, zeros and empty rows."""
    rows, columns = draw(st.integers(0, 6)), draw(st.integers(1, 5))
    counts = [draw(st.integers(0, 6)) for _ in range(rows)]
    total = sum(counts)
    indices = draw(st.lists(st.integers(0, columns - 1), min_size=total, max_size=total))
    values = draw(st.lists(st.sampled_from([0.0, 1.0, -1.0, 2.5]), min_size=total, max_size=total))
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    data = np.array(values, np.float32) if draw(st.booleans()) else None
    return SparseFeatures(indptr, np.array(indices, np.int32), data, (rows, columns))


def dense(x: SparseFeatures) -> Any:
    return sp.csr_matrix((x.filled(), x.indices, x.indptr), x.shape).toarray()


@given(messy())
@thorough
def test_canonical_keeps_the_matrix(x: SparseFeatures) -> None:
    tidy = canonical(x)
    assert is_canonical(tidy)
    assert np.array_equal(dense(tidy), dense(x))
    assert np.array_equal(tidy.to_dense(), dense(x))
    assert canonical(tidy) is tidy


@given(messy())
@thorough
def test_one_matrix_has_one_digest(x: SparseFeatures) -> None:
    assert digest_features(x) == digest_features(dense(x)) == digest_features(from_dense(dense(x)))


@given(messy())
@thorough
def test_row_normalization_is_the_official_one(x: SparseFeatures) -> None:
    full = np.abs(dense(x))
    expected = full / np.maximum(full.sum(axis=1, keepdims=True), 1)
    assert np.allclose(from_dense(full).row_normalized().to_dense(), expected)


def test_checked_csr_refuses_what_is_no_matrix() -> None:
    good = (np.array([0, 1]), np.array([0]), np.array([1.0]))
    for changed, message in (
        ((np.array([0.0, 1.0]), *good[1:]), "vector of integers"),
        ((np.array([[0, 1]]), *good[1:]), "vector of integers"),
        ((*good[:2], np.array(["a"])), "are needed, got"),
        ((*good[:2], np.array([np.inf])), "NaN or infinite"),
        ((*good[:2], np.array([1e300])), "too large for float32"),
    ):
        with pytest.raises(DataError, match=message):
            checked_csr(*changed, (1, 1), "x")
    with pytest.raises(DataError, match="impossible"):
        checked_csr(*good, (1, 2**40), "x")


@st.composite
def edge_lists(draw: st.DrawFn) -> tuple[Any, int]:
    nodes = draw(st.integers(1, 12))
    count = draw(st.integers(0, 20))
    ends = st.lists(st.integers(0, nodes - 1), min_size=count, max_size=count)
    return np.array([draw(ends), draw(ends)], np.int64).reshape(2, count), nodes


@thorough
@given(
    keys=st.lists(st.integers(-5, 40) | st.integers(0, 2**62), max_size=60),
    threads=st.integers(1, 5),
    block=st.integers(1, 30),
)
def test_sorting_in_threads_is_sorting(keys: list[int], threads: int, block: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("_MANY", 1), ("_BLOCK", block), ("cores", lambda: threads)):
            patch.setattr(edges_module, name, value)
        assert sort_keys(np.array(keys, np.int64)).tolist() == sorted(keys)


@given(edge_lists())
@thorough
def test_undirected_is_the_set_of_both_directions(graph: tuple[Any, int]) -> None:
    edges, nodes = graph
    pairs = {(a, b) for a, b in edges.T.tolist() if a != b}
    got = list(map(tuple, undirected(edges[0], edges[1], nodes, "edges").T.tolist()))
    assert got == sorted(pairs | {(b, a) for a, b in pairs})


@given(edge_lists())
@thorough
def test_components_are_scipys(graph: tuple[Any, int]) -> None:
    edges, nodes = graph
    matrix = sp.coo_matrix((np.ones(edges.shape[1]), edges), (nodes, nodes))
    assert components(edges, nodes) == connected_components(matrix, directed=False)[0]
    degree = np.bincount(edges[:, edges[0] != edges[1]].reshape(-1), minlength=nodes)
    assert isolated(edges, nodes) == (degree == 0).sum()


def test_components_of_a_shuffled_path() -> None:
    order = np.random.default_rng(0).permutation(20_000)
    assert components(np.stack([order[:-1], order[1:]]), 20_000) == 1


def test_homophily_leaves_out_nodes_without_label() -> None:
    edges = np.array([[0, 1, 2], [1, 2, 3]])
    assert homophily(edges, np.array([0, 0, 1, -1])) == 0.5
    assert np.isnan(homophily(edges[:, :0], np.array([0, 1])))


def test_digests_depend_on_content_alone() -> None:
    edges = np.array([[0, 1, 2], [1, 2, 0]])
    assert digest_edges(edges) == digest_edges(edges[:, [2, 0, 1]].astype(np.int32))
    assert digest_edges(edges) != digest_edges(edges[::-1])
    weights = np.array([1.0, 2.0, 3.0], np.float32)
    assert digest_edges(edges, weights) == digest_edges(edges[:, ::-1], weights[::-1])
    assert digest_edges(edges, weights) != digest_edges(edges, weights[::-1])
    assert digest_labels(np.array([1, 2])) != digest_labels(np.array([2, 1]))
    one, other = np.array([np.nan], np.float32), np.array([-np.float32(np.nan)])
    assert digest_labels(one) == digest_labels(other)
    assert digest_features(np.zeros((2, 3))) != digest_features(np.zeros((3, 2)))
    mask = np.array([True, False])
    assert digest_splits([Split(mask, ~mask, mask)]) != digest_splits([Split(~mask, mask, mask)])
    assert join_digests({"a": "1"}) != join_digests({"b": "1"})


def test_digests_are_pinned() -> None:
    """Run keys hold digests: their definition never changes."""
    assert digest_edges(np.array([[0, 1], [1, 0]])) == PINNED["edges"]
    assert digest_features(np.array([[0.0, 2.0]])) == PINNED["features"]
    assert digest_labels(np.array([1, -1])) == PINNED["labels"]
    assert digest_arrays("a", {"b": ("<i8", np.arange(3))}) == PINNED["arrays"]


PINNED = {
    "edges": "2fbde7e15bee6a65ae97f72ea6dd8f52b600df65eb76b0b9e9a56536a14c9ed0",
    "features": "24be3eb9adebf9e3ed4ede817823e7e14b18593ba1c6890ed85836f0b33bcc59",
    "labels": "73cd05ae5b14b4b21b8317472cdea9c8c96b1a0fa1ef576424c2c9db27dd87e1",
    "arrays": "1a40efd8e9f7d888a688df623af0678a00c963c8bb623e55cfd8c15e6bc0ef68",
}
