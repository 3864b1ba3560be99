"""Tables: picks, differences, the paper's numbers, what is said of missing runs, and bytes that do not change."""

import csv
import io
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from propreg.store.errors import StudyError
from propreg.store.export import write_export
from propreg.store.results import Results, load_results
from propreg.store.store import Store
from propreg.study.execute.runner import reproduce
from propreg.study.spec.experiment import load_experiment, select_lines
from propreg.study.spec.paper import paper_number, verdict
from propreg.study.spec.part import Line
from propreg.study.tables import pivot, text
from propreg.study.tables.rows import COLUMNS, Row, line_rows, table_rows
from study.sweeping import MadeUp, batches, made_up

SMOKE_CSV = Path(__file__).with_name("digits-smoke.csv")
SMOKE = load_experiment("digits-smoke")


def _made_up(lines: tuple[Line, ...]) -> Results:
    results = Results()
    for line in lines:
        for run in line.runs():
            results.take(run.cell.text, [(run.split, run.seed, *vars(made_up(run)).values(), "b")])
    return results


def _line() -> Line:
    (line,) = select_lines(SMOKE, ["model=gcn,method=preg-paper"])
    return line


def _results(line: Line, val: dict[float, list[int]], test: dict[float, list[int]]) -> Results:
    """Counts of 1,000 per strength, one per split, the same for all seeds."""
    results = Results()
    for cell in [line.cells[0].plain, *line.cells]:
        for split in line.splits:
            for seed in line.seeds:
                counts = (val[cell.strength][split], 1000, test[cell.strength][split], 1000)
                results.take(cell.text, [(split, seed, *counts, 1, 2, None, None, "b")])
    return results


def test_strengths_are_picked_on_validation_and_the_smaller_of_equals() -> None:
    line = _line()
    val = {0.0: [500] * 5, 0.1: [600] * 5, 0.5: [600] * 5}
    test = {0.0: [700] * 5, 0.1: [710, 711, 712, 713, 714], 0.5: [720] * 5}
    first, second = line_rows(line, "", _results(line, val, test))
    assert (first.selection, first.strength, second.selection, second.strength) == ("validation", 0.1, "test", 0.5)
    assert first.mean == pytest.approx(71.2)
    assert first.std == pytest.approx(np.std([71.0, 71.1, 71.2, 71.3, 71.4]))
    assert first.difference == pytest.approx(1.2)
    assert first.p_value == pytest.approx(7.069350e-5), "t = 1.2 / (0.158 / √5), 4 degrees of freedom"
    assert (first.won, first.runs) == (1.0, 20)
    assert first.low is not None
    assert first.low < 71.2


def test_a_single_strength_is_fixed_and_has_one_row() -> None:
    line = replace(_line(), cells=_line().cells[1:])
    counts = {0.0: [700] * 5, 0.5: [710, 711, 712, 713, 714]}
    (row,) = line_rows(line, "", _results(line, counts, counts))
    assert (row.selection, row.strength, row.runs) == ("fixed", 0.5, 20)
    assert row.difference == pytest.approx(1.2)
    assert row.p_value == pytest.approx(7.069350e-5)
    assert row.won == 1.0
    method, picked_on, strength, accuracy, *_ = text.cells(row)
    assert (method, picked_on, strength, accuracy) == ("P-reg (paper form)", "fixed", "0.5", "71.20 ± 0.14")
    assert next(csv.DictReader(io.StringIO(text.to_csv([row]))))["selection"] == "fixed"
    place = f"71.20 ± 0.14<br>{row.low:.2f} … {row.high:.2f}, μ 0.5"
    assert f"| P-reg (paper form, μ fixed) | {place} |" in pivot.to_markdown(SMOKE, [row])
    assert "P-reg (paper form, μ fixed)" in pivot.to_html(SMOKE, [row])
    (some,) = line_rows(line, "", _made_up((replace(line, seeds=line.seeds[:1]),)))
    assert (some.selection, some.strength, some.verdict) == ("fixed", None, "incomplete: 5 of 20 runs")


@pytest.mark.parametrize("name", ["fig-mask", "fig-tsne"])
def test_the_experiments_with_one_strength_pick_nothing(name: str) -> None:
    experiment = load_experiment(name)
    rows = table_rows(experiment, _made_up(experiment.lines))
    assert len(rows) == len(experiment.lines)
    assert {(row.method == "plain", row.selection) for row in rows} == {(True, "none"), (False, "fixed")}
    assert all(row.difference is not None for row in rows if row.selection == "fixed")


def test_missing_runs_are_said_and_nothing_is_filled_in() -> None:
    line = _line()
    results = Results()
    for run in list(line.runs())[:-1]:
        results.take(run.cell.text, [(run.split, run.seed, *vars(made_up(run)).values(), "b")])
    (row,) = line_rows(line, "", results)
    assert row.verdict == "incomplete: 39 of 40 runs"
    assert (row.strength, row.mean, row.difference, row.runs) == (None, None, None, 39)
    assert "incomplete: 39 of 40 runs" in text.to_text(SMOKE, [row])
    assert "incomplete: 39 of 40 runs" in pivot.to_markdown(SMOKE, [row])
    assert "incomplete" in pivot.to_latex(SMOKE, [row])


def test_without_its_plain_runs_a_line_has_no_difference() -> None:
    line = _line()
    first = line_rows(line, "", _made_up((line,)))[0]
    assert first.mean is not None
    assert (first.difference, first.p_value) == (None, None)


def test_failed_runs_are_counted() -> None:
    line = _line()
    results = Results()
    for run in line.runs():
        out = replace(made_up(run), failed_at=3 if run.seed == 0 else None)
        results.take(run.cell.text, [(run.split, run.seed, *vars(out).values(), "b")])
    row = line_rows(line, "", results)[0]
    assert row.failed == 5
    assert "(5 runs ended in NaN)" in text.to_text(SMOKE, [row])


@pytest.mark.parametrize(
    ("spread", "ours", "expected"),
    [
        (0.1, 80.5, "reproduced"),
        (0.1, 81.5, "higher"),
        (0.1, 78.0, "lower"),
        (9.0, 80.5, "inconclusive"),
        (9.0, 82.0, "inconclusive"),
        (9.0, 95.0, "higher"),
    ],
)
def test_verdicts(spread: float, ours: float, expected: str) -> None:
    runs = ours + spread * np.array([[-1.0, 1.0, 0.0]] * 5)
    assert verdict(runs, 80.0) == expected


def test_a_gain_is_judged_by_the_papers_gain() -> None:
    """Far below the paper's 82.83, but 3 or 5 points above a plain model of 70, beside the paper's 82.83 − 79.47."""
    line = select_lines(load_experiment("table1"), ["dataset=cora,model=gcn,method=preg-reference"])[0]
    for gain, expected in ((30, "reproduced"), (50, "higher"), (0, "lower")):
        counts = {cell.strength: [700 + gain] * 5 for cell in line.cells} | {0.0: [700] * 5}
        row = line_rows(line, "table1", _results(line, counts, counts))[0]
        assert (row.verdict, row.gain_verdict) == ("lower", expected)


def test_one_seed_cannot_tell() -> None:
    assert verdict(np.full((5, 1), 80.0), 80.0) == "inconclusive"


def test_the_papers_numbers() -> None:
    assert paper_number("table1", "gcn", "preg-reference", "cora") == (82.83, 1.16)
    assert paper_number("table1", "gcn", "preg-paper", "cora") == (82.83, 1.16)
    assert paper_number("table-phi", "gat", "plain", "pubmed") == (76.64, 2.03)
    assert paper_number("table-phi", "gat", "preg-reverse_kl", "pubmed") is None
    assert paper_number("table-standard", "gcn", "preg-reference", "citeseer") == (74.83, 0.17)
    lines = load_experiment("table1").lines
    known = [paper_number("table1", x.model, x.method.name, x.dataset) for x in lines]
    assert None not in known


def test_csv_has_the_columns_scripts_rely_on() -> None:
    table = text.to_csv(table_rows(SMOKE, _made_up(SMOKE.lines)))
    rows = list(csv.DictReader(io.StringIO(table)))
    wanted = (
        "model dataset method preset selection strength runs mean std low high difference p_value "
        "paper_mean paper_std verdict gain_verdict"
    )
    assert tuple(wanted.split()) == COLUMNS
    assert [(row["model"], row["method"], row["selection"]) for row in rows[:3]] == [
        ("gcn", "plain", "none"),
        ("gcn", "preg", "validation"),
        ("gcn", "preg", "test"),
    ]


def test_bytes_do_not_change(tmp_path: Path) -> None:
    """The same runs, from a store or an export, give these very bytes on every machine."""
    store, file = tmp_path / "store.sqlite", tmp_path / "results" / "smoke.jsonl.gz"
    file.parent.mkdir()
    with Store(store) as opened:
        reproduce(random.Random(0).sample(batches(), 10), opened, MadeUp)
        write_export(file, opened.rows())
    texts = []
    for path in (store, file, file.parent):
        rows = table_rows(SMOKE, load_results(path))
        texts.append(_everything(rows))
    assert texts[0] == texts[1] == texts[2]
    assert text.to_csv(rows) == SMOKE_CSV.read_text(encoding="utf-8")


def _everything(rows: list[Row]) -> str:
    wide = [write(SMOKE, rows) for write in (pivot.to_markdown, pivot.to_html, pivot.to_latex)]
    return "".join([text.to_csv(rows), text.to_text(SMOKE, rows), *wide])


def test_nothing_to_read_is_said(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="There are no results at"):
        load_results(tmp_path / "none")
    with pytest.raises(StudyError, match="holds no exported runs"):
        load_results(tmp_path)


def test_a_strength_at_an_end_of_its_grid_is_known() -> None:
    line = select_lines(load_experiment("table1"), ["dataset=cora,model=gcn,method=preg-paper"])[0]
    for at, end in ((0.05, True), (0.5, False), (1.0, True)):
        counts = {cell.strength: [900 if cell.strength == at else 500] * 5 for cell in line.cells} | {0.0: [400] * 5}
        picked, best = line_rows(line, "", _results(line, counts, counts))
        assert (picked.strength, picked.at_end, best.at_end) == (at, end, end)
    assert "at_end" not in COLUMNS
