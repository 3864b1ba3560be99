"""What strengths are picked by in tables, from made-up runs with measures; and all ways beside each other."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from propreg.cli.app import app
from propreg.engine.spec import Measures, PartMeasures, Replica, Report, Result
from propreg.store.results import Results
from propreg.store.run import Outcome, Record, Run
from propreg.store.store import Store
from propreg.study.spec.experiment import load_experiment, select_lines
from propreg.study.spec.part import Line
from propreg.study.tables.picked import picked_text
from propreg.study.tables.rows import UNMEASURED, line_rows, picking_scores
from propreg.study.tables.selections import selections

LINES = select_lines(load_experiment("digits-smoke"), ["model=gcn,method=preg-paper", "model=gcn,method=plain"])
LINE = next(line for line in LINES if line.method.method != "plain")
# Of 20 validation nodes, ten of each class, how many are right, the loss, and of 100 test nodes, 90 of class 0, how
# many are right, by strength. The plain model is right on 8 and 8 and predicts 78 test nodes as class 0.
VAL = {0.0: ((8, 8), 9.0), 0.1: ((6, 10), 8.0), 0.5: ((9, 6), 10.0)}
TEST = {0.0: (72, 8), 0.1: (54, 10), 0.5: (81, 6)}


def part(count: tuple[int, int], right: tuple[int, int], nll: float, area: float) -> PartMeasures:
    wrong = count[0] - right[0], count[1] - right[1]
    predicted = right[0] + wrong[1], right[1] + wrong[0]
    bins = ((0, 0, 0.0),) * 14 + ((sum(count), sum(right), float(sum(count))),)
    return PartMeasures(count, right, predicted, nll, 1.0, bins, area)


def outcome(run: Run, measured: bool = True) -> Outcome:
    right, nll = VAL[run.cell.strength]
    area = 0.8 if run.cell.strength else 0.7
    val, test = part((10, 10), right, nll, area), part((90, 10), TEST[run.cell.strength], 1.0, area)
    scores = sum(right) / 20, sum(TEST[run.cell.strength]) / 100
    reports = (Report("official", 1, *scores, Measures(val, test) if measured else None),)
    return Outcome.of(Result(Replica(), *scores, 1, 2, reports=reports), 20, 100)


def made(lines: tuple[Line, ...], measured: bool = True) -> Results:
    results = Results()
    for line in lines:
        for run in line.runs():
            results.take(run.cell.text, [(run.split, run.seed, *vars(outcome(run, measured)).values(), "b")])
    return results


def test_scores_of_strengths_by_hand() -> None:
    results = made(LINES)
    assert [cell.strength for cell in LINE.cells] == [0.1, 0.5]
    found = {name: picking_scores(LINE, results, name) for name in ("balanced", "reweighted", "loss")}
    assert found["balanced"] == pytest.approx([0.8, 0.75])
    # The plain model predicts (74, 26) of the test nodes: (0.74 − 0.2) / 0.6 = 0.9 of them are of class 0.
    assert found["reweighted"] == pytest.approx([0.9 * 0.6 + 0.1 * 1.0, 0.9 * 0.9 + 0.1 * 0.6])
    assert found["loss"] == pytest.approx([-0.4, -0.5])


def test_rows_are_picked_by_the_selection_and_the_best_on_test_stays() -> None:
    results = made(LINES)
    picks = {name: line_rows(LINE, "", results, "", name) for name in ("accuracy", "balanced", "reweighted", "loss")}
    assert {name: rows[0].strength for name, rows in picks.items()} == {
        "accuracy": 0.1, "balanced": 0.1, "reweighted": 0.5, "loss": 0.1,
    }  # fmt: skip
    assert {rows[1].strength for rows in picks.values()} == {0.5}
    assert picks["reweighted"][0].difference == pytest.approx(7.0), "87 − 80 of 100"
    assert picks["accuracy"][0].difference == pytest.approx(-16.0), "64 − 80 of 100"
    assert picked_text(LINES, results, select="reweighted") != picked_text(LINES, results)


def test_all_ways_beside_each_other() -> None:
    listing = selections(LINES, made(LINES))
    assert listing.head == ("", "accuracy", "balanced", "reweighted", "loss", "best on test")
    place, mean, share = listing.rows
    assert place[1:] == ("−16.00 (0.1)", "−16.00 (0.1)", "+7.00 (0.5)", "−16.00 (0.1)", "+7.00 (0.5)")
    assert mean[1:] == ("−16.00", "−16.00", "+7.00", "−16.00", "+7.00")
    assert share[1:] == ("-229 %", "-229 %", "100 %", "-229 %", "100 %")


def test_runs_without_measures_are_picked_by_accuracy_alone() -> None:
    results = made(LINES, measured=False)
    (row,) = line_rows(LINE, "", results, "", "balanced")
    assert (row.verdict, row.strength) == (UNMEASURED, None)
    assert line_rows(LINE, "", results)[0].strength == 0.1
    assert selections(LINES, results).rows == ()


def test_the_command(tmp_path: Path) -> None:
    for measured in (True, False):
        with Store(tmp_path / f"{measured}.sqlite") as store:
            session = store.begin_session({})
            for line in LINES:
                for run in line.runs():
                    store.add(Record(run, outcome(run, measured), "b"), session)

    def said(*arguments: str, measured: bool = True) -> tuple[int, str]:
        record = tmp_path / f"{measured}.sqlite"
        done = CliRunner().invoke(app, ["table", "digits-smoke", "--results", str(record), *arguments])
        return done.exit_code, done.output

    code, text = said("--select", "all")
    assert (code, "+7.00 (0.5)" in text) == (0, True)
    code, text = said("--select", "all", measured=False)
    assert code == 1
    assert "propreg reproduce digits-smoke --measures records them." in text
    assert "picked by accuracy reweighted by estimated class frequencies" in said("--select", "reweighted")[1]
    assert said("--select", "reweighted", "--picked")[1] != said("--picked")[1]
    assert said("--select", "reweighted", "--picked", "--runs", "digits/gcn/preg-paper")[1].count(",0.5,") == 20
    for wrong in (["--select", "reweightd"], ["--select", "all", "--format", "csv"]):
        assert said(*wrong)[0] == 2
