"""Scaling features: what is done to which features, and that dense and sparse ones agree."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from propreg.data.benchmarks.load import load_node_graph
from propreg.data.features import from_dense
from propreg.data.graph import SparseFeatures
from propreg.data.scaling import Scaling, from_parts, is_bag_of_words, scaling_of

RNG = np.random.default_rng(0)
WORDS = (RNG.random((60, 40)) < 0.1).astype(np.float32)
INCOME = np.hstack([WORDS, RNG.normal(40_000, 9_000, (60, 1)).astype(np.float32)])


def dense(x: Any) -> Any:
    return x.to_dense() if isinstance(x, SparseFeatures) else x


@pytest.mark.parametrize(
    ("x", "kind"),
    [
        (WORDS, "rows"),
        (WORDS * RNG.gamma(2, 1, WORDS.shape).astype(np.float32), "rows"),
        (np.eye(9, dtype=np.float32), "rows"),
        (RNG.normal(size=(50, 4)).astype(np.float32), "standard"),
        (RNG.random((50, 4)).astype(np.float32), "standard"),
        (WORDS - 0.01, "standard"),
        (INCOME, "standard"),
        (np.zeros((5, 3), np.float32), "standard"),
    ],
)
def test_only_bags_of_words_have_their_rows_divided(x: Any, kind: str) -> None:
    assert scaling_of(x).kind == scaling_of(from_dense(x)).kind == kind


@pytest.mark.parametrize("name", ["cora", "citeseer", "pubmed", "cs", "physics", "computers", "photo"])
def test_the_benchmarks_are_bags_of_words_and_scaled_as_in_the_paper(name: str, benchmarks: Path) -> None:  # noqa: ARG001
    graph = load_node_graph(name)
    assert isinstance(graph.x, SparseFeatures)
    scaling = scaling_of(graph.x)
    assert scaling.kind == "rows"
    ours, official = scaling(graph.x), graph.x.row_normalized()
    assert isinstance(ours, SparseFeatures)
    np.testing.assert_allclose(ours.filled(), official.filled(), rtol=1e-6)


@settings(max_examples=60, deadline=None)
@given(arrays(np.float32, st.tuples(st.integers(1, 8), st.integers(1, 5)), elements=st.integers(-9, 9).map(float)))
def test_definitions(x: Any) -> None:
    wide = x.astype(np.float64)
    deviation = wide.std(axis=0)
    expected = (wide - wide.mean(axis=0)) / np.where(deviation > 1e-6, deviation, 1)
    totals = np.abs(wide).sum(axis=1, keepdims=True)
    by_rows = wide / np.where(totals > 0, totals, 1)
    for given_x in (x, from_dense(x)):
        np.testing.assert_allclose(dense(scaling_of(given_x, "standard")(given_x)), expected, atol=1e-5)
        np.testing.assert_allclose(dense(scaling_of(given_x, "rows")(given_x)), by_rows, atol=1e-6)
        assert scaling_of(given_x, "none")(given_x) is given_x


def test_a_constant_column_becomes_zero_whatever_its_size() -> None:
    x = np.hstack([np.full((1000, 1), 0.1), np.full((1000, 1), 123_456.7), RNG.normal(size=(1000, 1))])
    scaled = dense(scaling_of(x.astype(np.float32), "standard")(x.astype(np.float32)))
    assert np.abs(scaled[:, :2]).max() < 1e-2
    assert scaled[:, 2].std() == pytest.approx(1, abs=1e-4)


def test_the_features_that_are_given_stay_as_they_are() -> None:
    before = INCOME.copy()
    for kind in ("auto", "standard", "rows", "none"):
        scaling_of(INCOME, kind)(INCOME)
    assert (before == INCOME).all()


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match="scale must be one of 'auto', 'standard', 'rows', 'none', got 'row'"):
        scaling_of(WORDS, "row")  # type: ignore[arg-type]
    one = np.ones(2, np.float32)
    for parts in [("auto", None, None), ("rows", one, one), ("standard", None, None), ("standard", one, 0 * one)]:
        with pytest.raises(ValueError, match=r"scale is|not positive"):
            from_parts(*parts)
    assert isinstance(from_parts("standard", one, one), Scaling)
    assert not is_bag_of_words(INCOME)
