"""The ablation's effects from made-up runs, whose answers are known, and the sentences about them."""

from typing import Any, cast

import pytest

from propreg.statistics import Difference
from propreg.study.fork_effects import BASES, Effect, changes, setting
from propreg.study.forks import CHANGES, SETTINGS, fork_findings, what_matters
from study.figures.made_up import Case, recorded

NOISE = (0.3, -0.2, 0.1, 0.0, -0.2)  # of a seed; no split has any


def _test(case: Case) -> float:
    """80 for the plain model, two points for the preset at its best; what a change and a setting do comes on top."""
    line, run = case.line, case.run
    value = 80.0 + NOISE[run.seed] + run.split
    if line.variant == "raw features" or line.model == "mlp-16":
        value -= 3.0
    if line.method.name == "plain":
        return value
    value += 2.0 - 2.0 * abs(run.cell.strength - (0.3 if line.method.name == "preg-annealed" else 0.4))
    if line.method.name == "preg-detach_self":
        value -= 1.5
    if line.method.name == "preg-loops":
        value += 0.5 if run.split else -0.5  # the splits do not agree
    if line.variant == "raw features":
        value -= 0.75
    return value


def _gcn(case: Case) -> bool:
    return case.line.model == "gcn" and case.line.dataset in ("cora", "cs", "photo")


def test_a_change_is_held_against_the_preset_on_the_same_runs() -> None:
    results = recorded("ablation", _test, only=_gcn)
    (cora, *_) = found = changes(results, "preg-detach_self")
    assert [each.dataset for each in found] == ["cora", "cs", "photo"]
    assert cora.told == "worse"
    assert [cora.apart.mean, cora.apart.low, cora.apart.high] == pytest.approx([-1.5] * 3)
    assert cora.on_test == pytest.approx(-1.5)
    loops = changes(results, "preg-loops")
    assert {each.told for each in loops} == {"cannot be told"}
    assert loops[0].apart.mean == pytest.approx(0.3)


def test_the_preset_picks_from_no_more_strengths_than_the_change() -> None:
    """At 0.3, which only the preset has, it would be ten points better."""
    results = recorded("ablation", lambda case: _test(case) + 10 * (case.run.cell.strength == 0.3), only=_gcn)
    assert changes(results, "preg-sym")[0].apart.mean == pytest.approx(0.0)
    both = changes(results, "preg-annealed")[0]  # has 0.3 itself, and strengths that the preset has not
    assert both.apart.mean == pytest.approx(0.2)


def test_a_change_with_a_run_missing_is_left_out() -> None:
    def only(case: Case) -> bool:
        lost = (case.line.dataset, case.line.method.name, case.run.split, case.run.seed)
        return _gcn(case) and lost != ("cs", "preg-sym", 4, 4)

    results = recorded("ablation", _test, only=only)
    assert [each.dataset for each in changes(results, "preg-sym")] == ["cora", "photo"]
    assert [each.dataset for each in changes(results, "preg-loops")] == ["cora", "cs", "photo"]


def test_a_setting_changes_the_plain_model_and_what_is_gained() -> None:
    results = recorded("ablation", _test)
    raw = setting(results, "gcn", "raw features")
    assert len(raw) == 7
    assert {(each.plain.told, each.change.told) for each in raw} == {("worse", "worse")}
    assert [raw[0].plain.apart.mean, raw[0].change.apart.mean] == pytest.approx([-3.0, -0.75])
    assert [raw[0].gain, raw[0].of] == pytest.approx([1.25, 2.0])
    small = setting(results, "mlp-16", "")
    assert {(each.plain.told, each.change.told) for each in small} == {("worse", "cannot be told")}


def test_findings_say_so() -> None:
    said = fork_findings(recorded("ablation", _test))
    assert said[1] == "Worse than P-reg (paper) on most datasets: no gradient through the node's own side."
    assert "Different on some datasets" not in " ".join(said)
    assert (
        "GCN, no gradient through the node's own side: -1.5 points against P-reg (paper) on average over 7 datasets, "
        "better on none, worse on Cora, CiteSeer, PubMed, CS, Physics, Computers and Photo (best on test: -1.5)."
    ) in said
    assert len(said) == 2 + len(CHANGES) + len(SETTINGS)
    assert set(SETTINGS) == set(BASES)


def test_nothing_recorded_is_nothing_said() -> None:
    assert fork_findings(recorded("ablation", _test, only=lambda _: False)) == []
    assert what_matters({}) == []


def _effects(*signs: str) -> list[Effect]:
    datasets = ("cora", "citeseer", "pubmed", "cs", "physics", "computers", "photo")
    apart = Difference(1.0, 0.5, 1.5, 2 / 32, 0.9)
    return [Effect(name, apart, cast(Any, sign), 0.0) for name, sign in zip(datasets, signs, strict=False)]


def test_most_datasets_may_be_better_too_and_one_alone_says_nothing() -> None:
    untold = "cannot be told"
    assert what_matters({"preg-sym": _effects(*["better"] * 5, untold, untold)}) == [
        "Better than P-reg (paper) on most datasets: symmetric averaging."
    ]
    assert what_matters({"preg-sym": _effects("better", "worse", *[untold] * 5)}) == [
        "Different on some datasets: symmetric averaging."
    ]
    assert what_matters({"preg-sym": _effects("worse")}) == []
    assert what_matters({"preg-sym": _effects("worse", "worse", untold), "preg-loops": _effects("worse")}) == [
        "Worse than P-reg (paper) on most datasets: symmetric averaging.",
        "Not all is recorded: of some changes 3 of 7 datasets are.",
    ]
