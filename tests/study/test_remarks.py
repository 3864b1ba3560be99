"""What is said below one table: how much rows had to pick from, and what forks do."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from propreg.cli.app import app
from propreg.study.experiment import load_experiment
from propreg.study.remarks import FORKS, remarks
from propreg.study.results import Results, load_results

ROOT = Path(__file__).parents[2]
ABLATION = load_experiment("ablation")


def test_rows_that_pick_from_fewer_strengths() -> None:
    said = remarks(ABLATION, ABLATION.lines, Results())
    assert len(said) == 1
    assert said[0].startswith("Rows pick from 6 to 20 strengths: ")
    same = [line for line in ABLATION.lines if line.method.name in ("plain", "preg-paper") and line.model == "gcn"]
    assert remarks(ABLATION, [line for line in same if not line.variant], Results()) == []


def test_forks_are_said_of_the_whole_ablation_only() -> None:
    results = load_results(ROOT / "results")
    whole = remarks(ABLATION, ABLATION.lines, results)
    assert whole[1] == FORKS
    assert any(sentence.startswith("GCN, a threshold of 0.1: ") for sentence in whole)
    assert FORKS not in remarks(ABLATION, ABLATION.lines[:9], results)
    assert FORKS not in remarks(load_experiment("table1"), load_experiment("table1").lines, results)


@pytest.mark.parametrize("how", ["text", "markdown", "latex", "html"])
def test_in_every_format_for_people(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    printed = CliRunner().invoke(app, ["table", "ablation", "--format", how]).stdout
    assert "Rows pick from 6 to 20 strengths: " in printed
    assert "GCN, a threshold of 0.1: " in printed
