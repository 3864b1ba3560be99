"""``propreg run``: what it prints, what it writes, and how it ends."""

import csv
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import propreg
from communities import communities
from propreg._lazy import MissingPackageError
from propreg.cli.app import app
from propreg.data.graph import Split
from propreg.data.own.npz import write_graph
from propreg.data.own.pyg import to_data
from propreg.data.splits import RANDOM_SPLITS
from propreg.engine import train_all
from propreg.fitting.inputs import number_of_seeds
from propreg.running.plan import QUICK as QUICK_RUN
from propreg.running.plan import THOROUGH, load_source, parse_mu

QUICK = ["--mu", "0.2,0.5", "--splits", "2", "--seeds", "1", "--max-epochs", "8", "--device", "cpu"]
GRAPH = communities(nodes=200)
WRITTEN = ["figures", "index.html", "model.safetensors", "predictions.csv", "run.json", "runs.csv"]


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A graph of the user's, in the folder where the command runs."""
    monkeypatch.chdir(tmp_path)
    write_graph("mine.npz", GRAPH)
    return "mine.npz"


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["run", *arguments])


def test_it_prints_a_table_and_writes_a_folder(graph: str) -> None:
    done = run("--graph", graph, *QUICK)
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[0].startswith("communities: 200 nodes, ")
    assert "Training 6 GCNs on" in done.stdout
    folder = Path("propreg-run")
    record = json.loads((folder / "run.json").read_text())
    test = np.array(record["test"])
    plain = next(line for line in lines if line.startswith("GCN, plain"))
    assert f"{100 * test[0].mean():.2f} %" in plain
    assert any(line.startswith("GCN + P-reg, mu = 0.") for line in lines)
    assert any(line.startswith("difference") and "points" in line for line in lines)
    assert "p = " in done.stdout
    assert f"mu = {record['mu']:g}" in done.stdout
    assert "Written to propreg-run:" in done.stdout
    assert sorted(p.name for p in folder.iterdir()) == WRITTEN
    assert all(path.suffix == ".svg" for path in (folder / "figures").iterdir())
    assert any((folder / "figures").iterdir())
    assert "<html" in (folder / "index.html").read_text()
    with open(folder / "runs.csv", newline="") as file:
        assert len(list(csv.DictReader(file))) == 6
    data = to_data(GRAPH)
    assert propreg.load_model(folder / "model.safetensors")(data.x, data.edge_index).shape == (200, 3)
    assert done.stderr == "", "no bar where there is no terminal"


def test_what_is_printed_fits_a_terminal_and_has_no_colors(graph: str) -> None:
    done = run("--graph", graph, "--method", "confidence_penalty", *QUICK)
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "\x1b" not in done.output


@pytest.mark.parametrize("method", ["preg", "confidence_penalty"])
def test_a_narrow_terminal_gets_narrow_lines(graph: str, monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    done = run("--graph", graph, "--method", method, *QUICK)
    assert max(map(len, done.stdout.splitlines())) <= 60
    assert "difference" in done.stdout


def test_one_pair_of_runs_has_no_interval(graph: str) -> None:
    done = run("--graph", graph, "--mu", "0.5", "--splits", "1", "--seeds", "1", "--max-epochs", "5")
    rows = [line.split() for line in done.stdout.splitlines() if line.startswith(("GCN", "difference"))]
    assert [row[-2:] for row in rows[:2]] == [["–", "1"]] * 2
    assert rows[2][-1] == "–"
    text = " ".join(done.stdout.split())
    assert "One pair of runs gives neither an interval nor a test" in text
    assert "on 1 split, 1 seed each" in text
    assert "Training 2 GCNs" in text


def test_a_reader_who_stops_reading_loses_nothing(graph: str) -> None:
    """As with ``| head -1``: the result is written before it is printed."""
    command = [sys.executable, "-m", "propreg", "run", "--graph", graph, *QUICK]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith("communities: 200 nodes")
        process.stdout.close()
        said = process.stderr.read()
    assert (process.returncode, said) == (141, "")
    there = sorted(path.name for path in Path("propreg-run").iterdir())
    assert there == WRITTEN


def test_a_second_run_gets_a_folder_of_its_own(graph: str) -> None:
    run("--graph", graph, *QUICK, "-o", "out")
    before = (Path("out") / "run.json").read_bytes()
    again = run("--graph", graph, *QUICK, "-o", "out", "--model", "mlp")
    assert "out already exists and was left alone. Written to out-2:" in again.stdout
    assert (Path("out") / "run.json").read_bytes() == before
    over = run("--graph", graph, *QUICK, "-o", "out", "--model", "mlp", "--replace")
    assert "Written to out:" in over.stdout
    assert json.loads((Path("out") / "run.json").read_text())["model"] == "mlp"


def test_two_runs_at_the_same_time_have_a_folder_each(graph: str) -> None:
    quick = [*QUICK[2:], "--no-progress"]
    command = [sys.executable, "-m", "propreg", "run", "--graph", graph, *quick, "-o", "out", "--mu"]
    crew = [subprocess.Popen([*command, mu], stdout=subprocess.PIPE, text=True) for mu in ("0.1", "0.9")]
    printed = [process.communicate(timeout=120)[0] for process in crew]
    assert [process.returncode for process in crew] == [0, 0]
    found = {}
    for text in printed:
        (folder,) = re.findall(r"Written to (out(?:-2)?):", text)
        found[folder] = json.loads(Path(folder, "run.json").read_text())["mus"][1]
        assert f"{found[folder]:g}" in Path(folder, "runs.csv").read_text()
    assert sorted(found.values()) == [0.1, 0.9]
    assert sorted(path.name for path in Path.cwd().iterdir()) == [graph, "out", "out-2"]


def test_a_replacement_that_cannot_be_written_keeps_the_old_run(graph: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run("--graph", graph, *QUICK, "-o", "out")
    before = {path: path.read_bytes() for path in Path("out").rglob("*") if path.is_file()}

    def full(*_: Any) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("propreg.report.run_page", full)
    done = run("--graph", graph, *QUICK, "-o", "out", "--model", "mlp", "--replace")
    assert (done.exit_code, done.stderr) == (1, "No space left on device.\n")
    assert {path: path.read_bytes() for path in Path("out").rglob("*") if path.is_file()} == before
    assert "out already exists and was left alone. Written to out-2:" in done.stdout
    assert json.loads(Path("out-2/run.json").read_text())["model"] == "mlp"


def test_a_folder_of_the_users_is_never_replaced(graph: str) -> None:
    Path("out").mkdir()
    (Path("out") / "index.html").write_text("mine")
    done = run("--graph", graph, *QUICK, "-o", "out", "--replace")
    assert done.exit_code == 1
    assert "holds something that propreg did not write" in done.stderr
    assert [p.name for p in Path("out").iterdir()] == ["index.html"]
    assert (Path("out") / "index.html").read_text() == "mine"


def test_it_says_plainly_that_it_does_not_help_and_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neighbors are of other classes, and features say all: agreeing with neighbors can only hurt."""
    monkeypatch.chdir(tmp_path)
    hostile = communities(nodes=300, same=0.0)
    x = np.asarray(hostile.x) * 0.1
    x[np.arange(300), hostile.y] += 1.0
    write_graph("hostile.npz", type(hostile)("hostile", hostile.edge_index, x.astype(np.float32), hostile.y))
    arguments = ["--model", "mlp", "--mu", "1,3", "--seeds", "1", "--max-epochs", "40", "--splits", "5"]
    done = run("--graph", "hostile.npz", *arguments)
    assert done.exit_code == 0
    text = " ".join(done.stdout.split())
    assert "P-reg does not help on this graph: no strength did better than the plain model on validation" in text
    assert "0 % of the edges link nodes of the same class (33 % would be chance)" in text
    assert "mu was picked on 90 validation nodes per split, fewer than 100" in text
    assert "Chosen on validation: mu = 0, the plain model." in text
    assert json.loads(Path("propreg-run/run.json").read_text())["mu"] == 0


def _interrupted(monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    def some(*arguments: Any) -> Any:
        for number, item in enumerate(train_all(*arguments)):
            if number == after:
                raise KeyboardInterrupt
            yield item

    monkeypatch.setattr("propreg.fitting.fit.train_all", some)


def test_an_interruption_writes_what_is_finished(graph: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _interrupted(monkeypatch, 4)
    done = run("--graph", graph, *QUICK)
    assert done.exit_code == 130
    assert "interrupted: 4 of 6 trainings are finished" in " ".join(done.stdout.split())
    record = json.loads(Path("propreg-run/run.json").read_text())
    assert record["finished"] is False
    assert Path("propreg-run/index.html").exists()
    assert Path("propreg-run/model.safetensors").exists()


def test_an_interruption_at_once_leaves_nothing(graph: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _interrupted(monkeypatch, 0)
    done = run("--graph", graph, *QUICK)
    assert (done.exit_code, done.stderr) == (130, "Interrupted.\n")
    assert not Path("propreg-run").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["--dataset", "cors"], 1, "There is no dataset 'cors'. Did you mean 'cora'?"),
        (["--graph", "nowhere"], 1, "nowhere: there is no such file or folder: check the path."),
        (["--dataset", "cora", "--graph", "mine.npz"], 2, "--dataset and --graph name two graphs: give one of them."),
        (["--mu", "0.2;0.5"], 2, "--mu must be auto, a number or a list like 0.2,0.5, got '0.2;0.5'."),
        (["--graph", "mine.npz", "--mu", "-1"], 2, "--mu must hold finite numbers of at least 0, got '-1'."),
        (["--graph", "mine.npz", "--mu", "nan"], 2, "--mu must hold finite numbers of at least 0, got 'nan'."),
        (["--graph", "mine.npz", "--mu", "0"], 2, "--mu needs a strength above 0"),
        (["--mu", "2", "--method", "label_smoothing"], 2, "--mu must lie between 0 and 1 for label_smoothing"),
        (["--graph", "mine.npz", "--lr", "inf"], 2, "lr must be a finite number of at least 0, got inf."),
        (["--graph", "mine.npz", "--weight-decay", "inf"], 2, "weight_decay must be a finite number of at least 0"),
        (["--graph", "mine.npz", "--model", "gat", "--layers", "5"], 2, "gat has 2 layers, got layers=5."),
        (["--graph", "mine.npz", "--max-epochs", "9" * 20], 2, "max_epochs must be at most 2,147,483,647, got 999"),
        (["--graph", "mine.npz", "--patience", "9" * 20], 2, "patience must be at most 2,147,483,647, got 999"),
        (["--graph", "mine.npz", "--seeds", "9" * 20], 2, "'--seeds': Input should be less than or equal to 10000"),
        (["--model", "gnc"], 2, "Did you mean 'gcn'?"),
        (["--device", "tpu"], 2, "--device must be auto, cpu, cuda or one GPU like cuda:0, got 'tpu'."),
        (["--train-per-class", "5"], 2, "--train-per-class is for your own graph: give one with --graph"),
        (["--dataset", "cora", "--val-per-class", "30"], 2, "--val-per-class is for your own graph"),
        (["--directed", "--val-per-class", "3"], 2, "--val-per-class and --directed are for your own graph"),
        (["--columns", "label=species"], 2, "--columns is for your own graph: give one with --graph, or leave it out"),
        (["--graph", "mine.npz", "--columns", "label"], 2, "--columns is like label=species,source=from, each once"),
        (["--graph", "mine.npz", "--columns", "lable=a"], 2, "Did you mean 'label'?"),
        (["--graph", "mine.npz", "-o", "mine.npz/run"], 1, "cannot be made: Not a directory; choose another with -o."),
    ],
)
@pytest.mark.usefixtures("graph")
def test_what_cannot_be_run_is_one_sentence(arguments: list[str], code: int, says: str) -> None:
    done = run(*arguments)
    assert done.exit_code == code
    assert says in " ".join(done.stderr.replace("│", " ").split())
    assert done.stdout == "" or "Training" in done.stdout
    assert not Path("propreg-run").exists()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_without_a_gpu_cuda_is_refused_before_anything_is_written(graph: str) -> None:
    done = run("--graph", graph, *QUICK, "--device", "cuda")
    assert done.exit_code == 1
    assert "torch sees no CUDA device" in done.stderr
    assert not Path("propreg-run").exists()


def test_names_of_the_user_do_not_reach_the_terminal_as_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_graph("odd.npz", type(GRAPH)("\x1b]0;owned\x07[red]", GRAPH.edge_index, GRAPH.x, GRAPH.y))
    done = run("--graph", "odd.npz", *QUICK)
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("?]0;owned?[red]: 200 nodes")
    assert "\x1b" not in done.output


def test_a_page_that_cannot_be_made_does_not_lose_the_numbers(graph: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: Any) -> str:
        raise MissingPackageError("the page needs Jinja2: run pip install 'propreg[report]'.")

    monkeypatch.setattr("propreg.report.run_page", broken)
    done = run("--graph", graph, *QUICK)
    assert done.exit_code == 1
    assert "the page needs Jinja2" in done.stderr
    assert "Written to propreg-run:" in done.stdout
    assert sorted(p.name for p in Path("propreg-run").iterdir()) == [
        "model.safetensors",
        "predictions.csv",
        "run.json",
        "runs.csv",
    ]


def test_the_help_names_the_defaults_that_are_used() -> None:
    text = " ".join(run("--help").stdout.split())
    assert f"default {QUICK_RUN.max_epochs} for digits, else {THOROUGH.max_epochs}." in text
    assert f"default {QUICK_RUN.seeds} for digits, else 3 (10 for one split)." in text
    assert f"default {len(load_source('digits').splits)} for digits, else {RANDOM_SPLITS}." in text
    assert (number_of_seeds(None, 5), number_of_seeds(None, 1)) == (3, 10)


@pytest.mark.parametrize("text", ["", "a", "0.1,", "0.1 0.2"])
def test_strengths_that_are_none(text: str) -> None:
    with pytest.raises(ValueError, match="--mu must be auto"):
        parse_mu(text)
    assert parse_mu(" AUTO ") == "auto"
    assert parse_mu("0.5") == (0.5,)


@pytest.mark.slow
def test_the_default_is_digits_with_ten_splits(tmp_path: Path) -> None:
    """As a user starts it, cut to a few epochs; NO_COLOR and a wide terminal change nothing in a pipe."""
    command = [sys.executable, "-m", "propreg", "run", "--max-epochs", "3"]
    environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": "200", "FORCE_COLOR": ""}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"(Time left: .*\n)?", done.stderr)  # which is said where a machine is slow
    assert done.stdout.startswith("digits: 1,797 nodes, 6,309 edges, 64 features, 10 classes; 97 % of the edges")
    assert re.search(r"Training 50 GCNs .* 4 strengths, on\s+10\s+splits, 1 seed", done.stdout, re.DOTALL)
    record = json.loads((tmp_path / "propreg-run" / "run.json").read_text())
    assert (record["dataset"], record["splits"]) == ("digits", [str(i) for i in range(10)])
    assert record["classes"] == [str(i) for i in range(10)]


def test_a_graph_without_test_nodes_is_judged_on_validation_and_says_so(graph: str) -> None:
    k = np.arange(200)
    write_graph(graph, replace(GRAPH, split=Split(k % 4 == 0, k % 4 == 1, k < 0)))
    done = run("--graph", graph, "--mu", "0.3", "--seeds", "2", "--max-epochs", "8")
    assert done.exit_code == 0, done.output
    assert "validation accuracy" in done.stdout
    assert "The data has no test nodes" in " ".join(done.stdout.split())
    page = Path("propreg-run/index.html").read_text()
    assert "test accuracy" not in page[page.index("<main") : page.index("</main")]


def test_another_metric_is_named_everywhere(graph: str) -> None:
    done = run("--graph", graph, *QUICK, "--metric", "macro_f1")
    assert done.exit_code == 0, done.output
    assert "test macro-F1" in done.stdout
    assert "points of test macro-F1" in " ".join(done.stdout.split())
    record = json.loads(Path("propreg-run/run.json").read_text())
    assert record["judging"]["score"] == "macro-F1"
    with open("propreg-run/runs.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["test"]) for row in rows] == [
        pytest.approx(100 * value, abs=1e-3) for value in np.ravel(record["test"])
    ]
    assert "macro-F1" in Path("propreg-run/index.html").read_text()
    assert run("--graph", graph, *QUICK, "--metric", "f1").exit_code == 2


def test_what_the_strength_is_picked_by_is_in_the_record_and_the_page(graph: str) -> None:
    done = run("--graph", graph, *QUICK, "--select", "reweighted")
    assert done.exit_code == 0, done.output
    assert "picked by accuracy reweighted by estimated class frequencies" in " ".join(done.stdout.split())
    record = json.loads(Path("propreg-run/run.json").read_text())
    assert record["settings"]["select"] == "reweighted"
    assert {"accuracy", "balanced_accuracy", "macro_f1", "nll", "brier", "ece"} == record["metrics"].keys()
    page = Path("propreg-run/index.html").read_text()
    assert "Other metrics" in page
    assert "--select reweighted" in page
    assert run("--graph", graph, *QUICK, "--select", "rare").exit_code == 2


def test_several_models_are_one_leaderboard_and_the_folder_is_of_the_best(graph: str) -> None:
    done = run("--graph", graph, *QUICK, "--model", "mlp, gcn,gat", "--hidden", "8", "--lr", "0.02")
    assert done.exit_code == 0, done.output
    assert "Training 6 MLPs and as many of GCN and GAT on" in " ".join(done.stdout.split())
    ranked = [line for line in done.stdout.splitlines() if re.match(r"[123]  (MLP|GCN|GAT)", line)]
    assert [line[0] for line in ranked] == ["1", "2", "3"]
    scores = [float(re.findall(r"([0-9.]+) %", line)[0]) for line in ranked]
    assert scores == sorted(scores, reverse=True)
    record = json.loads(Path("propreg-run/run.json").read_text())
    best = record["model"]
    assert ranked[0][3:].lower().startswith(best)
    assert (record["settings"]["hidden"], record["settings"]["lr"]) == (8, 0.02)
    chosen = record["mus"].index(record["mu"])
    assert scores[0] == pytest.approx(100 * np.mean(record["val"][chosen]), abs=0.01)
    for line, row in zip(ranked, record["models"], strict=True):
        test, gain = row["test"], row["gain"]
        assert f"{100 * test['mean']:.2f} % [{100 * test['low']:.2f}, {100 * test['high']:.2f}]" in line
        shown = [f"{100 * gain[key]:+.2f}" for key in ("mean", "low", "high")] if gain else []
        behind = line.split("]", 1)[1]  # an interval of few runs may begin below 0
        assert re.findall(r"[+-][0-9.]+", behind.replace("−", "-")) == shown
    assert any(row["gain"] for row in record["models"])
    alone = run("--graph", graph, *QUICK, "--model", best, "--hidden", "8", "--lr", "0.02", "-o", "alone")
    assert alone.exit_code == 0
    assert json.loads(Path("alone/run.json").read_text())["test"] == record["test"]
    assert [path.name for path in Path().glob(".*training*")] == []
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert run("--graph", graph, "--model", "gcn,gnc").exit_code == 2
    assert run("--graph", graph, "--model", "mlp", "--layers", "0").exit_code == 2


def test_where_the_edges_mislead_the_run_says_so(graph: str) -> None:
    misleading = communities(nodes=200, same=0.1, degree=6)
    x = np.asarray(misleading.x).copy()
    x[np.arange(200), misleading.y] += 3
    write_graph(graph, replace(misleading, x=x))
    done = run(
        "--graph", graph, "--model", "gcn,mlp", "--mu", "0.1", "--splits", "5", "--seeds", "1", "--max-epochs", "30"
    )
    assert "The edges mislead: the plain MLP, which sees none, does better than" in " ".join(done.stdout.split())
    assert "The edges mislead" in Path("propreg-run/index.html").read_text()


@pytest.mark.parametrize("wanted", [False, True])
def test_the_page_is_opened_on_request(graph: str, monkeypatch: pytest.MonkeyPatch, wanted: bool) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    done = run("--graph", graph, *QUICK, *["--open"] * wanted)
    assert done.exit_code == 0, done.output
    assert opened == [Path("propreg-run/index.html").resolve().as_uri()] * wanted


def test_the_old_option_for_features_still_works(graph: str) -> None:
    done = run("--graph", graph, *QUICK, "--normalize-features")
    assert "--normalize-features is deprecated: use --scale rows." in done.stderr
    assert json.loads(Path("propreg-run/run.json").read_text())["settings"]["scale"] == "rows"


def test_folds_test_on_every_labeled_node_once(graph: str) -> None:
    done = run("--graph", graph, "--test", "cv", "--mu", "0.5", "--seeds", "1", "--max-epochs", "8", "--device", "cpu")
    assert done.exit_code == 0, done.output
    record = json.loads(Path("propreg-run", "run.json").read_text())
    assert record["splits"] == [f"fold-{i}" for i in range(6)]
    assert record["judging"]["nested"] is True
    assert record["settings"]["test"] == "cv"
    expected = propreg.fit(
        to_data(GRAPH), "gcn", 0.5, test="cv", seeds=1, max_epochs=8, lr=0.01, patience=100, progress=False
    )
    np.testing.assert_allclose(np.array(record["test"]), expected.test, atol=1e-6)
    page = Path("propreg-run", "index.html").read_text()
    assert "--test cv" in page
    assert "Training 12 GCNs" in done.stdout
    refused = run("--graph", graph, "--test", "cv", "--train-per-class", "3")
    assert refused.exit_code == 2
    assert "--train-per-class does not apply with --test cv" in " ".join(refused.output.split()).replace("│ ", "")
    few = run("--graph", graph, "--test", "cv", "--splits", "2")
    assert few.exit_code == 1
    assert "--splits must be a whole number of at least 3" in " ".join(few.output.split())
