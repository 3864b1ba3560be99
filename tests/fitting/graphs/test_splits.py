"""Splits of graphs: at random, by group, given."""

from typing import Any

import numpy as np
import pytest

from molecules.made_up import graphs
from propreg.data.errors import DataError
from propreg.data.graph_list import GraphList
from propreg.fitting.graphs.splits import named_splits

GRAPHS = graphs(40)


def test_random_splits_hold_each_graph_once_and_are_the_same_every_time() -> None:
    found = named_splits(GRAPHS, 3)
    for split in found.values():
        assert [len(split[part]) for part in ("train", "valid", "test")] == [32, 4, 4]
        assert sorted(np.concatenate(list(split.values()))) == list(range(40))
    assert not np.array_equal(found["random-0"]["test"], found["random-1"]["test"])
    np.testing.assert_array_equal(named_splits(GRAPHS, 1)["random-0"]["test"], found["random-0"]["test"])


def test_graphs_of_a_group_stay_together() -> None:
    groups = [f"scaffold {i % 9}" for i in range(40)]
    for split in named_splits(GRAPHS, 5, groups).values():
        parts = [{groups[i] for i in split[part]} for part in ("train", "valid", "test")]
        assert all(parts)
        assert sum(map(len, parts)) == 9


def test_given_splits_may_call_validation_what_they_want() -> None:
    split = {"train": range(30), "val": np.arange(40) == 35, "test": [36, 37]}
    found = named_splits(GRAPHS, [split])["0"]
    assert found["valid"].tolist() == [35]
    assert list(named_splits(GRAPHS, split)) == ["given"]
    assert list(named_splits(GRAPHS, {"a": split, "b": split})) == ["a", "b"]
    assert list(named_splits(GRAPHS, None)) == ["own"]


@pytest.mark.parametrize(
    ("splits", "sentence"),
    [
        (0, "splits must be at least 1, got 0"),
        ([], "splits is empty"),
        ([{"train": [0, 1], "test": [2]}], "split '0' has no val part"),
        ([{"train": [0, 1], "val": [2], "test": [2]}], "graph 2 is in it more than once"),
        ([{"train": [0, 1], "val": [2], "test": [40]}], "its test part names graph 40, but there are 40"),
        ([{"train": [0, 1], "val": [], "test": [3]}], "its valid part must be a list of graph numbers"),
        ([{"train": [0], "val": [1], "test": [3]}], "has one training graph"),
    ],
)
def test_bad_splits_are_refused(splits: Any, sentence: str) -> None:
    with pytest.raises((ValueError, TypeError), match=sentence):
        named_splits(GRAPHS, splits)


def of_answers(*positive: int) -> GraphList:
    y = np.zeros((40, 1), np.float32)
    y[list(positive)] = 1
    return GraphList(
        GRAPHS.x,
        GRAPHS.edge_index,
        GRAPHS.edge_attr,
        GRAPHS.num_nodes,
        GRAPHS.num_edges,
        y,
        kind="binary classification",
    )


def test_a_random_split_has_both_answers_in_each_part_if_there_are_enough() -> None:
    rare = of_answers(1, 5, 9, 20, 21, 30)
    for split in named_splits(rare, 3).values():
        assert all(rare.y[split[part]].sum() >= 1 for part in ("valid", "test"))
    with pytest.raises(DataError, match="none of 50 random splits can be used: no task has both classes in its valid"):
        named_splits(of_answers(1), 1)


def test_groups_are_for_random_splits() -> None:
    with pytest.raises(ValueError, match="groups is for random splits, but splits are given"):
        named_splits(GRAPHS, [{"train": [0, 1], "val": [2], "test": [3]}], list(range(40)))
    with pytest.raises(DataError, match="groups names 2 groups, and a split needs three"):
        named_splits(GRAPHS, 1, [0, 1] * 20)
