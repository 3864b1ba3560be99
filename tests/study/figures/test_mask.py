"""Figure 2b from runs whose numbers are known."""

import pytest

from propreg.study.figures.build import figure_data
from propreg.study.spec.experiment import load_experiment
from study.figures.made_up import Case, listed_rows, recorded

NAME = "fig-mask"
DATASETS = ["Cora", "CiteSeer", "PubMed", "CS", "Physics", "Computers", "Photo"]


def _accuracy(case: Case) -> float:
    """4 points at α = 0.3 and beyond, nothing without; on PubMed P-reg harms."""
    share = min(case.cell.unmask, 0.3) / 0.3 if case.mu else 0.0
    return 80 + case.run.split - share * (3 if case.line.dataset == "pubmed" else -4)


def test_curves_run_from_the_plain_model_to_all_nodes() -> None:
    figure = figure_data(NAME, recorded(NAME, _accuracy))
    assert [panel.title for panel in figure.panels] == DATASETS
    cora = figure.panels[0].series[0]
    assert cora.x == (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
    assert cora.y[0] == pytest.approx(82.0)
    assert cora.y[1] == pytest.approx(82.0 + 4 / 3, abs=0.01)
    assert cora.y[3] == cora.y[10] == pytest.approx(86.0)
    lines = [line for line in load_experiment(NAME).lines if line.dataset == "cora" and line.method.method == "preg"]
    gcn, gat = ({line.cells[0].strength for line in lines if line.model == model} for model in ("gcn", "gat"))
    assert figure.panels[0].notes == (f"μ {gcn.pop():g} / {gat.pop():g}",)


def test_the_numbers_behind_it() -> None:
    rows = listed_rows(figure_data(NAME, recorded(NAME, _accuracy)))
    assert len(rows) == 14
    assert rows["GCN, Cora"] == ("+4.0 (+1.7 to +6.3)", "better", "33 %")
    assert rows["GCN, PubMed"] == ("−3.0 (−4.7 to −1.3)", "worse", "")
    verdicts = [values[1] for name, values in rows.items() if name.startswith("GCN")]
    assert verdicts.count("better") == 6


def test_what_is_missing_is_said_where_something_is() -> None:
    some = recorded(NAME, _accuracy, only=lambda case: case.line.dataset != "cs" or case.cell.unmask in (0.5, 1.0))
    rows = listed_rows(figure_data(NAME, some))
    assert rows["GCN, CS"][1:] == ("better", ""), "not every α is recorded"
    assert [values[2] for name, values in rows.items() if name.startswith("GCN")].count("33 %") == 5


def test_the_papers_table_stands_at_both_ends() -> None:
    series = {each.key: each for each in figure_data(NAME, recorded(NAME, _accuracy)).panels[0].series}
    assert (series["paper:gcn"].x, series["paper:gcn"].y) == ((0.0, 1.0), (79.47, 82.83))


def test_gaps_break_the_line_and_are_said() -> None:
    ends = recorded(NAME, _accuracy, only=lambda case: case.line.model == "gcn" and case.cell.unmask == 1.0)
    figure = figure_data(NAME, ends)
    cora, gat = figure.panels[0].series[:2]
    assert cora.y == (pytest.approx(82.0), *[None] * 9, pytest.approx(86.0))
    assert cora.runs == (25, *[0] * 9, 25)
    assert gat.empty
    assert figure.missing[0].startswith("GCN: Cora 50 of 275, CiteSeer 50 of 275, ")
    assert figure.missing[1] == "GAT: 0 of 1,925 runs recorded"
    rows = listed_rows(figure)
    assert {name.partition(",")[0] for name in rows} == {"GCN"}
    assert {values[2] for values in rows.values()} == {""}, "how soon the gain is there cannot be known"
