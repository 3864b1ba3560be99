"""Several models and regularizers at once: the rows are single fits, and the findings are those of the graph."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from communities import communities
from fitting.own_modules import GRAPH, QUICK, Base
from propreg import PReg, preg
from propreg.data.graph import Graph
from propreg.engine import Model
from propreg.engine.regularizers import tunable
from propreg.fitting.fit import fit

SEVERAL: dict[str, Any] = {"splits": 5, "seeds": 1, "train_per_class": 10, "val_per_class": 10, "progress": False}


def test_each_row_is_a_fit_of_its_own_and_the_best_on_validation_comes_back() -> None:
    result = fit(GRAPH, models=["gcn", "mlp", Base], **QUICK)
    board = result.leaderboard
    assert board is not None
    assert list(board.results) == ["gcn", "mlp", "Base"]
    for name, model in (("gcn", "gcn"), ("mlp", "mlp"), ("Base", Base)):
        alone: Any = fit(GRAPH, model, **QUICK)
        np.testing.assert_array_equal(board.results[name].test, alone.test)
        row = next(row for row in board.rows() if row.name == name)
        assert row.validation == pytest.approx(alone.val[alone.mus.index(alone.mu)].mean())
        assert row.test.mean == pytest.approx(alone.chosen.mean)
        assert (row.gain is None) == (alone.mu == 0)
    scores = [row.validation for row in board.rows()]
    assert scores == sorted(scores, reverse=True)
    best = board.results[board.best]
    assert (result.mu, result.model) == (best.mu, best.model)
    assert (result.predict() == best.predict()).all()
    text = result.summary()
    assert all(row.title in text for row in board.rows())
    assert text.index(board.rows()[0].title) < text.index(board.rows()[1].title)
    assert repr(result).startswith("<FitResult: ")


def test_several_regularizers_and_one_of_ones_own() -> None:
    def mine(z: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        return preg(z, edge_index)

    result = fit(GRAPH, "gcn", method=["preg", "laplacian", mine], **QUICK)
    assert result.leaderboard is not None
    found = result.leaderboard.results
    assert list(found) == ["gcn + preg", "gcn + laplacian", "gcn + mine"]
    np.testing.assert_allclose(found["gcn + mine"].test, found["gcn + preg"].test, atol=1e-9)
    assert "mine 0.5" in found["gcn + mine"].summary()
    assert "own mine" not in tunable()


def test_a_module_is_a_regularizer_too() -> None:
    expected, found = (fit(GRAPH, "mlp", regularizer=r, **QUICK) for r in ("preg", PReg()))
    np.testing.assert_allclose(found.test, expected.test, atol=1e-9)


def test_what_is_no_regularizer() -> None:
    with pytest.raises(TypeError, match="regularizer rows must return a scalar tensor with a gradient to z, got sh"):
        fit(GRAPH, method=rows, **QUICK)
    with pytest.raises(TypeError, match=r"must return a scalar tensor with a gradient to z, got 3\.0"):
        fit(GRAPH, method=lambda z, edge_index: 3.0, **QUICK)  # type: ignore[arg-type, return-value]  # noqa: ARG005
    with pytest.raises(ValueError, match="resume cannot know whether a regularizer of your own is the same"):
        fit(GRAPH, method=rows, resume="nowhere", **QUICK)
    with pytest.raises(ValueError, match="models is empty"):
        fit(GRAPH, models=[], **QUICK)
    with pytest.raises(ValueError, match="model and models are given"):
        fit(GRAPH, "mlp", models=["gcn"], **QUICK)


def rows(z: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:  # noqa: ARG001
    return z.sum(1)


def test_models_of_one_name_are_numbered() -> None:
    result = fit(GRAPH, models=[Model("gcn", hidden=4), Model("gcn", hidden=8), Model("gcn", hidden=16)], **QUICK)
    assert result.leaderboard is not None
    assert list(result.leaderboard.results) == ["gcn", "gcn 2", "gcn 3"]


def test_where_edges_mislead_it_says_so() -> None:
    graph = communities(nodes=300, same=0.1, degree=6)
    x = np.asarray(graph.x).copy()
    x[np.arange(300), graph.y] += 3
    misleading = replace(graph, x=x)
    board = fit(misleading, models=["gcn", "mlp"], mu=0.1, max_epochs=40, **SEVERAL).leaderboard
    assert board is not None
    (finding,) = board.findings()
    assert finding.startswith("The edges mislead: the plain MLP, which sees none, does better than the plain GCN, by +")
    apart = (board.results["mlp"].test[0] - board.results["gcn"].test[0]).mean()
    assert f"{100 * apart:+.2f} points of test accuracy" in finding
    assert finding in board.summary()
    helpful = fit(communities(nodes=300), models=["gcn", "mlp"], mu=0.1, max_epochs=40, **SEVERAL).leaderboard
    assert helpful is not None
    assert helpful.findings() == []


def test_where_undirected_beats_directed_it_says_so() -> None:
    """Every edge leads from a node that is seldom a target: most nodes learn from no neighbor."""
    graph = communities(nodes=300, same=0.98, degree=3)
    one_way = graph.edge_index[:, graph.edge_index[0] < graph.edge_index[1]]
    directed = Graph("directed", one_way, graph.x, graph.y)
    result = fit(directed, models=["gcn", "mlp"], mu=0.1, max_epochs=40, **SEVERAL)
    board = result.leaderboard
    assert board is not None
    assert board.undirected is not None
    assert board.undirected.mus == (0.0,)
    found = [finding for finding in board.findings() if finding.startswith("Undirected beats directed")]
    apart = (board.undirected.test[0] - board.results["gcn"].test[0]).mean()
    assert apart > 0.02
    assert f"{100 * apart:+.2f} points" in found[0]
    assert result.graph is not None
    assert result.graph.edge_index.shape == one_way.shape


def test_log_loss_ranks_the_lowest_first() -> None:
    board = fit(GRAPH, models=["gcn", "mlp"], metric="log_loss", **QUICK).leaderboard
    assert board is not None
    values = [row.validation for row in board.rows()]
    assert values == sorted(values)
    assert "%" not in board.summary().replace("95 %", "")
