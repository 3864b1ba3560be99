"""The embedded digits graph."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import propreg
from propreg.data.benchmarks import digits as module
from propreg.data.benchmarks.digits import digits, nearest, read_digits
from propreg.data.benchmarks.load import load_node_graph
from propreg.data.errors import DataError
from propreg.data.splits import official_splits


def test_it_is_what_scikit_learn_has() -> None:
    from sklearn.datasets import load_digits

    bunch, graph = load_digits(), digits()
    assert isinstance(graph.x, propreg.data.graph.SparseFeatures)
    assert np.array_equal(graph.x.to_dense(), bunch.data)
    assert np.array_equal(graph.y, bunch.target)


def brute_force(points: Any, count: int) -> set[tuple[int, int]]:
    """The definition: integer squared distances, ties by lower index, union of both directions."""
    pairs = set()
    for i, point in enumerate(points.tolist()):
        ranked = sorted(
            (sum((a - b) ** 2 for a, b in zip(point, p, strict=True)), j)
            for j, p in enumerate(points.tolist())
            if j != i
        )
        for _, j in ranked[:count]:
            pairs |= {(i, j), (j, i)}
    return pairs


@given(st.integers(0, 10**6), st.integers(6, 30), st.integers(1, 4))
@settings(max_examples=30, deadline=None)
def test_neighbors_are_those_of_the_definition(seed: int, count: int, width: int) -> None:
    points = np.random.default_rng(seed).integers(0, 4, (count, width))  # few values: many ties
    edges = nearest(points, 5)
    pairs = list(map(tuple, edges.T.tolist()))
    assert pairs == sorted(pairs)
    assert set(pairs) == brute_force(points, 5)


def test_ten_splits() -> None:
    y, splits = digits().y, official_splits("digits")
    assert len({split.train.tobytes() for split in splits}) == 10
    for split in splits:
        assert [int((split.train & (y == c)).sum()) for c in range(10)] == [5] * 10
        assert [int((split.val & (y == c)).sum()) for c in range(10)] == [30] * 10
        assert (split.train ^ split.val ^ split.test).all()


def test_splits_are_chosen_by_number() -> None:
    splits = official_splits("digits")
    assert np.array_equal(load_node_graph("digits").split.train, splits[0].train)  # type: ignore[union-attr]
    assert np.array_equal(load_node_graph("digits", split=7).split.train, splits[7].train)  # type: ignore[union-attr]
    data = propreg.load_dataset("digits", split="official")
    assert torch.equal(data.test_mask[:, 3], torch.from_numpy(splits[3].test))
    with pytest.raises(DataError, match="no public split"):
        load_node_graph("digits", split="public")


def test_changed_digits_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    pixels, labels = read_digits()
    pixels[5, 5] += 1
    monkeypatch.setattr(module, "read_digits", lambda: (pixels, labels))
    with pytest.raises(DataError, match=r"scikit-learn's digits.*(edges|features)"):
        load_node_graph("digits")


def fake_sklearn(folder: Path, content: bytes | None, monkeypatch: pytest.MonkeyPatch) -> None:
    target = folder / "sklearn" / "datasets" / "data"
    target.mkdir(parents=True)
    if content is not None:
        (target / "digits.csv.gz").write_bytes(content)
    spec = type("Spec", (), {"origin": str(folder / "sklearn" / "__init__.py")})
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: spec)


def test_a_damaged_copy_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_sklearn(tmp_path, b"\x1f\x8bnot gzip at all", monkeypatch)
    with pytest.raises(DataError, match="install scikit-learn again"):
        read_digits()


def test_without_the_file_scikit_learn_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = read_digits()
    fake_sklearn(tmp_path, None, monkeypatch)
    assert all(np.array_equal(a, b) for a, b in zip(read_digits(), honest, strict=True))


def test_without_scikit_learn_one_sentence_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(ImportError, match="pip install scikit-learn"):
        load_node_graph("digits")
