"""``propreg run --molecules``: a table of SMILES, its folder and page."""

import csv
import itertools
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import propreg
from propreg.cli.app import app
from propreg.molecules.train import Training
from propreg.report import run_page

pytest.importorskip("rdkit")
WRITTEN = ["figures", "index.html", "model.safetensors", "predictions.csv", "run.json", "runs.csv"]
QUICK = ["--mu", "0.2,0.5", "--seeds", "2", "--max-epochs", "3", "--hidden", "8", "--layers", "2", "--device", "cpu"]
RINGS = [
    "c1ccccc1",
    "C1CC1",
    "C1CCC1",
    "C1CCCC1",
    "C1CCCCC1",
    "c1ccncc1",
    "c1ccoc1",
    "c1cc[nH]c1",
    "C1CCOC1",
    "C1CCNC1",
]


@pytest.fixture(autouse=True)
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chains on rings: the number of carbons, and whether it is even."""
    monkeypatch.chdir(tmp_path)
    rows = [f"{'C' * length}{ring},{length},{length % 2},text" for ring in RINGS for length in range(1, 7)]
    Path("data.csv").write_text("\n".join(["smiles,length,even,name", *rows, "CCO,,,unlabeled"]) + "\n")


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["run", "--molecules", "data.csv", *arguments])


@pytest.mark.parametrize(("target", "score", "unit"), [("length", "RMSE", ""), ("even", "ROC-AUC", " %")])
def test_it_writes_the_folder_of_a_run(target: str, score: str, unit: str) -> None:
    done = run("--target", target, *QUICK)
    assert done.exit_code == 0, done.output
    assert "data: 61 molecules" in done.stdout
    assert "Training GIN on" in done.stdout
    assert f"test {score}" in done.stdout
    folder = Path("propreg-run")
    assert sorted(path.name for path in folder.iterdir()) == WRITTEN
    record = json.loads((folder / "run.json").read_text())
    test = np.array(record["test"])
    assert test.shape == (3, 1, 2)
    assert record["splits"] == ["scaffold"]
    mean = 100 * test[0].mean() if unit else test[0].mean()
    plain = next(line for line in done.stdout.splitlines() if line.startswith("GIN, plain"))
    assert f"{mean:.{2 if unit else 4}f}{unit}" in plain
    page = (folder / "index.html").read_text()
    assert page == run_page(record)
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))
    assert f"{mean:.{2 if unit else 4}f}" in text
    assert "on these graphs" in text
    assert f"{score} against strength" in text
    assert f"--target {target}" in text
    assert "fit(" not in text


def test_its_predictions_are_those_of_the_saved_model() -> None:
    done = run("--target", "length", "--target", "even", *QUICK)
    assert done.exit_code == 0
    assert "Note: RMSE is the mean over 2 targets." in done.stdout
    assert "Note: 1 molecule without a label: predicted, but not trained on." in done.stdout
    with open("propreg-run/predictions.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert (len(rows), rows[-1]["split"], rows[-1]["length"], rows[-1]["line"]) == (61, "", "", "62")
    assert {row["split"] for row in rows} == {"train", "valid", "test", ""}
    model = propreg.load_graph_model("propreg-run/model.safetensors")
    assert (model.kind, model.outputs) == ("regression", 2)


def test_random_splits_keep_scaffolds_together() -> None:
    done = run("--target", "length", *QUICK, "--splits", "2", "--model", "gcn", "--preset", "reference")
    assert done.exit_code == 0, done.output
    assert "2 random splits by scaffold" in " ".join(done.stdout.split())
    record = json.loads(Path("propreg-run/run.json").read_text())
    assert (record["splits"], record["preset"], record["model"]) == (["random-0", "random-1"], "reference", "mol-gcn")


def test_an_interrupted_run_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = run("--target", "length", *QUICK, "--splits", "2", "-o", "whole")
    assert whole.exit_code == 0
    calls, epoch = itertools.count(1), Training.epoch

    def interrupted(self: Training, number: int) -> None:
        if next(calls) == 5:  # in the second split
            raise KeyboardInterrupt
        epoch(self, number)

    monkeypatch.setattr(Training, "epoch", interrupted)
    cut = run("--target", "length", *QUICK, "--splits", "2")
    assert cut.exit_code == 130, cut.output
    assert "Interrupted: " in cut.output or "so far" in cut.output
    monkeypatch.setattr(Training, "epoch", epoch)
    done = run("--target", "length", *QUICK, "--splits", "2", "--resume")
    assert done.exit_code == 0, done.output
    first, again = (json.loads(Path(name, "run.json").read_text()) for name in ("whole", "propreg-run"))
    assert first["test"] == again["test"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "no target is named: give --target once or several times"),
        (["--target", "name"], "line 2: target 'name' is 'text', not a number"),
        (["--target", "length", "--smiles-column", "name"], "RDKit cannot read the SMILES in line 2, 'text'"),
        (["--target", "length", "--graph", "x"], "--graph is not for molecules"),
        (["--target", "length", "--model", "gat"], "--model must be gin or gcn with --molecules, got 'gat'"),
    ],
)
def test_bad_input_is_one_sentence_and_nothing_is_written(arguments: list[str], sentence: str) -> None:
    done = run(*arguments, *QUICK)
    assert done.exit_code in (1, 2)
    assert sentence in " ".join(re.sub(r"[│╭╮╰╯─]", " ", done.output).split())
    assert not Path("propreg-run").exists()


def test_without_rdkit_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("propreg.molecules.smiles.importlib.util.find_spec", lambda _: None)
    done = run("--target", "length", *QUICK)
    assert done.exit_code == 1
    assert "Reading SMILES needs RDKit: run pip install 'propreg[molecules]'." in done.output


@pytest.mark.parametrize("option", [["--target", "x"], ["--model", "gin"]])
def test_options_of_molecules_are_refused_elsewhere(option: list[str]) -> None:
    done = CliRunner().invoke(app, ["run", *option])
    assert done.exit_code == 2
    assert "is for --molecules" in done.output
