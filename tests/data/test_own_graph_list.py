"""A user's list of graphs: what is read, and one sentence for what cannot be."""

from typing import Any

import numpy as np
import pytest
import torch

from propreg.data.errors import DataError
from propreg.data.own.graph_list import check_kind, read_graphs
from propreg.data.own.pyg import data_class

pytest.importorskip("torch_geometric")
EDGES = torch.tensor([[0, 1, 1], [1, 0, 1]])


def graph(y: Any = 1, **parts: Any) -> Any:
    given = {"x": torch.ones(2, 3), "edge_index": EDGES, "y": torch.tensor(y) if isinstance(y, int | float) else y}
    return data_class()(**{**given, **parts})


def test_graphs_are_laid_end_to_end() -> None:
    lone = graph(0, x=torch.zeros(1, 3), edge_index=torch.zeros(2, 0, dtype=torch.long), edge_attr=torch.zeros(0, 2))
    made = read_graphs([graph(edge_attr=torch.arange(6).view(3, 2)), lone, graph(2, edge_attr=torch.ones(3, 2))])
    assert (made.num_nodes.tolist(), made.num_edges.tolist()) == ([2, 1, 2], [3, 0, 3])
    assert made.edge_index.tolist() == [[0, 1, 1, 0, 1, 1], [1, 0, 1, 1, 0, 1]]
    assert made.edge_attr[:3].tolist() == [[0, 1], [2, 3], [4, 5]]
    assert (made.y[:, 0].tolist(), made.kind, made.coded) == ([1, 0, 2], "classification", False)


@pytest.mark.parametrize(
    ("targets", "kind"),
    [
        ([torch.tensor([0]), torch.tensor([1])], "classification"),
        ([torch.tensor([[0]]), torch.tensor([[1]])], "binary classification"),
        ([torch.tensor([[0.0, torch.nan]]), torch.tensor([[1.0, 1.0]])], "binary classification"),
        ([torch.tensor([0.5]), torch.tensor([1.0])], "regression"),
        ([torch.tensor([[0.5, 2.0]]), torch.tensor([[1.0, 0.0]])], "regression"),
    ],
)
def test_the_task_is_that_of_the_targets(targets: list[torch.Tensor], kind: str) -> None:
    assert check_kind(read_graphs([graph(y) for y in targets]), "auto").kind == kind


def test_ogbs_integers_are_kept_as_codes() -> None:
    atoms, bonds = torch.tensor([[5, 0, 4, 5, 3, 0, 2, 0, 0]] * 2), torch.zeros(3, 3, dtype=torch.long)
    assert read_graphs([graph(x=atoms, edge_attr=bonds)]).coded
    assert not read_graphs([graph(x=atoms.float(), edge_attr=bonds)]).coded
    assert not read_graphs([graph(x=atoms + 100, edge_attr=bonds)]).coded


@pytest.mark.parametrize(
    ("graphs", "sentence"),
    [
        ([], "graphs is empty: give a list with one PyG Data per graph."),
        ([graph(), graph(x=torch.ones(2, 4))], "graph 1: x has 4 columns, but that of graph 0 has 3"),
        ([graph(), graph(edge_attr=torch.ones(3, 1))], "graph 1: edge_attr has 1 columns, but that of graph 0 has 0"),
        ([graph(), graph(torch.ones(1, 2))], "graph 1: y has 2 columns, but that of graph 0 has 1"),
        ([graph(), graph("active")], r"graph 1: y is text \('active'\): number classes 0, 1, …"),
        ([graph(), graph(["active"])], r"graph 1: y is text \('active'\): number classes 0, 1, …"),
        ([graph(torch.tensor(torch.inf))], "graph 0: y is infinite"),
        ([graph(torch.ones(2, 2))], "graph 0: y must be a number or a row of tasks"),
        ([graph(x=None)], "graph 0: has no x: each graph needs features"),
        ([graph(x=torch.ones(0, 3))], "graph 0: x must be numbers"),
        ([graph(x=torch.full((2, 3), torch.nan))], "graph 0: x holds a NaN"),
        ([graph(edge_index=EDGES + 1)], "graph 0: edge_index refers to node 2, but x has 2 rows"),
        ([graph(edge_index=EDGES.float())], "graph 0: edge_index must be integers"),
        ([graph(edge_attr=torch.ones(2, 1))], "graph 0: edge_attr is .* for 3 edges"),
    ],
)
def test_bad_graphs_are_refused_in_one_sentence(graphs: list[Any], sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        read_graphs(graphs)


@pytest.mark.parametrize("given", [graph(), "folder", 3])
def test_one_graph_is_no_list(given: Any) -> None:
    with pytest.raises(TypeError, match="graphs must be a list of PyG Data, one per graph"):
        read_graphs(given)


@pytest.mark.parametrize(
    ("targets", "task", "sentence"),
    [
        ([np.nan, np.nan], "auto", "no graph has a label"),
        ([None, None], "auto", "no graph has a label"),
        ([1, 1], "auto", "every label is 1, so there is nothing to learn"),
        ([0, 2], "binary", "y must be 0 or 1 for task='binary', got 2"),
        ([0.5, 2.0], "classification", "y must be whole numbers from 0"),
        ([-1, 2], "classification", "y must be whole numbers from 0"),
        ([0, 10**6], "auto", "y has class 1,000,000"),
    ],
)
def test_targets_that_teach_nothing_are_refused(targets: list[Any], task: str, sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        check_kind(read_graphs([graph(y) for y in targets]), task)
