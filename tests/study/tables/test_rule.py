"""Rows of a table by another selection rule than the one that the runs were trained under."""

import csv
import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from propreg.cli.app import app
from propreg.engine.models import MODELS
from propreg.engine.models.architecture import Recipe
from propreg.store.results import Results, load_results
from propreg.store.run import Run
from propreg.store.store import Store
from propreg.study.execute.runner import reproduce
from propreg.study.execute.trainer import Trainer
from propreg.study.spec.batches import cut
from propreg.study.spec.experiment import Experiment, load_experiment, read_experiment
from propreg.study.tables import own_rule
from propreg.study.tables.rows import table_rows

TEXT = """
[[parts]]
datasets = ["digits"]
models = ["mlp"]
methods = ["plain", "preg-paper"]
strengths = [0.1, 0.5]
splits = 1
seeds = 3
published = true
rule = "latest_best"
"""


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> tuple[Experiment, Results]:
    recipes = {"digits": Recipe({"hidden": 8}, {"rule": "lowest_val_loss", "max_epochs": 12, "lr": 0.5})}
    monkeypatch.setitem(MODELS, "mlp", replace(MODELS["mlp"], recipes=recipes))
    experiment = read_experiment("mine", TEXT)
    with Store(tmp_path / "store.sqlite") as store:
        reproduce(cut(experiment.lines), store, lambda: Trainer("cpu"))
    return experiment, load_results(tmp_path / "store.sqlite")


def test_each_model_s_own_rule(trained: tuple[Experiment, Results]) -> None:
    experiment, results = trained
    own, common = table_rows(experiment, results, rule="own"), table_rows(experiment, results)
    assert [(row.method, row.selection) for row in own] == [(row.method, row.selection) for row in common]
    expected = []
    for line in experiment.lines:
        assert line.own_rule == "lowest_val_loss"
        scores = [results.scores(cell, (0,), (0, 1, 2), rule="lowest_val_loss") for cell in line.cells]
        found = [each for each in scores if each is not None]
        assert len(found) == len(line.cells)
        best = int(np.argmax([each.val.mean() for each in found]))
        expected.append(100 * float(found[best].test.mean()))
    by_validation = [row for row in own if row.selection in ("none", "validation")]
    assert [row.mean for row in by_validation] == pytest.approx(expected)
    assert [row.mean for row in own] != [row.mean for row in common], "the rules report other epochs"
    named = table_rows(experiment, results, rule="lowest_val_loss")
    assert [row.mean for row in named] == [row.mean for row in own]


@pytest.mark.parametrize("rule", ["", "own", "lowest_val_loss"])
def test_a_row_is_the_mean_of_the_runs_listed_by_the_same_rule(
    trained: tuple[Experiment, Results], tmp_path: Path, rule: str
) -> None:
    """Each of them by its key in the store, at the epoch that the rule reports."""
    experiment, results = trained
    (tmp_path / "mine.toml").write_text(TEXT)
    named = ["table", str(tmp_path / "mine.toml"), "--rule", rule, "--results", str(tmp_path / "store.sqlite")]
    for line, method in zip(experiment.lines, ("plain", "preg"), strict=True):
        row = next(each for each in table_rows(experiment, results, (line,), rule))
        done = CliRunner().invoke(app, [*named, "--runs", f"digits/mlp/{method}", "--picked"])
        listed = list(csv.DictReader(io.StringIO(done.stdout)))
        assert {float(each["strength"]) for each in listed} == {row.strength}
        assert sum(float(each["test"]) for each in listed) / 3 == pytest.approx(row.mean, abs=0.005)
        (cell,) = (cell for cell in line.cells if cell.strength == row.strength)
        assert [each["key"] for each in listed] == [Run(cell, 0, seed).key for seed in range(3)]
        for seed, each in enumerate(listed):
            outcome = results.outcome(cell, 0, seed)
            assert outcome is not None
            reports = {report.rule: report for report in outcome.all_reports("latest_best")}
            assert int(each["epoch"]) == reports["lowest_val_loss" if rule else "latest_best"].epoch
    picked = CliRunner().invoke(app, [*named, "--picked"]).stdout
    assert picked.startswith(f'"digits/mlp" = {row.strength:g}')


def test_both_rules_are_in_the_table(trained: tuple[Experiment, Results], tmp_path: Path) -> None:
    experiment, results = trained
    (listing,) = own_rule.listings(experiment, experiment.lines, results)
    own = [row for row in table_rows(experiment, results, rule="own") if row.selection != "test"]
    expected = tuple(f"{row.mean:.1f} ± {row.std:.1f}" for row in own)
    assert listing.head == ("", "digits")
    assert tuple(cell for _, cell in listing.rows) == expected
    assert [name for name, _ in listing.rows] == ["MLP", "MLP + P-reg (paper form)"]
    assert own_rule.listings(load_experiment("table1"), load_experiment("table1").lines, results) == []
    (tmp_path / "mine.toml").write_text(TEXT)
    table = ["table", str(tmp_path / "mine.toml"), "--results", str(tmp_path / "store.sqlite")]
    both = CliRunner().invoke(app, table).stdout
    common = [row for row in table_rows(experiment, results) if row.selection != "test"]
    assert all(f"{row.mean:.1f} ± {row.std:.1f}" in both for row in (*own, *common))
    assert "By each model's own rule" in both
    assert "By each model's own rule" not in CliRunner().invoke(app, [*table, "--rule", "own"]).stdout


@pytest.mark.usefixtures("trained")
def test_runs_of_a_rule_that_was_not_recorded_have_no_numbers(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(TEXT)
    named = ["table", str(tmp_path / "mine.toml"), "--rule", "val_loss", "--results", str(tmp_path / "store.sqlite")]
    done = CliRunner().invoke(app, [*named, "--runs", "digits/mlp/plain"])
    assert [each["test"] for each in csv.DictReader(io.StringIO(done.stdout))] == ["", "", ""]


def test_a_rule_that_was_not_recorded(trained: tuple[Experiment, Results]) -> None:
    experiment, results = trained
    rows = table_rows(experiment, results, rule="val_loss")
    assert [(row.mean, row.verdict) for row in rows] == [(None, "incomplete: recorded without val_loss")] * 2
