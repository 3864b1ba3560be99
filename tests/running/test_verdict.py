"""What a run says: the verdict, the reasons with their numbers, the remarks."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from torch import nn

from communities import communities
from propreg.data.describe import linked_pairs
from propreg.data.errors import DataError
from propreg.data.graph import Graph, Split
from propreg.engine import Replica, Result
from propreg.fitting.explain import Facts, caveats, facts_of, reasons
from propreg.fitting.result import FitResult
from propreg.fitting.verdict import judge, pair, points
from propreg.report import run_page
from propreg.report.run_record import read_run
from propreg.running.compare import record_of
from report.reading import read

FACTS = Facts(homophily=0.8, by_chance=0.3, isolated=0, nodes=100, validation=200, edges=50)


def made_up(mu: float, test: Any, val: Any = None, mus: tuple[float, ...] = (0.0, 0.5), **more: Any) -> FitResult:
    """A result with these accuracies [strengths, splits, seeds]; nothing is trained."""
    tests = np.array(test, float)
    names = {str(i): Split(*(np.ones(4, bool) for _ in range(3))) for i in range(tests.shape[1])}
    values = tests if val is None else np.array(val, float)
    return FitResult(mu, mus, values, tests, nn.Identity(), (), None, **{"splits": names, **more})


def runs(*rows: float) -> list[list[float]]:
    return [[value] for value in rows]


BETTER = [runs(0.70, 0.72, 0.71, 0.69, 0.70), runs(0.75, 0.76, 0.74, 0.73, 0.77)]


def test_it_helps_where_the_interval_lies_above_zero() -> None:
    verdict = judge(made_up(0.5, BETTER))
    assert verdict.kind == "helps"
    assert verdict.sentence.startswith("P-reg helps on this graph: +4.60 points of test accuracy (95 % interval +")
    assert verdict.pair is not None
    assert (verdict.pair.mu, verdict.pair.units) == (0.5, 5)
    assert verdict.pair.difference.mean == pytest.approx(0.046)
    assert reasons(FACTS, made_up(0.5, BETTER), verdict) == []


def test_it_harms_where_validation_misled() -> None:
    verdict = judge(made_up(0.5, BETTER[::-1]))
    assert verdict.kind == "harms"
    assert "P-reg hurts on this graph: mu = 0.5 did best on validation, but gives −4.60" in verdict.sentence


def chose_plain(*gains: float) -> FitResult:
    return made_up(0.0, [runs(*[0.9] * len(gains)), runs(*(0.9 + g for g in gains))], [[[1.0]], [[0.5]]])


def test_where_plain_was_chosen_only_a_significant_loss_says_that_it_does_not_help() -> None:
    worse = judge(chose_plain(-0.01, -0.02, -0.01, -0.02, 0.0))
    assert worse.kind == "does not help"
    assert worse.sentence.startswith("P-reg does not help on this graph: no strength did better")
    for gains in ([-0.01] * 3, [-0.01, 0.02, -0.01, 0.01, 0.0], [0.01, 0.02, 0.01, 0.02, 0.01]):
        verdict = judge(chose_plain(*gains))
        assert verdict.kind == "not chosen"
        assert verdict.sentence.startswith("P-reg was not chosen on this graph: no strength did better")
        assert ("Do not choose by test accuracy" in verdict.sentence) == (min(gains) > 0)


def with_one_failed_training() -> FitResult:
    """Strength 0.5 does better on test, but one of its trainings is NaN: the fit does not choose it, nor compare it."""
    plain, weak, strong = runs(0.8, 0.8, 0.8, 0.8, 0.8), runs(*[0.776] * 5), runs(np.nan, *[0.83] * 4)
    val = [runs(*[0.9] * 5), runs(*[0.85] * 5), runs(np.nan, *[0.88] * 4)]
    predicted = {0.0: np.zeros((5, 1, 4), np.int64)}
    return made_up(0.0, [plain, weak, strong], val, (0.0, 0.1, 0.5), predicted=predicted)


def recorded(result: FitResult) -> dict[str, Any]:
    graph = Graph("four", np.array([[0, 1], [1, 0]]), np.eye(4, dtype=np.float32), np.array([0, 1, 0, 1]))
    return record_of(replace(result, graph=graph, facts=FACTS, settings={"max_epochs": 100}))


def test_terminal_and_page_have_one_verdict_where_a_training_failed() -> None:
    result = with_one_failed_training()
    record = recorded(result)
    assert judge(result).kind == record["verdict"]["kind"] == "does not help"
    assert "mu = 0.1, gives −2.40 points" in result.summary()
    text = read(run_page(json.loads(json.dumps(record)))).text
    assert "P-reg does not help on this graph" in text
    assert "μ = 0.1, gives −2.40 points of test accuracy" in text
    assert "3.00" not in text
    assert "95 % interval 80.00 to 80.00, 5 runs" in text
    assert "1 of 15 trainings failed" in text


def test_the_page_shows_the_recorded_verdict() -> None:
    record = recorded(made_up(0.5, BETTER, predicted={mu: np.zeros((5, 1, 4), np.int64) for mu in (0.0, 0.5)}))
    record["verdict"] |= {"kind": "harms"}
    assert "P-reg hurts on this graph" in read(run_page(record)).text
    for wrong in ({"kind": "wins"}, {"pair": 3}, {"pair": record["verdict"]["pair"] | {"mu": 0.7}}, {"sentence": None}):
        with pytest.raises(DataError, match="The record's verdict should"):
            read_run(record | {"verdict": record["verdict"] | wrong})
    pair = record["verdict"]["pair"]
    for wrong in ({"plain": None}, {"units": 0}, {"difference": pair["difference"] | {"p_value": "low"}}):
        with pytest.raises(DataError, match="The record's verdict should"):
            read_run(record | {"verdict": record["verdict"] | {"pair": pair | wrong}})


def test_one_pair_of_runs_has_no_interval() -> None:
    for mu in (0.0, 0.5):
        verdict = judge(made_up(mu, [[[0.1]], [[0.9]]]))
        assert "+80.00 points of test accuracy in one pair of runs, too few for an interval" in verdict.sentence
        assert "p = " not in verdict.sentence


def test_the_best_of_the_others_is_compared_where_plain_was_chosen() -> None:
    val = [runs(0.9, 0.9), runs(0.5, 0.5), runs(0.8, 0.8)]
    result = made_up(0.0, [runs(0.9, 0.9), runs(0.5, 0.6), runs(0.8, 0.7)], val, (0.0, 0.1, 0.9))
    verdict = judge(result)
    assert verdict.kind == "not chosen"
    assert "no strength did better than the plain model on validation" in verdict.sentence
    assert "The best strength above 0, mu = 0.9, gives −15.00 points" in verdict.sentence


def test_too_few_splits_cannot_tell_whatever_the_difference() -> None:
    result = made_up(0.5, [runs(0.1, 0.1, 0.1), runs(0.9, 0.9, 0.9)])
    verdict = judge(result)
    assert verdict.kind == "inconclusive"
    assert "p = 0.074" in verdict.sentence
    (why,) = reasons(FACTS, result, verdict)
    assert why == (
        "3 splits are few: a difference is significant from 4.3 standard errors on, with 5 of them from 2.8 on. "
        "Use more with --splits."
    )
    one = made_up(0.5, [[[0.1]], [[0.9]]])
    assert reasons(FACTS, one, judge(one)) == ["One training of each kind shows little. Use more with --seeds."]


def test_the_unit_is_the_seed_where_there_is_one_split() -> None:
    result = made_up(0.5, [[[0.1, 0.2, 0.1, 0.2, 0.1]], [[0.5, 0.5, 0.6, 0.5, 0.5]]])
    found = pair(result, 0.5)
    assert found is not None
    assert found.units == 5
    assert judge(result).kind == "helps"


def test_without_a_pair_of_runs_nothing_is_said() -> None:
    result = made_up(0.5, [runs(np.nan, 0.7), runs(0.7, np.nan)])
    verdict = judge(result)
    assert (verdict.kind, verdict.pair) == ("inconclusive", None)
    assert reasons(FACTS, result, verdict) == []
    alone = made_up(0.0, [runs(0.7, 0.8)], mus=(0.0,))
    assert judge(alone).pair is None


UNSURE = made_up(0.5, [runs(0.7, 0.7, 0.7, 0.7, 0.7), runs(0.8, 0.6, 0.8, 0.6, 0.7)])


@pytest.mark.parametrize(
    ("facts", "says"),
    [
        (
            {"homophily": 0.23, "by_chance": 0.19},
            "23 % of the edges link nodes of the same class (19 % would be chance)",
        ),
        ({"homophily": None}, "No edge links two nodes of known class"),
        ({"isolated": 40}, "40 of 100 nodes have no neighbor"),
        (
            {"validation": 14},
            "picked on 14 validation nodes per split, fewer than 100: one node more or less is 7.1 points",
        ),
    ],
)
def test_each_reason_gives_its_numbers(facts: dict[str, Any], says: str) -> None:
    assert judge(UNSURE).kind == "inconclusive"
    (why,) = reasons(replace(FACTS, **facts), UNSURE, judge(UNSURE))
    assert says in why


def test_a_graph_says_nothing_about_methods_that_do_not_look_at_it() -> None:
    other = replace(UNSURE, method="label_smoothing")
    assert reasons(replace(FACTS, homophily=0.1, isolated=90), other, judge(other)) == []


def test_near_the_ceiling_there_is_little_to_gain() -> None:
    result = made_up(0.5, [runs(0.98, 0.99, 0.98, 0.99, 0.98), runs(0.99, 0.98, 0.99, 0.98, 0.98)])
    (why,) = reasons(FACTS, result, judge(result))
    assert why == "The plain model is already right on 98.4 % of the test nodes: there is little to gain."


def trained(epochs: int, best: int, failed: bool = False) -> Result:
    val = np.full(epochs, 0.5)
    val[best - 1] = 0.9
    return Result(Replica(), 0.9, 0.9, best, epochs, failed_at=3 if failed else None, history={"val": val})


def test_caveats() -> None:
    calm = made_up(0.5, BETTER, mus=(0.0, 0.5))
    assert caveats(replace(calm, runs=(trained(50, 20), trained(100, 30))), 100, 2) == []
    (late,) = caveats(replace(calm, runs=(trained(100, 95), trained(100, 30))), 100, 2)
    assert late.startswith("1 of 2 trainings were still improving when they reached the limit of 100 epochs")
    (failed,) = caveats(replace(calm, runs=(trained(9, 2, failed=True), *[trained(50, 20)] * 3)), 100, 4)
    assert failed.startswith("In 1 of 4 trainings the loss became NaN or infinite")
    (stopped,) = caveats(replace(calm, runs=(trained(50, 20),), finished=False), 100, 10)
    assert stopped.startswith("The run was interrupted: 1 of 10 trainings are finished")
    edge = made_up(1.0, [*BETTER, BETTER[1]], mus=(0.0, 0.5, 1.0))
    (larger,) = caveats(edge, 100, 10)
    assert larger == "The largest strength tried, 1, was chosen: larger ones may do better (--mu 1,1.5,2,3)."
    smoothed = made_up(0.9, [*BETTER, BETTER[1]], mus=(0.0, 0.5, 0.9), method="label_smoothing")
    assert caveats(smoothed, 100, 10) == []


def test_the_facts_are_those_of_the_graph() -> None:
    graph = communities(same=0.9)
    split = Split(*(np.arange(120) % 4 == part for part in range(3)))
    facts = facts_of(graph, {"a": split})
    source, target = graph.edge_index
    assert facts.homophily == pytest.approx((graph.y[source] == graph.y[target]).mean())
    assert facts.by_chance == pytest.approx(1 / 3)
    assert (facts.nodes, facts.validation, facts.isolated) == (120, 30, 0)
    assert facts.edges == len({frozenset(edge) for edge in zip(source.tolist(), target.tolist(), strict=True)})


def test_loops_say_nothing_about_neighbors() -> None:
    """A node is of its own class: loops would make any graph look homophilous."""
    graph = communities(same=0.3)
    loops = np.tile(np.arange(120), (2, 1))
    looped = replace(graph, edge_index=np.concatenate([graph.edge_index, loops], axis=1))
    split = {"a": Split(*(np.arange(120) % 4 == part for part in range(3)))}
    assert facts_of(looped, split) == facts_of(graph, split)


def test_linked_pairs_count_a_pair_once_and_no_loops() -> None:
    edges = np.array([[0, 1, 0, 2, 0], [1, 0, 1, 2, 2]])
    assert linked_pairs(edges, 3) == 2


def test_points_have_a_sign() -> None:
    assert [points(value) for value in (0.05, -0.05, 0.0)] == ["+5.00", "−5.00", "+0.00"]
