"""Several selection rules that watch one training, and the measures of the epochs that they report."""

from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pytest
import torch

from engine.graphs import problem, splits
from propreg.engine import Method, Model, Protocol, Replica, Result
from propreg.engine.models.network import no_dropout
from propreg.engine.spec import RuleName
from propreg.engine.training.epoch import at
from propreg.engine.training.measures import measure
from propreg.engine.training.stopping import RULES
from propreg.engine.training.train import train
from propreg.metrics import METRICS

GCN, METHOD, EPOCHS = Model("gcn", hidden=16), Method.preset("reference"), 40
RUNS = [
    Replica(seed=s, split="ab"[s % 2], strength=0.2 * s, patience=p, lr=0.02) for s, p in enumerate((3, 40, 1, 12, 200))
]


def trained(rule: Any, **options: Any) -> dict[int, Result]:
    return dict(train(problem(), GCN, METHOD, RUNS, Protocol(rule, EPOCHS), **options))


def test_the_protocol_knows_every_rule() -> None:
    assert set(get_args(RuleName)) == set(RULES)


def test_a_result_reports_its_own_rule_unless_others_are_asked_for() -> None:
    for result in trained("official").values():
        (report,) = result.reports
        assert (report.rule, report.epoch, report.val, report.test, report.measures) == (
            *("official", result.epoch, result.val, result.test),
            None,
        )


@pytest.mark.parametrize("every", [1, 16])
def test_a_rule_that_watches_reports_what_it_would_alone(every: int) -> None:
    found = trained("latest_best", rules=list(RULES), measures=True, check_every=every)
    others = [name for name in RULES if name != "latest_best"]
    assert all([each.rule for each in result.reports] == ["latest_best", *others] for result in found.values())
    for name in RULES:
        for i, alone in trained(name, measures=True, keep_weights=True).items():
            report = next(each for each in found[i].reports if each.rule == name)
            assert report == alone.reports[0]
            assert [each.rule for each in found[i].reports] == [
                "latest_best",
                *(n for n in RULES if n != "latest_best"),
            ]
            # And its measures are those of the weights of that epoch.
            network, graph = problem().network(GCN), problem()
            p = {key: w.unsqueeze(0) for key, w in alone.weights.items()}
            logits = network.finish(p, network.begin(p), no_dropout)[0]
            split = splits("plain")[alone.replica.split]
            assert report.measures is not None
            assert report.measures.val == measure(logits[split.val], graph.y[split.val])
            assert report.measures.test == measure(logits[split.test], graph.y[split.test])
            accuracy = METRICS["accuracy"].compute
            assert accuracy(report.measures.val) == pytest.approx(report.val)
            assert accuracy(report.measures.test) == pytest.approx(report.test)


def test_the_lowest_validation_loss_is_that_of_the_logits() -> None:
    runs, epochs = RUNS[:2], 20
    found = dict(train(problem(), GCN, METHOD, runs, Protocol("lowest_val_loss", epochs)))
    losses: dict[int, list[float]] = {i: [] for i in found}
    for length in range(1, epochs + 1):
        last = dict(train(problem(), GCN, METHOD, runs, Protocol("last", length), measures=True))
        for i, result in last.items():
            measures = result.reports[0].measures
            assert measures is not None
            losses[i].append(METRICS["nll"].compute(measures.val))
    for i, result in found.items():
        assert result.epochs == epochs
        assert losses[i][result.epoch - 1] == pytest.approx(min(losses[i]), rel=1e-5)


def test_measures_do_not_depend_on_who_else_is_there() -> None:
    together = trained("official", measures=True, rules=["last", "prior_corrected"])
    for i, replica in enumerate(RUNS):
        ((_, alone),) = train(
            problem(),
            GCN,
            METHOD,
            [replica],
            Protocol("official", EPOCHS),
            measures=True,
            rules=["last", "prior_corrected"],
        )
        assert alone == together[i]


def test_a_corrected_report_is_of_the_runs_own_epoch_and_weights() -> None:
    found = trained("official", rules=["prior_corrected", "last"], measures=True)
    graph, differ = problem(), 0
    for result, weighted in zip(found.values(), trained("official", keep_weights=True).values(), strict=True):
        own, last, corrected = result.reports
        assert (own.rule, last.rule, corrected.rule) == ("official", "last", "prior_corrected")
        assert (corrected.epoch, corrected.measures, result.val) == (own.epoch, None, own.val)
        network = graph.network(GCN)
        p = {key: w.unsqueeze(0) for key, w in weighted.weights.items()}
        z = network.finish(p, network.begin(p), no_dropout)[0].numpy()
        split = splits("plain")[result.replica.split]
        odds = np.exp(z)
        prior = (odds / odds.sum(1, keepdims=True))[split.test].mean(0)
        right = (odds * prior).argmax(1) == graph.y.numpy()
        assert (corrected.val, corrected.test) == (right[split.val].mean(), right[split.test].mean())
        differ += (corrected.val, corrected.test) != (own.val, own.test)
    assert differ
    with pytest.raises(ValueError, match="pass measures=True"):
        next(train(problem(), GCN, METHOD, RUNS, Protocol(), rules=["prior_corrected"]))


def test_a_broken_run_has_no_measures_of_what_is_not_finite() -> None:
    broken = [replace(RUNS[0], lr=1e200)]
    for _, result in train(problem(), GCN, METHOD, broken, Protocol("last", EPOCHS), measures=True):
        assert result.failed
        assert result.reports[0].measures is None


def test_an_unknown_rule_is_refused_before_anything_is_trained() -> None:
    with pytest.raises(ValueError, match=r"rules must be one of .*Did you mean 'last'"):
        next(train(problem(), GCN, METHOD, RUNS, Protocol(), rules=["lsat"]))


@pytest.mark.parametrize(("replicas", "members"), [(7, 3), (4, 2), (3, 4), (2, 1)])
def test_the_logits_of_nodes_in_groups(replicas: int, members: int) -> None:
    """As the kernels lay logits out: members side by side in the rows of a group, the last group not always full."""
    rng, groups = torch.Generator().manual_seed(0), -(-replicas // members)
    rows = torch.randn(groups, 11, members, 8, generator=rng)  # with room in front of five classes
    logits = rows.transpose(1, 2)[..., 3:]
    nodes = torch.randint(11, (replicas, 6), generator=rng)
    found = at(logits, nodes)
    apart = np.concatenate([logits[g].numpy() for g in range(groups)])[:replicas]
    np.testing.assert_array_equal(found, np.stack([z[n] for z, n in zip(apart, nodes.numpy(), strict=True)]))
    np.testing.assert_array_equal(found, at(torch.from_numpy(apart), nodes))
