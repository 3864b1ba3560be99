"""``propreg methods``: every entry with its paper and its idea."""

import json
from pathlib import Path

from typer.testing import CliRunner

from propreg.cli.app import app
from propreg.engine.models import MODELS
from propreg.engine.regularizers import tunable

RUNNER = CliRunner()


def test_every_entry_is_listed_with_its_idea_and_paper() -> None:
    shown = " ".join(RUNNER.invoke(app, ["methods"]).output.split())
    for entry in MODELS.values():
        assert entry.source is not None, f"{entry.name} says nothing of itself"
        assert f"{entry.name} {entry.title}: {entry.source.idea}" in shown
        if entry.source.year:
            assert f"({entry.source.authors}, {entry.source.venue} {entry.source.year})" in shown
    for regularizer in tunable().values():
        assert f"{regularizer.name} {regularizer.title}" in shown


def test_lines_fit_a_terminal() -> None:
    assert max(map(len, RUNNER.invoke(app, ["methods"]).output.splitlines())) <= 80


def test_for_scripts() -> None:
    found = json.loads(RUNNER.invoke(app, ["methods", "--json"]).output)
    by_name = {each["name"]: each for each in found["models"]}
    assert list(by_name) == list(MODELS)
    assert by_name["grand"]["kind"] == "training method"
    assert by_name["gcnii"]["kind"] == "architecture"
    assert by_name["grand"]["paper"] == "Feng and others, NeurIPS 2020"
    assert by_name["grand"]["settings"] == dict.fromkeys(["cora", "citeseer", "pubmed"], "published")
    assert by_name["deep-appnp"]["settings"]["cora"] == "ours"
    assert by_name["mlp"]["paper"] is None
    assert [each["name"] for each in found["regularizers"]] == list(tunable())


def test_a_run_of_what_is_not_trained_compares_nothing() -> None:
    done = RUNNER.invoke(app, ["run", "--model", "label-propagation"])
    assert done.exit_code == 2
    assert "add a model, as in --model gcn,label-propagation" in " ".join(done.output.split())


def test_beside_others_it_has_a_row(tmp_path: Path) -> None:
    models = ["--model", "s2gc,label-propagation,grand", "--mu", "0.1", "--splits", "1", "--max-epochs", "2"]
    done = RUNNER.invoke(app, ["run", *models, "-o", str(tmp_path / "run"), "--no-progress"])
    assert done.exit_code == 0, done.output
    assert "label propagation, plain" in done.output
    assert "GRAND" in done.output
