"""Settings that mean nothing are refused before anything is trained, and a batch can be left at any time."""

import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from propreg.data.graph import Graph, Split
from propreg.engine.spec import Method, Model, Protocol, Replica
from propreg.engine.tasks.node import Problem
from propreg.engine.training.batches import Options, train_all
from propreg.engine.training.epoch import Numbers
from propreg.engine.training.stopping import OFFICIAL
from propreg.engine.training.train import Ledger, train

NODES = 12


def problem(**parts: Any) -> Problem:
    node = np.arange(NODES)
    masks = {part: node % 3 == i for i, part in enumerate(("train", "val", "test"))} | parts
    ring = np.stack([node, (node + 1) % NODES])
    graph = Graph("ring", np.concatenate([ring, ring[::-1]], 1), np.eye(NODES, dtype=np.float32), node % 2)
    return Problem(graph, {"0": Split(**masks)}, torch.device("cpu"))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"model": Model("gcm")}, "Did you mean 'gcn'"),
        ({"model": Model(layers=1)}, "layers must be a whole number of at least 2"),
        ({"model": Model("gat", layers=3)}, "gat has 2 layers"),
        ({"model": Model(input_dropout=1.5)}, "input_dropout must lie between 0 and 1"),
        ({"method": Method("p-reg")}, "Did you mean 'preg'"),
        ({"method": Method("preg", phi="cross_entropie")}, "Did you mean 'cross_entropy'"),
        ({"method": Method("preg", schedule="cosine")}, "schedule must be one of"),  # type: ignore[arg-type]
        ({"method": Method("laplacian", variant="official", reduction="sum")}, "no other reduction"),
        ({"method": Method("laplacian", threshold=0.1)}, "threshold does not apply to laplacian, got 0.1"),
        ({"method": Method("confidence_penalty", detach="self")}, "detach does not apply to confidence_penalty"),
        ({"method": Method("label_smoothing", second_pass=True)}, "second_pass does not apply to label_smoothing"),
        ({"method": Method("preg", variant="official")}, "variant does not apply to preg"),
        ({"method": Method("preg", threshold=0.1, reduction="sum")}, "cannot be combined with reduction='sum'"),
        ({"replicas": [Replica(patience=-1)]}, "patience must be a whole number of at least 0, got -1"),
        ({"replicas": [Replica(patience=1.5)]}, "patience must be a whole number"),  # type: ignore[arg-type]
        ({"protocol": Protocol(max_epochs=0)}, "max_epochs must be a whole number of at least 1"),
        ({"protocol": Protocol("lenient")}, "rule must be one of"),  # type: ignore[arg-type]
        ({"replicas": [Replica(split="7")]}, "split must be one of '0'"),
        ({"replicas": [Replica(dropout=-0.1)]}, "dropout must lie between 0 and 1"),
        ({"replicas": [Replica(unmask=2.0)]}, "unmask must lie between 0 and 1"),
        ({"replicas": [Replica(lr=float("nan"))]}, "lr must be a number of at least 0"),
        ({"replicas": [Replica(strength="0.5")]}, "strength must be a number of at least 0, got '0.5'"),  # type: ignore[arg-type]
        ({"replicas": [Replica(seed=1.5)]}, "seed must be a whole number, got 1.5"),  # type: ignore[arg-type]
        ({"method": Method("preg", threshold="a")}, "threshold must be a finite number, got 'a'"),  # type: ignore[arg-type]
        ({"method": Method("preg", phi_scale=float("nan"))}, "phi_scale must be a finite number, got nan"),
        ({"model": Model(input_dropout="a")}, "input_dropout must lie between 0 and 1, got 'a'"),  # type: ignore[arg-type]
        ({"model": Model(hidden=0)}, "hidden must be a whole number of at least 1, got 0"),
        ({"replicas": [*[Replica()] * 9, Replica(dropout=2.0)]}, "dropout must lie between 0 and 1"),
        (
            {"method": Method("preg", schedule="annealed"), "replicas": [Replica(strength=2.0)]},
            "strength must lie between 0 and 1",
        ),
        ({"model": Model("gcn", heads=3)}, "heads does not apply to gcn, got 3: leave it out"),
        ({"model": Model("mlp", attention_dropout=0.5)}, "attention_dropout does not apply to mlp, got 0.5"),
        ({"model": Model("gat", teleport=0.2)}, "teleport does not apply to gat, got 0.2"),
        ({"model": Model("appnp", out_heads=2)}, "out_heads does not apply to appnp, got 2"),
        ({"method": Method(), "replicas": [Replica(strength=0.5)]}, "strength does not apply to plain, got 0.5"),
        (
            {"method": Method("laplacian"), "replicas": [Replica(), Replica(strength=0.5, unmask=0.1)]},
            "unmask does not apply to laplacian, got 0.1: leave it out",
        ),
    ],
)
def test_a_setting_that_means_nothing(changed: dict[str, Any], said: str) -> None:
    asked: dict[str, Any] = {"model": Model(), "method": Method("preg"), "replicas": [Replica()]}
    asked |= {"protocol": Protocol(max_epochs=2)} | changed
    with pytest.raises(ValueError, match=said):
        list(train_all(problem(), asked["model"], asked["method"], asked["replicas"], asked["protocol"]))


@pytest.mark.parametrize("part", ["train", "val", "test"])
def test_a_part_of_the_split_without_nodes(part: str) -> None:
    empty = problem(**{part: np.zeros(NODES, np.bool_)})
    with pytest.raises(ValueError, match=f"no {part} nodes"):
        list(train_all(empty, Model(), Method(), [Replica()], Protocol(max_epochs=2)))


@pytest.mark.parametrize("part", ["train", "val", "test"])
def test_a_node_without_a_class_cannot_be_judged(part: str) -> None:
    found = problem()
    node = int(np.flatnonzero(getattr(found.splits["0"], part))[1])
    found.graph.y[node] = -1
    with pytest.raises(ValueError, match=rf"split '0': node {node} is in {part} but has no label \(y = −1\)"):
        list(train_all(found, Model(), Method(), [Replica()], Protocol(max_epochs=2)))


def test_every_replica_is_looked_at_before_the_first_is_trained() -> None:
    training = train_all(problem(), Model(), Method(), [*[Replica()] * 9, Replica(lr=-1.0)], Protocol(max_epochs=2))
    with pytest.raises(ValueError, match="lr must be a number of at least 0"):
        next(training)


@pytest.mark.parametrize("nodes", [np.array([0, 3, 6, 9]), np.zeros(NODES, np.int64), np.ones(5, np.bool_)])
def test_a_split_is_masks_and_not_node_numbers(nodes: Any) -> None:
    found = problem(train=nodes)
    with pytest.raises(ValueError, match=r"split '0': train must be bool \[12\], a mask over the nodes, got"):
        list(train_all(found, Model(), Method(), [Replica()], Protocol(max_epochs=2)))


@pytest.mark.parametrize("keep_weights", [True, False])
@pytest.mark.parametrize(
    "protocol", [Protocol(max_epochs=1), Protocol("strict", max_epochs=9)], ids=["limit", "strict"]
)
def test_weights_that_the_last_step_has_broken_are_a_failure(protocol: Protocol, keep_weights: bool) -> None:
    asked = [Replica(lr=1e38, patience=0), Replica(patience=0)]  # the strict rule then stops at the first epoch too
    options = Options(keep_weights=keep_weights, batch=2)
    found = dict(train_all(problem(), Model(), Method(), asked, protocol, options))
    assert (found[0].failed_at, found[1].failed_at) == (1, None)


def test_a_last_step_that_is_not_reported_may_break() -> None:
    """What the first run reports is of an earlier epoch, and sound."""
    ledger = Ledger(problem(), [Replica()] * 2)
    ledger.begin([OFFICIAL], 2)
    loss, first, second = torch.ones(2), torch.tensor([2, 1]), torch.tensor([1, 2])
    ledger.write([Numbers(loss, first, first), Numbers(loss, second, second)], torch.tensor([torch.nan, torch.inf]))
    assert (ledger.stopper.watches[0].epoch.tolist(), ledger.failed_at.tolist()) == ([1, 2], [0, 2])


def test_the_callers_modes_have_no_part_in_a_step() -> None:
    asked = problem(), Model(), Method("preg"), [Replica(strength=0.5)], Protocol(max_epochs=3)
    (usual,) = train(*asked)
    with torch.no_grad():
        (without,) = train(*asked)
    assert usual == without


def test_the_official_laplacian_knows_no_edge_weights() -> None:
    found = problem()
    weights = np.full(found.graph.edge_index.shape[1], 2.0, np.float32)
    weighted = Problem(replace(found.graph, edge_weight=weights), found.splits, torch.device("cpu"))
    with pytest.raises(ValueError, match="knows no edge weights"):
        weighted.regularizer(Method("laplacian", variant="official"))


@pytest.mark.parametrize(
    "options",
    [Options(batch=0), Options(batch=-1), Options(workers=-1), Options(batch=2.5)],  # type: ignore[arg-type]
)
def test_options_that_would_train_nothing(options: Options) -> None:
    with pytest.raises(
        ValueError, match=r"(batch|workers) must be a whole number of at least 1 or None, got (0|-1|2.5)"
    ):
        list(train_all(problem(), Model(), Method(), [Replica()], Protocol(max_epochs=2), options))


def test_whole_numbers_of_numpy() -> None:
    asked = Replica(seed=np.int64(3), patience=np.int64(5)), Model(hidden=np.int64(8)), Protocol(max_epochs=np.int64(4))  # type: ignore[arg-type]
    (numpys,) = train_all(problem(), asked[1], Method(), [asked[0]], asked[2])
    (ours,) = train_all(problem(), Model(hidden=8), Method(), [Replica(seed=3, patience=5)], Protocol(max_epochs=4))
    assert (numpys[1].val, numpys[1].test, numpys[1].epoch) == (ours[1].val, ours[1].test, ours[1].epoch)


def test_leaving_early_does_not_wait_for_runs_without_an_end() -> None:
    endless = Replica(seed=0, patience=10**9)
    both, forever = [replace(endless, patience=1), endless], Protocol(max_epochs=10**9)
    runs = train_all(problem(), Model(), Method(), both, forever, Options(batch=1))
    next(runs)
    start = time.monotonic()
    runs.close()
    assert time.monotonic() - start < 30
