"""Experiments of your own: a TOML file with graphs and models of yours, from the training to the table."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from propreg.cli.app import app
from propreg.data.own.load import read_graph
from propreg.data.scaling import scaling_of
from propreg.data.splits import random_split
from propreg.engine.spec import Model
from propreg.store.errors import StudyError
from propreg.store.integrity import check_store
from propreg.store.run import Run
from propreg.store.store import Store
from propreg.study.execute.trainer import Trainer
from propreg.study.spec.batches import cut
from propreg.study.spec.experiment import load_experiment, read_experiment

TEXT = """
title = "Mine"

[graphs]
ring = "ring.npz"
fixed = { path = "fixed.npz" }

[models.wide]
name = "gcn"
hidden = 24
dropout = 0.25

[[parts]]
datasets = ["ring"]
models = ["wide", "mlp"]
methods = ["plain", "preg-paper"]
strengths = [0.5]
max_epochs = 3
splits = 2
seeds = 2
"""
FIXED = TEXT.replace('datasets = ["ring"]', 'datasets = ["fixed"]').replace("splits = 2", "splits = 1")


def write_graph(path: Path, *, seed: int = 0, split: bool = False, nodes: int = 120) -> Path:
    """Two classes on a ring."""
    draw, ring = np.random.default_rng(seed), np.arange(nodes)
    edges = np.stack([np.r_[ring, np.roll(ring, 1)], np.r_[np.roll(ring, 1), ring]])
    arrays: dict[str, Any] = {
        "edge_index": edges,
        "y": ring * 2 // nodes,
        "x": draw.normal(size=(nodes, 5)).astype(np.float32),
    }
    if split:
        arrays |= {f"{part}_mask": ring % 3 == number for number, part in enumerate(("train", "val", "test"))}
    np.savez(path, **arrays)
    return path


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "mine"
    folder.mkdir()
    write_graph(folder / "ring.npz")
    write_graph(folder / "fixed.npz", split=True)
    (folder / "my.toml").write_text(TEXT, encoding="utf-8")
    return folder / "my.toml"


def invoke(*arguments: str | Path, code: int = 0) -> str:
    done = CliRunner().invoke(app, list(map(str, arguments)))
    assert done.exit_code == code, done.output
    return done.output


def test_from_the_file_to_the_table(file: Path) -> None:
    assert "16 runs stored in" in invoke("reproduce", file, "--device", "cpu")
    assert check_store(Path("propreg-study.sqlite")) == (16, [])
    assert "16 of 16 runs done" in invoke("status", file)
    table = invoke("table", file, "--long")
    assert "wide on ring" in table
    assert "Mine" in table
    assert invoke("table", file, "--format", "csv").count("\nwide,ring,preg,paper,fixed,0.5,4,") == 1
    invoke("store", "export", "mine.jsonl.gz", "--experiment", file)
    assert "16 runs added" in invoke("store", "import", "mine.jsonl.gz", "--store", "again.sqlite")
    key = next(iter(load_experiment(str(file)).runs())).key
    assert "ring is a graph of an experiment of yours" in invoke("rerun", key[:16], "--device", "cpu", code=1)


def test_what_is_trained_is_the_file_s_graph_scaled_as_fit_does(file: Path) -> None:
    experiment = load_experiment(str(file))
    line = experiment.lines[0]
    assert line.cells[0].model == Model("gcn", hidden=24)
    assert (line.cells[0].dropout, line.cells[0].split_kind, line.splits) == (0.25, "random", (0, 1))
    (batch, *_) = cut(experiment.lines)
    problem = Trainer("cpu").problem(batch.runs, batch.graph)
    graph = read_graph(file.with_name("ring.npz"))
    np.testing.assert_array_equal(problem.graph.x, scaling_of(graph.x)(graph.x))
    split = random_split(graph.y, seed=1, small_classes="shrink")
    for part in ("train", "val", "test"):
        np.testing.assert_array_equal(getattr(problem.splits["random/1"], part), getattr(split, part))
    as_it_is = cut(read_experiment("mine", TEXT + "normalize = false", file.parent).lines)[0]
    np.testing.assert_array_equal(Trainer("cpu").problem(as_it_is.runs, as_it_is.graph).graph.x, graph.x)


def test_a_graph_with_a_split_of_its_own_is_trained_on_that(file: Path) -> None:
    line = read_experiment("mine", FIXED, file.parent).lines[0]
    assert (line.cells[0].split_kind, line.splits) == ("own", (0,))
    (batch, *_) = cut([line])
    records = list(Trainer("cpu").train(batch))
    assert {(record.outcome.val_of, record.outcome.test_of) for record in records} == {(40, 40)}
    # Its split is part of what a run is.
    before = [run.key for run in line.runs()]
    with np.load(file.with_name("fixed.npz")) as arrays:
        other = dict(arrays) | {"val_mask": arrays["test_mask"], "test_mask": arrays["val_mask"]}
    np.savez(file.with_name("fixed.npz"), **other)
    after = [run.key for run in read_experiment("mine", FIXED, file.parent).lines[0].runs()]
    assert not set(before) & set(after)


def test_costs_are_those_of_the_graph(file: Path) -> None:
    small = cut(load_experiment(str(file)).lines)[0].cost
    write_graph(file.with_name("ring.npz"), nodes=1200)
    assert cut(load_experiment(str(file)).lines)[0].cost == pytest.approx(10 * small, rel=0.2)


def test_a_graph_that_changed_is_one_sentence_and_nothing_is_lost(file: Path) -> None:
    invoke("reproduce", file, "--device", "cpu", "--only", "model=mlp")
    batches = cut(load_experiment(str(file)).lines)
    write_graph(file.with_name("ring.npz"), seed=1)
    with pytest.raises(StudyError, match=r"ring\.npz has changed: its content is [0-9a-f]{16}, and the runs are of"):
        list(Trainer("cpu").train(batches[0]))  # it changed after the sweep had begun
    said = invoke("reproduce", file, "--device", "cpu", code=1)
    assert "ring.npz has changed since runs on ring were recorded in propreg-study.sqlite, which are kept" in said
    assert check_store(Path("propreg-study.sqlite")) == (8, [])
    assert "16 runs stored" in invoke("reproduce", file, "--device", "cpu", "--store", "new.sqlite")


def test_a_name_of_the_store_is_no_benchmark_s(file: Path) -> None:
    """So a run of a graph of your own can never be taken for one of the study."""
    run = next(iter(load_experiment(str(file)).runs()))
    assert Run.from_text(run.text) == run
    with Store("a.sqlite") as store:
        assert store.keys() == set()


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("ring.npz", "rung.npz", r"rung\.npz: there is no such file or folder: check the path"),
        ('ring = "ring.npz"', 'cora = "ring.npz"', "graphs of experiment mine redefines 'cora' of propreg: choose"),
        ("models.wide", "models.gat", "models of experiment mine redefines 'gat' of propreg: choose another name"),
        ('name = "gcn"', 'name = "gnc"', "no architecture of model wide 'gnc'. Did you mean 'gcn'"),
        ("hidden = 24", "hiden = 24", "no setting of model wide 'hiden'. Did you mean 'hidden'"),
        ("dropout = 0.25", 'dropout = "some"', "dropout must be a number, got 'some'"),
        ('datasets = ["ring"]', 'datasets = ["rign"]', "no dataset 'rign'. Did you mean 'ring'"),
        ('models = ["wide"', 'models = ["wider"', "no model 'wider'. Did you mean 'wide'"),
        ("[[parts]]", "[[part]]", "no table of experiment mine 'part'. Did you mean 'parts'"),
        ("seeds = 2", 'seeds = 2\nsplit_kind = "own"', "ring has no split of its own: leave split_kind out"),
        ("seeds = 2", 'seeds = 2\nsplit_kind = "public"', "ring has no public split: .* your own an own split"),
        ('datasets = ["ring"]', 'datasets = ["fixed"]', "fixed has one split of its own: write splits = 1"),
        ('datasets = ["ring"]', 'datasets = ["cora"]\nsplit_kind = "own"', "cora has no own split"),
        ('{ path = "fixed.npz" }', "{ file = 3 }", "graph fixed must be a path, or { path = "),
        ("[graphs]", "graphs = 3\n[models.x]", "graphs of experiment mine must be a table"),
    ],
)  # fmt: skip
def test_one_sentence(file: Path, old: str, new: str, says: str) -> None:
    assert old in TEXT
    with pytest.raises(StudyError, match=says.replace("{", r"\{")):
        read_experiment("mine", TEXT.replace(old, new, 1), file.parent)


def test_a_setting_that_cannot_be_is_one_sentence(file: Path) -> None:
    file.write_text(TEXT.replace("hidden = 24", "hidden = -24"), encoding="utf-8")
    assert "ring wide preg-paper: hidden must be a whole number of at least 1, got -24." in invoke(
        "reproduce", file, "--device", "cpu", code=1
    )


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert "no.toml cannot be read: No such file or directory." in invoke("table", tmp_path / "no.toml", code=1)


SWEPT = """
[[parts]]
datasets = ["digits"]
models = ["gcn"]
methods = ["plain", "preg-paper"]
strengths = [0.1, 0.5]
split_kind = "natural"
per_class = [2, 5]
wrong_edges = [0.2]
wrong_labels = [0.1]
measures = true
rules = ["prior_corrected"]
max_epochs = 5
splits = 2
split_group = 1
seeds = 1
"""


def test_what_is_swept_and_corrected_from_the_training_to_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text(SWEPT)

    def said(*arguments: str) -> str:
        found = CliRunner().invoke(app, list(arguments))
        assert found.exit_code == 0, found.output
        return found.output

    train = ("reproduce", "mine.toml", "--device", "cpu", "--store", "s.sqlite")
    assert "12 runs stored" in said(*train)
    assert "0 runs stored" in said(*train)
    assert check_store(Path("s.sqlite")) == (12, [])
    tables = [
        said("table", "mine.toml", "--results", "s.sqlite", *rule) for rule in ([], ["--rule", "prior_corrected"])
    ]
    for table in tables:
        for size in (2, 5):
            row = f"P-reg (paper form, {size} per class, 20 % wrong edges, 10 % wrong labels) "
            assert "±" in next(line for line in table.splitlines() if row in line)
    assert tables[0].splitlines()[3:8] != tables[1].splitlines()[3:8], "the corrected predictions are others"
    printed = said(
        "table", "mine.toml", "--results", "s.sqlite", "--rule", "prior_corrected", "--format", "csv"
    ).splitlines()
    (plain,) = (line for line in printed if 'gcn,digits,plain,"5 per class' in line)
    with Store(Path("s.sqlite"), "read") as store:
        runs = [
            run for run in load_experiment("mine.toml").runs() if run.cell.strength == 0 and run.cell.per_class == 5
        ]
        reports = [store.find(run.key).outcome.all_reports("official") for run in runs]
    gains = [100 * (corrected.test - own.test) for own, corrected in reports]
    assert any(gains)
    assert f",{sum(gains) / len(gains):.2f}," in plain, "the difference is what the correction gains"
    said("store", "export", "runs.jsonl.gz", "--store", "s.sqlite")
    said("store", "import", "runs.jsonl.gz", "--store", "again.sqlite")
    assert said("table", "mine.toml", "--results", "again.sqlite", "--metrics").count("per class") == 2
