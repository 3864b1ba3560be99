"""Table 3: scores with a direction, against numbers computed from the exported lines by hand."""

import gzip
import json
from functools import cache
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

import pytest
from typer.testing import CliRunner

from propreg.cli.app import app
from propreg.store.results import Results, load_results
from propreg.study.spec.experiment import load_experiment, select_lines
from propreg.study.tables.pivot import to_latex, to_markdown
from propreg.study.tables.rows import Row, table_rows
from propreg.study.tables.text import to_text

RECORD = Path(__file__).parents[3] / "results"
EXPERIMENT = load_experiment("table3")
LINES = select_lines(EXPERIMENT, ["dataset=ogbg-molesol,dataset=ogbg-molfreesolv"])


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return table_rows(EXPERIMENT, load_results(RECORD), LINES)


@cache
def molecule_lines() -> list[dict[str, Any]]:
    with gzip.open(RECORD / "runs.jsonl.gz", "rt", encoding="utf-8") as file:
        return [json.loads(text) for text in file if '"ogbg-mol' in text]


def by_hand(
    dataset: str, model: str, virtual: bool, second_pass: bool, strength: float
) -> tuple[list[float], list[float]]:
    """Validation and test scores of ten seeds, by plain reading of the export."""
    for line in molecule_lines():
        cell = line["cell"]
        if cell["dataset"] != dataset or cell["model"]["name"] != model:
            continue
        method = cell["method"]
        if cell["model"].get("virtual_node", False) == virtual and cell.get("strength", 0.0) == strength:
            if strength and method.get("second_pass", False) != second_pass:
                continue
            return [run[2] for run in line["runs"]], [run[4] for run in line["runs"]]
    raise AssertionError("the export has no such cell")


def test_rows_are_those_computed_by_hand(rows: list[Row]) -> None:
    assert len(rows) == 8 * 4
    for row in rows:
        model, virtual = row.model.removesuffix("-virtual"), row.model.endswith("-virtual")
        _, test = by_hand(row.dataset, model, virtual, row.preset == "reference", row.strength or 0.0)
        assert row.mean == pytest.approx(fmean(test))
        assert row.std == pytest.approx(pstdev(test))
        if row.difference is not None:
            _, plain = by_hand(row.dataset, model, virtual, False, 0.0)
            assert row.difference == pytest.approx(fmean(test) - fmean(plain))
            assert row.won == pytest.approx(fmean(a < b for a, b in zip(test, plain, strict=True)))


def test_the_lowest_error_is_picked(rows: list[Row]) -> None:
    strengths = [round(0.1 * i, 1) for i in range(1, 11)]
    for row in (row for row in rows if row.selection in ("validation", "test")):
        model, virtual = row.model.removesuffix("-virtual"), row.model.endswith("-virtual")
        part = 0 if row.selection == "validation" else 1
        means = {mu: fmean(by_hand(row.dataset, model, virtual, False, mu)[part]) for mu in strengths}
        assert row.strength == min(means, key=lambda mu: means[mu])


def test_plain_models_reach_the_papers_numbers(rows: list[Row]) -> None:
    for row in (row for row in rows if row.method == "plain"):
        assert row.mean is not None
        assert row.paper_mean is not None
        assert abs(row.mean - row.paper_mean) < (0.15 if row.dataset == "ogbg-molesol" else 0.35)


def test_scores_are_named_and_have_three_decimals(rows: list[Row]) -> None:
    text = to_text(EXPERIMENT, rows)
    assert "RMSE (lower is better)" in text
    assert "score" in text.splitlines()[3]
    assert "1.126 ± 0.039" in text
    assert "1.126 ± 0.039 =" in to_markdown(EXPERIMENT, rows)
    assert "$1.126\\pm0.039$" in to_latex(EXPERIMENT, rows)
    assert "accuracy in percent" not in text


def test_listed_runs_are_what_a_row_is_the_mean_of(rows: list[Row]) -> None:
    """An error is no share of the molecules."""
    row = next(row for row in rows if (row.model, row.dataset, row.method) == ("mol-gcn", "ogbg-molesol", "plain"))
    only = ["--runs", "ogbg-molesol/mol-gcn/plain", "--results", str(RECORD)]
    listed = CliRunner().invoke(app, ["table", "table3", *only]).stdout.splitlines()[1:]
    assert fmean(float(each.split(",")[6]) for each in listed) == pytest.approx(row.mean, abs=5e-4)


def test_what_is_not_recorded_is_incomplete() -> None:
    found = table_rows(EXPERIMENT, Results(), LINES[:1])
    assert found[0].verdict == "incomplete: 0 of 10 runs"
