"""The ablation's effects from made-up runs, whose answers are known, and the listings of them."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from propreg.cli.app import app
from propreg.store.results import Results
from propreg.study.spec.experiment import load_experiment
from propreg.study.tables.ablation import BASES, CHANGES, SETTINGS, changes, listings, notes, setting
from propreg.study.tables.text import listing_text
from study.figures.made_up import Case, recorded

ROOT = Path(__file__).parents[3]
ABLATION = load_experiment("ablation")

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
    assert cora.verdict == "worse"
    assert cora.apart.mean == (cora.apart.low + cora.apart.high) / 2 == pytest.approx(-1.5)  # five equal splits
    assert cora.on_test == pytest.approx(-1.5)
    loops = changes(results, "preg-loops")
    assert {each.verdict for each in loops} == {"inconclusive"}
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
    assert {(each.plain.verdict, each.change.verdict) for each in raw} == {("worse", "worse")}
    assert [raw[0].plain.apart.mean, raw[0].change.apart.mean] == pytest.approx([-3.0, -0.75])
    assert [raw[0].gain, raw[0].of] == pytest.approx([1.25, 2.0])
    small = setting(results, "mlp-16", "")
    assert {(each.plain.verdict, each.change.verdict) for each in small} == {("worse", "inconclusive")}


def test_each_choice_has_a_row() -> None:
    changed, set_up = listings(ABLATION, ABLATION.lines, recorded("ablation", _test))
    rows = {name: values for name, *values in changed.rows}
    assert rows["no gradient through Z"] == ["−1.5", "−1.5", "–", "all", "7"]
    assert rows["self-loops"] == ["+0.3", "+0.3", "–", "–", "7"]
    assert list(rows) == list(CHANGES.values())
    rows = {name: values for name, *values in set_up.rows}
    raw = rows["GCN, features not divided by their row's sum"]
    assert raw == ["−3.0", "–", "all", "+1.2", "+2.0", "–", "all", "7"]
    assert list(rows) == list(SETTINGS.values())
    assert set(SETTINGS) == set(BASES)


def test_some_datasets_are_named() -> None:
    results = recorded("ablation", _test, only=_gcn)
    changed, _ = listings(ABLATION, ABLATION.lines, results)
    rows = {name: values for name, *values in changed.rows}
    assert rows["no gradient through Z"] == ["−1.5", "−1.5", "–", "Cora, CS, Photo", "3"]


def test_nothing_recorded_is_no_listing() -> None:
    assert listings(ABLATION, ABLATION.lines, Results()) == []


def test_choices_are_listed_for_the_whole_ablation_only() -> None:
    results = recorded("ablation", _test, only=_gcn)
    assert listings(ABLATION, ABLATION.lines[:9], results) == []
    assert listings(load_experiment("table1"), load_experiment("table1").lines, results) == []


def test_rows_that_pick_from_fewer_strengths() -> None:
    (note,) = notes(ABLATION.lines)
    assert note.startswith("Grids have 6 to 20 strengths: ")
    same = [line for line in ABLATION.lines if line.method.name in ("plain", "preg-paper") and line.model == "gcn"]
    assert notes([line for line in same if not line.variant]) == []


@pytest.mark.parametrize("how", ["text", "markdown", "latex", "html"])
def test_in_every_format_for_people(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    printed = CliRunner().invoke(app, ["table", "ablation", "--format", how]).stdout
    assert "Grids have 6 to 20 strengths: " in printed
    assert "threshold 0.1" in printed


def test_a_listing_that_is_too_wide_for_a_terminal_becomes_paragraphs() -> None:
    (changed, *_) = listings(ABLATION, ABLATION.lines, recorded("ablation", _test, only=_gcn))
    for width in range(30, 120, 7):
        lines = listing_text(changed, width)
        assert max(map(len, lines)) <= width
        assert "symmetric averaging" in " ".join(lines)
