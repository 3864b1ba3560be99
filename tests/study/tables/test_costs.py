"""What a training costs: counted in the registry, measured by a benchmark, times the epochs of recorded runs."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from propreg.cli.app import app
from propreg.store.errors import StudyError
from propreg.store.results import Results, load_results
from propreg.store.run import Run
from propreg.study.spec.experiment import load_experiment, select_lines
from propreg.study.tables.costs import (
    EPOCH,
    EPOCH_IN_BATCH,
    FILE,
    PEAK,
    PEAK_IN_BATCH,
    Costs,
    compared,
    find_costs,
    listings,
    settings_to_tune,
)
from study.sweeping import fill

TABLE2 = load_experiment("table2")
LINES = select_lines(TABLE2, ["model=grand,dataset=cora"])
VALUES = {EPOCH: 2.0, EPOCH_IN_BATCH: 0.05, PEAK: 300.0, PEAK_IN_BATCH: 12.34}


def costs(case: str = "grand preg cora") -> Costs:
    return Costs("a GPU", {(case, metric): value for metric, value in VALUES.items()})


def runs(count: int) -> list[Run]:
    return list(LINES[1].runs())[:count]


def test_settings_are_those_beyond_a_plain_gcn_s() -> None:
    known = {"gcn": 0, "gat": 3, "appnp": 2, "gcnii": 3, "tuned-gcn": 2, "grand": 6}
    assert {model: settings_to_tune(model) for model in known} == known
    assert settings_to_tune("grand", "preg") == 7


def test_a_training_takes_the_measured_epoch_times_the_recorded_epochs(tmp_path: Path) -> None:
    results = load_results(fill(tmp_path / "s.sqlite", runs(3)))  # made-up runs have 60 epochs
    (found,) = listings(TABLE2, LINES, results, costs())
    rows = {row[0]: row[1:] for row in found.rows}
    assert found.head == ("", "to tune", "Cora, s", "Cora, MB")
    assert rows["GRAND + P-reg"] == ("7", "0.12 (0.003)", "300 (12)")  # 60 · 2 ms, 60 · 0.05 ms
    assert rows["GRAND"] == ("6", "–", "–")  # not measured here
    assert list(rows) == ["GCN", "GCN + P-reg", "GAT", "GAT + P-reg", "GRAND", "GRAND + P-reg"]
    assert "a GPU" in found.title


def test_what_is_not_recorded_or_not_measured_is_a_dash_or_left_out() -> None:
    (measured,) = listings(TABLE2, LINES, Results(), costs())
    assert measured.head == ("", "to tune", "Cora, MB")  # a column of dashes is none
    assert measured.rows[-2:] == (("GRAND", "6", "–"), ("GRAND + P-reg", "7", "300 (12)"))
    (unmeasured,) = listings(TABLE2, LINES, Results(), None)
    assert unmeasured.rows == (("GCN", "0"), ("GAT", "3"), ("GRAND", "6"))
    assert (
        "P-reg adds one to each. Time and memory are not measured yet: python benchmarks/costs.py" in unmeasured.title
    )
    for only in ("method=plain", "method=preg"):
        lines = select_lines(TABLE2, ["model=grand,dataset=cora", only])
        assert listings(TABLE2, lines, Results(), None) == [unmeasured]
    assert all(settings_to_tune(x.model, "preg") == settings_to_tune(x.model) + 1 for x in TABLE2.lines)
    assert listings(load_experiment("table1"), (), Results(), costs()) == []


def test_every_line_of_table_2_that_is_shown_is_measured() -> None:
    cases = {(line.model, line.method.method) for line in compared()}
    assert {(line.model, line.method.method) for line in TABLE2.lines} < cases


def test_the_command_shows_the_costs_beside_the_record(tmp_path: Path) -> None:
    fill(tmp_path / "s.sqlite", runs(2))
    only = ["table", "table2", "--only", "model=grand,dataset=cora", "--results", str(tmp_path / "s.sqlite")]
    before = CliRunner().invoke(app, only)
    assert before.exit_code == 0, before.output
    assert "not measured yet" in before.output
    (tmp_path / FILE).parent.mkdir()
    records = [{"case": "grand preg cora", "metric": name, "value": value} for name, value in VALUES.items()]
    (tmp_path / FILE).write_text(json.dumps({"machine": "a GPU", "records": records}))
    for more in ([], ["--long"], ["--format", "markdown"], ["--format", "html"], ["--format", "latex"]):
        after = CliRunner().invoke(app, [*only, *more])
        assert after.exit_code == 0, after.output
        assert "0.12 (0.003)" in after.output
    (tmp_path / FILE).write_text("[]")
    with pytest.raises(StudyError, match="cannot be read as the record of a benchmark"):
        find_costs([tmp_path])
