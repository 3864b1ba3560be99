"""Rows of a table by another selection rule than the one that the runs were trained under."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from propreg.engine.models import MODELS
from propreg.engine.models.architecture import Recipe
from propreg.store.results import Results, load_results
from propreg.store.store import Store
from propreg.study.execute.runner import reproduce
from propreg.study.execute.trainer import Trainer
from propreg.study.spec.batches import cut
from propreg.study.spec.experiment import Experiment, read_experiment
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


def test_a_rule_that_was_not_recorded(trained: tuple[Experiment, Results]) -> None:
    experiment, results = trained
    assert all(row.mean is None for row in table_rows(experiment, results, rule="val_loss"))
