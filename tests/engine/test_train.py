"""The loop around the steps: what it reports, when it hands it out, and what it does with a run that breaks."""

from dataclasses import replace
from itertools import islice
from typing import Any, Literal

import numpy as np
import pytest
import torch

from engine.follow import Run
from engine.graphs import problem, splits
from engine.test_stopping import official, strict
from propreg.engine import Method, Model, Protocol, Replica, Result
from propreg.engine.models.network import no_dropout
from propreg.engine.training.train import train

GCN = Model("gcn", hidden=16)
METHOD = Method.preset("reference")
RUNS = [
    Replica(seed=s, split="ab"[s % 2], strength=0.2 * s, patience=p, lr=0.02) for s, p in enumerate((3, 40, 1, 12, 200))
]


def trained(replicas: list[Replica], rule: Any = "official", max_epochs: int = 60, **options: Any) -> dict[int, Result]:
    """{place: result}, each place once."""
    found = list(train(problem(), GCN, METHOD, replicas, Protocol(rule, max_epochs), keep_history=True, **options))
    results = dict(found)
    assert len(results) == len(found) == len(replicas)
    assert all(results[i].replica == r for i, r in enumerate(replicas))
    return results


def counts(result: Result) -> list[tuple[int, int]]:
    """The numbers of right validation and test nodes in each epoch."""
    split = splits("plain")[result.replica.split]
    pairs = zip(result.history["val"] * split.val.sum(), result.history["test"] * split.test.sum(), strict=True)
    return [(round(val), round(test)) for val, test in pairs]


@pytest.mark.parametrize("rule", ["official", "strict"])
def test_a_result_is_what_the_rule_makes_of_its_history(rule: Literal["official", "strict"]) -> None:
    for result in trained(RUNS, rule).values():
        split = splits("plain")[result.replica.split]
        expected = (official if rule == "official" else strict)(counts(result), result.replica.patience, 60)
        assert len(result.history["loss"]) == result.epochs == expected.epochs
        assert result.epoch == expected.epoch
        assert result.val == pytest.approx(expected.val / split.val.sum(), rel=1e-12)
        assert result.test == pytest.approx(expected.test / split.test.sum(), rel=1e-12)
        assert not result.failed


def test_the_history_is_that_of_the_steps() -> None:
    run = Run(problem(), GCN, METHOD, RUNS, Protocol())
    results = trained([replace(r, patience=1000) for r in RUNS], max_epochs=30)
    y = torch.from_numpy(problem().graph.y)
    for epoch in range(30):
        losses = run.step()
        right = (run.logits().argmax(-1) == y).numpy()  # an epoch's accuracy is that after its step
        for i, result in results.items():
            split = splits("plain")[result.replica.split]
            assert result.history["loss"][epoch] == pytest.approx(float(losses[i]), abs=1e-9)
            assert counts(result)[epoch] == (int(right[i][split.val].sum()), int(right[i][split.test].sum()))


@pytest.mark.parametrize("rule", ["official", "strict"])
@pytest.mark.parametrize("every", [2, 7, 16, 1000])
def test_how_often_is_looked_changes_nothing(rule: str, every: int) -> None:
    expected = trained(RUNS, rule, keep_weights=True)
    for i, result in trained(RUNS, rule, check_every=every, keep_weights=True).items():
        assert result == expected[i]
        for name in ("val", "test"):
            assert np.array_equal(result.history[name], expected[i].history[name])
        np.testing.assert_allclose(result.history["loss"], expected[i].history["loss"], rtol=0, atol=1e-8)
        for name, w in expected[i].weights.items():
            torch.testing.assert_close(result.weights[name], w, rtol=0, atol=1e-8)


@pytest.mark.parametrize("rule", ["official", "strict"])
def test_the_weights_are_those_of_the_reported_epoch(rule: str) -> None:
    network, y = problem().network(GCN), torch.from_numpy(problem().graph.y)
    for result in trained(RUNS, rule, keep_weights=True).values():
        p = {name: w.unsqueeze(0) for name, w in result.weights.items()}
        logits = network.finish(p, network.begin(p), no_dropout)[0]
        split = splits("plain")[result.replica.split]
        right = (logits.argmax(-1) == y).numpy()
        assert right[split.val].mean() == pytest.approx(result.val)
        assert right[split.test].mean() == pytest.approx(result.test)


@pytest.mark.parametrize("rule", ["official", "strict"])
def test_not_even_where_no_step_does_better_than_the_start(rule: str) -> None:
    # Large steps spoil most of these runs at once; their weights before the first step are nobody's result.
    wild = [Replica(seed=s, split="ab"[s % 2], lr=0.7, dropout=0.8) for s in range(12)]
    run, after = Run(problem(), GCN, METHOD, wild, Protocol()), []
    for _ in range(3):
        run.step()
        after.append(run.weights)
    for i, result in trained(wild, rule, max_epochs=3, keep_weights=True).items():
        for name, w in result.weights.items():
            torch.testing.assert_close(w, after[result.epoch - 1][name][i], rtol=0, atol=1e-8)


def test_no_history_and_no_weights_unless_asked_for() -> None:
    for _, result in train(problem(), GCN, METHOD, RUNS[:2], Protocol(max_epochs=3)):
        assert not result.history
        assert not result.weights


def test_results_come_the_moment_a_run_stops() -> None:
    # The last run would go on for ever: nothing may wait for it.
    endless = Replica(seed=9, split="a", patience=10**9)
    short = [Replica(seed=i, split="a", patience=p) for i, p in enumerate((30, 2, 9))]
    found = train(problem(), GCN, METHOD, [endless, *short], Protocol("strict", max_epochs=10**9))
    results = list(islice(found, 3))
    found.close()  # type: ignore[attr-defined]
    assert {place for place, _ in results} == {1, 2, 3}
    ends = [result.epochs for _, result in results]
    assert ends == sorted(ends)
    assert len(set(ends)) == 3


def test_a_result_does_not_depend_on_who_else_is_there() -> None:
    together = trained(RUNS)
    for i, replica in enumerate(RUNS):
        alone = trained([replica])[0]
        assert alone == together[i]
        np.testing.assert_allclose(alone.history["loss"], together[i].history["loss"], rtol=0, atol=1e-8)


BROKEN = Replica(seed=1, split="a", lr=1e200)


@pytest.mark.parametrize("every", [1, 5])
@pytest.mark.parametrize("method", [Method(), METHOD, Method("laplacian"), Method("label_smoothing")])
def test_a_run_that_breaks_is_reported_and_the_others_go_on(method: Method, every: int) -> None:
    run = Run(problem(), GCN, method, [BROKEN], Protocol())
    breaks_at = next(epoch for epoch in range(1, 20) if not bool(run.step().isfinite()))
    healthy = [replace(r, strength=0.0 if method.name == "plain" else r.strength) for r in (RUNS[0], RUNS[3])]
    options: dict[str, Any] = {"keep_history": True, "check_every": every}
    protocol = Protocol(max_epochs=40)
    found = dict(train(problem(), GCN, method, [healthy[0], BROKEN, healthy[1]], protocol, **options))
    assert found[1].failed
    assert found[1].failed_at == found[1].epochs == breaks_at
    expected = dict(train(problem(), GCN, method, healthy, protocol, **options))
    for place, i in ((0, 0), (2, 1)):
        assert found[place] == expected[i]
        assert not found[place].failed
        np.testing.assert_allclose(found[place].history["loss"], expected[i].history["loss"], rtol=0, atol=1e-8)


@pytest.mark.parametrize("rule", ["official", "strict"])
def test_the_weights_of_a_run_that_breaks_do_not_depend_on_how_often_is_looked(rule: Any) -> None:
    wild = [Replica(seed=s, split="ab"[s % 2], strength=0.5, lr=1e18) for s in range(8)]
    graph, method = problem(dtype=torch.float32), Method("laplacian", variant="official")
    often, rarely = (
        dict(train(graph, GCN, method, wild, Protocol(rule, 40), keep_weights=True, check_every=every))
        for every in (1, 16)
    )
    assert any(result.failed for result in often.values())
    for i, result in rarely.items():
        assert (result.epoch, result.failed_at) == (often[i].epoch, often[i].failed_at)
        for name, w in often[i].weights.items():
            torch.testing.assert_close(result.weights[name], w, equal_nan=True)


@pytest.mark.parametrize("name", ["gat", "mlp", "appnp"])
def test_a_run_that_breaks_in_float32(name: Any) -> None:
    model = Model("gat", hidden=8, heads=2) if name == "gat" else Model(name, hidden=8)
    broken = replace(BROKEN, lr=1e30)
    found = dict(train(problem(dtype=torch.float32), model, METHOD, [broken, RUNS[0]], Protocol(max_epochs=20)))
    assert found[0].failed
    assert not found[1].failed
    assert found[1].epochs > found[0].epochs


def test_all_runs_may_break() -> None:
    found = dict(train(problem(), GCN, METHOD, [BROKEN, replace(BROKEN, seed=2)], Protocol(max_epochs=20)))
    assert all(result.failed for result in found.values())
    assert len(found) == 2


def test_a_single_epoch() -> None:
    results = trained(RUNS, max_epochs=1)
    assert all(r.epoch == r.epochs == 1 for r in results.values())
