"""The pictures of Table 1: the same differences as the table's, with their intervals."""

import hashlib

import pytest

from propreg.names import DATASETS
from propreg.statistics import paired
from propreg.store.results import Results
from propreg.study.figures.build import figure_data
from propreg.study.spec.experiment import load_experiment
from propreg.study.tables.rows import table_rows
from study.figures.made_up import Case, listed_rows, recorded


def _noisy(case: Case) -> float:
    """Some accuracy that depends on all of the run."""
    return 60 + 5 * case.run.split + int.from_bytes(hashlib.sha256(case.run.key.encode()).digest()[:2], "big") / 10_000


def _validation(case: Case) -> float:
    return 60 + int.from_bytes(hashlib.sha256(case.run.text.encode()).digest()[5:7], "big") / 10_000


@pytest.fixture(scope="module")
def results() -> Results:
    return recorded("table1", _noisy, val=_validation)


def test_differences_are_the_tables(results: Results) -> None:
    rows = {
        (row.model, row.dataset, row.method, row.preset): row
        for row in table_rows(load_experiment("table1"), results)
        if row.selection == "validation"
    }
    names = {
        "preg-reference": ("preg", "reference"),
        "preg-paper": ("preg", "paper"),
        "label_smoothing": ("label_smoothing", ""),
        "confidence_penalty-paper": ("confidence_penalty", "paper"),
        "laplacian-mean": ("laplacian", "mean"),
    }
    figure = figure_data("table1", results)
    for model, panel in zip(("gcn", "gat", "mlp"), figure.panels, strict=True):
        assert panel.y_names == tuple(DATASETS.values())
        ours = [series for series in panel.series if not series.key.startswith("paper")]
        assert [series.key for series in ours] == list(names)
        for series in ours:
            for dataset, x, low, high in zip(DATASETS, series.x, series.x_low, series.x_high, strict=True):
                row = rows[model, dataset, *names[series.key]]
                assert x == pytest.approx(row.difference)
                assert None not in (x, low, high)
                assert sorted([x, low, high], key=float) == [low, x, high]  # type: ignore[arg-type]


def test_intervals_are_those_of_the_paired_difference(results: Results) -> None:
    lines = [x for x in load_experiment("table1").lines if (x.model, x.dataset) == ("gcn", "cora")]
    (line,) = [x for x in lines if x.method.name == "preg-reference"]
    series = figure_data("table1", results).panels[0].series[0]
    mean_val = {cell.strength: results.accuracies(cell, line.splits, line.seeds) for cell in line.cells}
    best = max(mean_val, key=lambda mu: float(mean_val[mu].val.mean()))  # type: ignore[union-attr]
    plain = results.accuracies(line.cells[0].plain, line.splits, line.seeds)
    expected = paired(mean_val[best].test, plain.test)  # type: ignore[union-attr]
    assert (series.x_low[0], series.x_high[0]) == pytest.approx((expected.low, expected.high))


def test_the_papers_differences_stand_beside(results: Results) -> None:
    papers = {series.key: series for series in figure_data("table1", results).panels[0].series}
    assert papers["paper:preg-reference"].x[0] == pytest.approx(82.83 - 79.47)
    assert papers["paper:confidence_penalty-paper"].x[1] == pytest.approx(69.69 - 69.45)
    assert "paper:preg-paper" not in papers


def test_who_is_ahead_is_counted() -> None:
    def test(case: Case) -> float:
        better = case.method == "preg-reference" and case.line.dataset != "cs"
        return 70 + case.run.split + (2 if better else 1 if case.mu else 0)

    rows = listed_rows(figure_data("table1", recorded("table1", test)))
    assert rows["GCN + P-reg (official-code form)"] == ("+1.0 to +2.0", "7", "0", "7")
    assert rows["GCN"] == ("6", "6", "7", "CS")
    assert rows["GAT"] == ("6", "6", "7", "PubMed, CS"), "its GAT on PubMed is behind the Laplacian"


def test_an_incomplete_grid_has_no_dot() -> None:
    lost = recorded("table1", _noisy, only=lambda case: (case.line.dataset, case.mu) != ("photo", 0.5))
    figure = figure_data("table1", lost)
    assert figure.panels[0].series[0].x[6] is None
    assert None not in figure.panels[0].series[0].x[:6]
    assert "P-reg (official-code form) 3,475 of 3,500" in figure.missing[0]


def test_overview_shows_the_gain_of_each_model(results: Results) -> None:
    figure = figure_data("overview", results)
    (panel,) = figure.panels
    assert [series.label for series in panel.series] == ["GCN", "GAT", "MLP"]
    rows = [row for row in table_rows(load_experiment("table1"), results) if row.selection == "validation"]
    for series in panel.series:
        chosen = [row for row in rows if (row.model, row.method, row.preset) == (series.key, "preg", "paper")]
        assert series.x == pytest.approx([row.difference for row in chosen])
        ends = [(row.against_plain.low, row.against_plain.high) for row in chosen if row.against_plain is not None]
        assert list(zip(series.x_low, series.x_high, strict=True)) == [pytest.approx(end) for end in ends]


def test_overview_says_what_is_missing() -> None:
    figure = figure_data("overview", recorded("table1", _noisy, only=lambda case: case.line.dataset != "cora"))
    assert figure.missing[:2] == ("GCN: Cora 0 of 25 runs recorded", "GCN + P-reg: Cora 0 of 500 runs recorded")
    assert figure.panels[0].series[0].x[0] is None
