"""What a problem and a batch are made from: what is clear is taken, and else one sentence says what was meant."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from engine.graphs import problem, sample, splits
from propreg.data.features import from_dense
from propreg.data.own.pyg import to_data
from propreg.engine import Method, Model, Options, Problem, Protocol, Replica, train_all

ASKED: dict[str, Any] = {
    "problem": problem(),
    "model": Model(hidden=4),
    "method": Method("preg"),
    "replicas": [Replica(split="a")],
    "protocol": Protocol(max_epochs=3),
}


def trained(**changed: Any) -> Any:
    return dict(train_all(**{**ASKED, **changed}))


def test_a_device_may_be_text() -> None:
    by_name = Problem(sample("plain"), splits("plain"), "cpu", torch.float64)
    assert by_name.device == torch.device("cpu")
    assert trained(problem=by_name) == trained()


@pytest.mark.parametrize("device", ["auto", "abacus", None])
def test_a_device_that_torch_does_not_know(device: Any) -> None:
    with pytest.raises(ValueError, match=f"device must be cpu, cuda or one GPU like cuda:0, got {device!r}"):
        Problem(sample("plain"), splits("plain"), device)


def test_a_problem_of_something_else() -> None:
    with pytest.raises(TypeError, match=r"graph must be a propreg Graph, got a Data: .*read_graph\(data\)"):
        Problem(to_data(sample("plain")), splits("plain"), "cpu")
    with pytest.raises(TypeError, match=r"splits must be a dict of Splits by name, got a list: convert a list with "):
        Problem(sample("plain"), list(splits("plain").values()), "cpu")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"problem": sample("plain")}, "problem must be a propreg.engine.Problem, got a Graph."),
        ({"model": "gcn"}, r"model must be a propreg.engine.Model, got 'gcn': write Model\('gcn'\)."),
        ({"method": "preg"}, r"method must be a propreg.engine.Method, got 'preg': write Method\('preg'\)."),
        ({"protocol": 200}, "protocol must be a propreg.engine.Protocol, got a int."),
        ({"options": {"batch": 2}}, "options must be a propreg.engine.Options, got a dict."),
        ({"replicas": Replica()}, r"replicas must be a list of Replicas, got a Replica: pass \[Replica\(...\)\]."),
        ({"replicas": [0, 1]}, "each of replicas must be a propreg.engine.Replica, got a int."),
        (
            {"problem": Problem(sample("plain"), {"a": np.arange(3)}, "cpu")},  # type: ignore[dict-item]
            "split 'a' must be a propreg Split, got a ndarray.",
        ),
    ],
)
def test_what_is_no_setting_is_one_sentence(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(TypeError, match=said) as caught:
        trained(**changed)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("method", [Method(), Method("label_smoothing"), Method("confidence_penalty"), Method("preg")])
def test_short_rows_of_training_nodes_need_no_class_of_the_first_node(method: Method) -> None:
    """They are filled up with node 0, which has a weight of 0 there, and perhaps no class."""
    graph, parts = sample("plain"), splits("plain")
    without = {
        name: replace(s, **{p: getattr(s, p) & (np.arange(60) > 0) for p in vars(s)}) for name, s in parts.items()
    }
    unlabeled = replace(graph, y=np.where(np.arange(60) > 0, graph.y, -1))
    runs = [Replica(split=name, strength=0.0 if method.name == "plain" else 0.3) for name in "ab"]
    assert len({int(s.train.sum()) for s in without.values()}) == 2
    given = {"method": method, "replicas": runs, "options": Options(batch=2, keep_history=True)}
    found, usual = (
        trained(
            problem=Problem(replace(g, digests={"edges": "the same streams"}), without, "cpu", torch.float64), **given
        )
        for g in (unlabeled, graph)
    )
    for i, result in usual.items():
        assert found[i] == result
        assert np.array_equal(found[i].history["loss"], result.history["loss"])


@pytest.mark.parametrize("kind", ["plain", "dense"])
@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_features_must_be_finite(kind: str, number: float) -> None:
    """One bad feature would be a NaN in the loss of every run."""
    graph = sample(kind)
    dense = graph.x.copy() if isinstance(graph.x, np.ndarray) else graph.x.to_dense()
    dense[5, 7] = number
    bad = replace(graph, x=dense if isinstance(graph.x, np.ndarray) else from_dense(dense))
    with pytest.raises(ValueError, match="x must be finite, got 1 NaN or infinite features: replace them") as caught:
        Problem(bad, splits(kind), "cpu")
    assert "\n" not in str(caught.value)


def test_large_features_are_finite() -> None:
    graph = sample("dense")
    large = np.full(np.shape(graph.x), 1e308)
    Problem(replace(graph, x=large), splits("dense"), "cpu", torch.float64)
