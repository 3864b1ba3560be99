"""Splits as people have them: masks, node numbers, columns of masks, folds, and none for testing."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

import propreg
from communities import communities
from propreg.data.errors import DataError
from propreg.data.graph import Split
from propreg.data.own.pyg import to_data
from propreg.data.splits import random_split
from propreg.fitting.fit import fit
from propreg.fitting.splits import folds
from propreg.fitting.verdict import NO_TEST, judge

GRAPH = communities()
SPLITS = [random_split(GRAPH.y, 5, 10, seed) for seed in range(3)]
QUICK: dict[str, Any] = {"mu": [0.3], "seeds": 1, "max_epochs": 6, "progress": False}


def numbers(split: Split) -> tuple[Any, ...]:
    return tuple(np.flatnonzero(mask) for mask in (split.train, split.val, split.test))


@pytest.mark.parametrize(
    "write",
    [
        lambda split: (split.train, split.val, split.test),
        numbers,
        lambda split: [torch.from_numpy(mask) for mask in numbers(split)],
        lambda split: [part.tolist() for part in numbers(split)],
        lambda split: dict(zip(("train", "valid", "test"), map(torch.from_numpy, numbers(split)), strict=True)),
        lambda split: split,
    ],
)
def test_a_list_of_splits_in_every_form(write: Any) -> None:
    expected = fit(GRAPH, "mlp", splits=SPLITS, **QUICK)
    found = fit(GRAPH, "mlp", splits=[write(split) for split in SPLITS], **QUICK)
    np.testing.assert_array_equal(found.test, expected.test)
    assert list(found.splits) == ["0", "1", "2"]


def test_masks_with_columns_are_several_splits() -> None:
    data = to_data(GRAPH)
    for part in ("train", "val", "test"):
        data[f"{part}_mask"] = torch.from_numpy(np.stack([getattr(split, part) for split in SPLITS], axis=1))
    found = fit(data, "mlp", **QUICK)
    np.testing.assert_array_equal(found.test, fit(to_data(GRAPH), "mlp", splits=SPLITS, **QUICK).test)
    assert data.train_mask.shape == (120, 3), "the data is left as it is"
    data.test_mask = data.test_mask[:, 0] & ~data.train_mask.any(1) & ~data.val_mask.any(1)
    one = fit(data, "mlp", **QUICK)
    assert all((split.test == data.test_mask.numpy()).all() for split in one.splits.values())
    data.val_mask = data.val_mask[:, :2]
    with pytest.raises(DataError, match=r"masks of k splits must be bool \[nodes, k\], got train_mask bool \[120, 3\]"):
        fit(data, "mlp", **QUICK)


def test_the_official_splits_come_with_the_digits() -> None:
    result = fit(propreg.load_dataset("digits", split="official"), "mlp", **QUICK)
    assert len(result.splits) == 10


@pytest.mark.parametrize(
    ("splits", "error", "says"),
    [
        ([(SPLITS[0].train,)], TypeError, r"split '0' must be a propreg Split or \(train, val, test\), got a tuple"),
        ([([0, 1], [2, 500])], DataError, "split '0': val holds node 500, but the nodes are 0 to 119"),
        ([([0.5], [2])], DataError, r"split '0': train must be a mask over 120 nodes or node numbers, got float64"),
        ([{"train": [0], "dev": [1]}], ValueError, "split '0' must have the keys train, val and test"),
        ([([0, 1], [1, 2])], DataError, "node 1 is in two of the masks"),
        ([([0, 1], [2]), ([0, 1], [2], [3])], DataError, "split '0' has no test nodes"),
        ([([0, 1], [])], DataError, "split '0' has no val nodes"),
        ("abc", TypeError, "splits must be a number or a list of splits, got a str"),
    ],
)
def test_what_is_no_split(splits: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        fit(GRAPH, "mlp", splits=splits, **QUICK)


def test_without_test_nodes_the_verdict_is_on_validation_and_says_so() -> None:
    none = np.zeros(120, bool)
    own = replace(GRAPH, split=replace(SPLITS[0], test=none))
    for result in (
        fit(own, "mlp", **QUICK),
        fit(GRAPH, "mlp", splits=[numbers(SPLITS[0])[:2]], **QUICK),
    ):
        np.testing.assert_array_equal(result.test, result.val)
        assert result.judging.what == "validation accuracy"
        verdict = judge(result)
        assert "points of validation accuracy" in verdict.sentence
        assert verdict.sentence.endswith(NO_TEST)
        assert "validation accuracy:" in result.summary()
        assert not next(iter(result.splits.values())).test.any()
        assert ",test," not in result.predictions()
    with_test, without = (fit(GRAPH, "mlp", splits=[numbers(SPLITS[0])[:n]], **QUICK) for n in (3, 2))
    np.testing.assert_array_equal(with_test.val, without.val)


def test_folds_test_each_labeled_node_once() -> None:
    y = np.where(np.arange(120) % 7, GRAPH.y, -1)
    parts = list(folds(y, 4).values())
    assert (np.sum([part.test for part in parts], axis=0) == (y >= 0)).all()
    assert (np.sum([part.val for part in parts], axis=0) == (y >= 0)).all()
    for part in parts:
        assert ((part.train.astype(int) + part.val + part.test) == (y >= 0)).all()
        counts = np.bincount(y[part.test], minlength=3)
        assert counts.max() - counts.min() <= 2


def test_nested_cross_validation_picks_each_folds_strength_on_its_own_validation_nodes() -> None:
    options = {**QUICK, "mu": [0.1, 0.5, 2.0], "max_epochs": 20}
    result = fit(communities(same=0.7), "gcn", test="cv", splits=4, **options)
    assert result.test.shape == (4, 4, 1)
    picked = result.val[:, :, 0].argmax(axis=0)  # the first of equal ones
    expected = np.mean([result.test[m, s, 0] - result.test[0, s, 0] for s, m in enumerate(picked)])
    found = judge(result).pair
    assert found is not None
    assert result.mu > 0
    assert found.difference.mean == pytest.approx(expected)
    assert "P-reg per fold" in result.summary()
    with pytest.raises(ValueError, match="train_per_class does not apply with test='cv'"):
        fit(GRAPH, "gcn", test="cv", train_per_class=3, **QUICK)
    with pytest.raises(DataError, match="are too few for 70 folds"):
        fit(GRAPH, "gcn", test="cv", splits=70, **QUICK)


def test_labels_that_mean_unknown_are_named() -> None:
    named = replace(GRAPH, class_names=("cat", "NaN", "?"))
    with pytest.warns(UserWarning, match="80 nodes have the label 'NaN' or '\\?', which counts as a class of its own"):
        fit(to_data(named), "mlp", splits=1, train_per_class=5, val_per_class=5, **QUICK)
