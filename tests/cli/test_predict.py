"""``propreg run`` writes predictions, and ``propreg predict`` makes them for another graph."""

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from communities import communities
from propreg.cli.app import app
from propreg.data.own.npz import write_graph
from propreg.fitting.checkpoint import load_trained

GRAPH = replace(communities(nodes=200), class_names=("ant", "bee", "cat"))
QUICK = ["--mu", "0.3", "--splits", "1", "--seeds", "1", "--max-epochs", "8", "--train-per-class", "5"]


def call(*arguments: str) -> Any:
    return CliRunner().invoke(app, arguments)


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A run on a graph in which a third of the nodes has no label."""
    monkeypatch.chdir(tmp_path)
    write_graph("mine.npz", replace(GRAPH, y=np.where(np.arange(200) % 3, GRAPH.y, -1)))
    done = call("run", "--graph", "mine.npz", *QUICK)
    assert done.exit_code == 0, done.output
    return done


def rows(path: str) -> list[dict[str, str]]:
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_a_run_predicts_the_nodes_without_a_label(ran: Any) -> None:
    assert "67 nodes without a label were predicted, with all others." in " ".join(ran.stdout.split())
    found = rows("propreg-run/predictions.csv")
    assert len(found) == 200
    assert sum(row["label"] == "" for row in found) == 67
    assert {row["predicted"] for row in found} <= {"ant", "bee", "cat"}
    assert not any(row["split"] for row in found if not row["label"])


def test_a_saved_model_predicts_another_graph(ran: Any) -> None:
    new = communities(nodes=90, seed=3)
    np.savez("new.npz", x=np.asarray(new.x), edge_index=new.edge_index)
    for model in ("propreg-run", "propreg-run/model.safetensors"):
        done = call("predict", model, "--graph", "new.npz", "-o", "out.csv")
        assert (done.exit_code, done.stdout) == (0, "Wrote out.csv: 90 nodes, 90 of them without a label.\n")
        trained = load_trained("propreg-run/model.safetensors")
        best = trained.probabilities(new).argmax(axis=1)
        assert [row["predicted"] for row in rows("out.csv")] == [GRAPH.class_names[c] for c in best]
        assert {row["label"] for row in rows("out.csv")} == {""}
    assert ran.exit_code == 0


def test_the_graph_of_the_run_gets_the_predictions_of_the_run(ran: Any) -> None:
    assert call("predict", "propreg-run", "--graph", "mine.npz").exit_code == 0
    mine, theirs = rows("predictions.csv"), rows("propreg-run/predictions.csv")
    for row, other in zip(mine, theirs, strict=True):
        assert float(row.pop("probability")) == pytest.approx(float(other.pop("probability")), abs=2e-4)
        assert row == {**other, "split": ""}
    assert ran.exit_code == 0


def test_columns_of_other_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine").mkdir()
    x, named = np.asarray(GRAPH.x), [GRAPH.class_names[c] for c in GRAPH.y]
    head = ",".join(["name", "species", *(f"f{i}" for i in range(x.shape[1]))])
    lines = [
        ",".join([f"n{i}", name, *(f"{v:g}" for v in row)]) for i, (name, row) in enumerate(zip(named, x, strict=True))
    ]
    Path("mine/nodes.csv").write_text("\n".join([head, *lines]) + "\n")
    pairs = [f"n{a},n{b}" for a, b in GRAPH.edge_index.T if a < b]
    Path("mine/edges.csv").write_text("\n".join(["from,to", *pairs]) + "\n")
    renamed = ["--graph", "mine", "--columns", "id=name,label=species,source=from,target=to"]
    done = call("run", *renamed, *QUICK)
    assert done.exit_code == 0, done.output
    assert json.loads(Path("propreg-run/run.json").read_text())["settings"]["columns"] == renamed[3]
    done = call("predict", "propreg-run", *renamed, "-o", "again.csv")
    assert done.exit_code == 0, done.output
    for file in ("propreg-run/predictions.csv", "again.csv"):
        assert [(row["id"], row["label"]) for row in rows(file)] == [(f"n{i}", name) for i, name in enumerate(named)]
    assert call("run", "--graph", "mine", *QUICK).exit_code == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nothing", "--graph", "mine.npz"], "there is no such file"),
        (["propreg-run", "--graph", "nothing.npz"], "there is no such file"),
        (["propreg-run", "--graph", "narrow.npz"], "has 3 features, but the model was trained with 8"),
        (["propreg-run", "--graph", "mine.npz", "-o", "no/folder/out.csv"], "cannot be written"),
    ],
)
def test_errors_are_one_sentence(ran: Any, arguments: list[str], says: str) -> None:
    np.savez("narrow.npz", x=np.ones((4, 3)), edge_index=np.array([[0, 1], [1, 0]]))
    done = call("predict", *arguments)
    assert done.exit_code == 1
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
    assert ran.exit_code == 0
