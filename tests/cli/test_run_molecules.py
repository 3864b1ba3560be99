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
    lines = [f"{'C' * length}{ring},{length},{length % 2},text" for ring in RINGS for length in range(1, 7)]
    Path("data.csv").write_text("\n".join(["smiles,length,even,name", *lines, "CCO,,,unlabeled"]) + "\n")


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
    found = rows("propreg-run/predictions.csv")
    assert (len(found), found[-1]["split"], found[-1]["length"], found[-1]["line"]) == (61, "", "", "62")
    assert {row["split"] for row in found} == {"train", "valid", "test", ""}
    model = propreg.load_graph_model("propreg-run/model.safetensors")
    assert (model.kind, model.outputs) == ("regression", 2)


def predict(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["predict", *arguments])


def rows(path: str) -> list[dict[str, str]]:
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize(("target", "column"), [("length", "predicted length"), ("even", "probability even")])
def test_a_saved_model_predicts_other_molecules(target: str, column: str) -> None:
    assert run("--target", target, *QUICK).exit_code == 0
    known = rows("propreg-run/predictions.csv")
    Path("new.csv").write_text("name,SMILES\n" + "\n".join(f"m{i},{row['smiles']}" for i, row in enumerate(known)))
    for model in ("propreg-run", "propreg-run/model.safetensors"):
        done = predict(model, "--molecules", "new.csv", "--smiles-column", "SMILES", "-o", "out.csv")
        assert (done.exit_code, done.stdout) == (0, "Wrote out.csv: 61 molecules.\n"), done.output
        for row, expected in zip(rows("out.csv"), known, strict=True):
            assert list(row) == ["line", "smiles", column]
            assert (row["line"], row["smiles"]) == (expected["line"], expected["smiles"])
            assert float(row[column]) == pytest.approx(float(expected[column]), rel=1e-4)


def test_a_molecule_that_cannot_be_read_is_named_and_the_others_are_predicted() -> None:
    assert run("--target", "length", "--target", "even", *QUICK).exit_code == 0
    Path("new.csv").write_text("smiles\nCCO\nC1CC\nc1ccccc1\n")
    done = predict("propreg-run", "--molecules", "new.csv")
    assert done.exit_code == 0
    assert done.stdout == "Wrote predictions.csv: 3 molecules, 1 of them without predictions.\n"
    assert done.stderr == ("new.csv: RDKit cannot read the SMILES in line 3, 'C1CC': fix it or leave it out.\n")
    first, second, third = rows("predictions.csv")
    assert second == {"line": "3", "smiles": "C1CC", "predicted length": "", "predicted even": ""}
    Path("new.csv").write_text("smiles\nCCO\nc1ccccc1\n")
    assert predict("propreg-run", "--molecules", "new.csv", "-o", "two.csv").exit_code == 0
    alone = rows("two.csv")
    assert [row["predicted length"] for row in (first, third)] == [row["predicted length"] for row in alone]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["propreg-run"], "give either --graph or --molecules"),
        (["propreg-run", "--graph", "x", "--molecules", "new.csv"], "give either --graph or --molecules"),
        (["propreg-run", "--graph", "data.csv"], "is a model of whole graphs: read it with propreg.load_graph_model"),
        (["propreg-run", "--molecules", "new.csv"], "new.csv: RDKit cannot read the SMILES in line 2, 'C1CC'"),
        (["propreg-run", "--molecules", "none.csv"], "none.csv: there is no such file"),
        (["propreg-run", "--molecules", "data.csv", "--smiles-column", "x"], "data.csv: has no column 'x'"),
        (["data.csv", "--molecules", "data.csv"], "data.csv"),
    ],
)
def test_predictions_that_cannot_be_made_are_one_sentence(arguments: list[str], sentence: str) -> None:
    assert run("--target", "length", *QUICK).exit_code == 0
    Path("new.csv").write_text("smiles\nC1CC\n")
    done = predict(*arguments)
    assert done.exit_code in (1, 2)
    assert sentence in " ".join(re.sub(r"[│╭╮╰╯─]", " ", done.output).split())
    assert not Path("predictions.csv").exists()


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
    assert run("--target", "length", *QUICK).exit_code == 0
    monkeypatch.setattr("propreg.molecules.smiles.importlib.util.find_spec", lambda _: None)
    for done in (run("--target", "length", *QUICK), predict("propreg-run", "--molecules", "data.csv")):
        assert done.exit_code == 1
        assert "Reading SMILES needs RDKit: run pip install 'propreg[molecules]'." in done.output
    assert not Path("predictions.csv").exists()


@pytest.mark.parametrize("option", [["--target", "x"], ["--model", "gin"]])
def test_options_of_molecules_are_refused_elsewhere(option: list[str]) -> None:
    done = CliRunner().invoke(app, ["run", *option])
    assert done.exit_code == 2
    assert "is for --molecules" in done.output
