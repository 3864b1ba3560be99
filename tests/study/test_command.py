"""The commands: one sentence and exit status 1 for what a user can mend, JSON for scripts, and light imports."""

import csv
import io
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from propreg.cli.app import app
from propreg.store.store import Store
from propreg.study.execute.runner import reproduce
from propreg.study.spec.experiment import experiment_names
from study.sweeping import MadeUp, batches, fill

runner = CliRunner()
RECORD = str(Path(__file__).parents[2] / "results")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "store.sqlite"
    with Store(path) as opened:
        reproduce(batches(), opened, MadeUp)
    return path


def test_reproduce_status_and_rerun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    only = ["--only", "model=gcn,method=preg-paper", "--seeds", "0"]
    done = runner.invoke(app, ["reproduce", "digits-smoke", *only, "--device", "cpu", "--json"])
    assert done.exit_code == 0, done.output
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert events[0]["event"] == "start"
    assert (events[-1]["event"], events[-1]["stored"], events[-1]["missing"]) == ("end", 10, 0)
    state = json.loads(runner.invoke(app, ["status", "digits-smoke", "--json"]).stdout)
    assert (state["runs"], state["done"]) == (200, 10)
    assert state["seconds_left"] > 0
    said = runner.invoke(app, ["status", "digits-smoke"]).stdout
    assert "10 of     40" in said
    assert "10 of 200 runs done" in said
    with Store(tmp_path / "propreg-study.sqlite", "read") as opened:
        key = sorted(opened.keys())[0]
    again = runner.invoke(app, ["rerun", key[:12], "--device", "cpu", "--alone"])
    assert again.exit_code == 0, again.output


def test_people_see_progress(tmp_path: Path) -> None:
    arguments = ["reproduce", "digits-smoke", "--only", "model=mlp-16,method=plain", "--device", "cpu"]
    done = runner.invoke(app, [*arguments, "--store", str(tmp_path / "store.sqlite")])
    assert "20 of 20 runs; digits mlp-16 plain (20 runs) took" in done.stderr
    assert "20 runs stored in" in done.stdout
    assert "all runs are recorded" in done.stdout


def test_runs_that_are_missing_are_status_3(tmp_path: Path) -> None:
    part = ["digits-smoke", "--only", "model=mlp-16,method=plain", "--device", "cpu"]
    arguments = ["reproduce", *part, "--store", str(tmp_path / "store.sqlite")]
    done = runner.invoke(app, [*arguments, "--time-limit", "0.001s"])
    assert "20 runs are missing (time limit)" in done.stdout
    assert done.exit_code == 3, done.output
    assert runner.invoke(app, arguments).exit_code == 0


def check_refused(arguments: list[str], says: str, status: int) -> None:
    """One sentence with this exit status, and nothing left behind in the current folder."""
    done = runner.invoke(app, arguments)
    assert done.exit_code == status
    assert says in done.stderr
    assert len(done.output.splitlines()) == 1
    assert not list(Path.cwd().iterdir()), "a command that is refused leaves nothing behind"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["reproduce", "tabel1"], "no experiment 'tabel1'. Did you mean 'table1'? Known are: ablation, "),
        (["status", "table1", "--only", "dataset=cors"], "no dataset in table1 'cors'. Did you mean 'cora'?"),
        (["table", "table1", "--results", "nowhere"], "There are no results at nowhere"),
        (
            ["table", "table1"],
            "neither a folder results/ with exported runs, which a clone of the repository has, nor a store propreg-st",
        ),
        (["rerun", "abc"], "neither a folder results/ with exported runs"),
        (["rerun", "abc"], "nor a store propreg-study.sqlite: go to one, or name a store or exports with --results"),
        (["rerun", "abc", "--store", "mine.sqlite"], "There is no mine.sqlite: name a store with --store, or exported"),
        (["store", "check", "--store", "."], ". is a folder, not a store: name the SQLite file in it with --store."),
        (["store", "check"], "There is no store propreg-study.sqlite"),
        (
            ["table", "table1", "--runs", "cora/gcn/preg", "--only", "dataset=citeseer"],
            "No line of table1 matches both --runs cora/gcn/preg and --only dataset=citeseer.",
        ),
        (["store", "import", "nowhere.jsonl"], "nowhere.jsonl cannot be read"),
    ],
)
def test_one_sentence_and_status_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    check_refused(arguments, says, 1)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            ["table", "table1", "--only", "hue=red"],
            "no filter 'hue'. Known are: dataset, model, method, preset, split.",
        ),
        (["table", "table1", "--only", "foo"], "A filter reads key=value"),
        (["table", "table1", "--only", "dataset=cora,citeseer"], "for each value, as in dataset=cora,dataset=citeseer"),
        (["table", "table1", "--runs", "cora/gcn"], "dataset/model/method"),
        (
            ["table", "best", "--rule", "own", "--runs", "cora/grand/preg", "--results", RECORD],
            "--rule does not apply to a search",
        ),
        (["reproduce", "table1", "--time-limit", "soon"], "--time-limit must be like 90s, 9m or 1.5h"),
        (["reproduce", "table1", "--seeds", "one"], "--seeds must be like 0,1,2 or 0-4"),
        (["reproduce", "digits-smoke", "--seeds", "3-1"], "--seeds 3-1 is an empty range: write the smaller"),
        (["status", "digits-smoke", "--seeds", "0,3-1"], "--seeds 3-1 is an empty range"),
        (["status", "--only", "dataset=cora"], "--only and --seeds need the experiment that they are a part of"),
        (["reproduce", "digits-smoke", "--device", "abacus"], "--device must be auto, cpu, cuda or one GPU"),
    ],
)
def test_a_wrong_option_is_status_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    check_refused(arguments, says, 2)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
@pytest.mark.parametrize("command", [["reproduce", "digits-smoke"], ["rerun", "abc"]])
def test_a_device_that_is_not_here_is_said_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    done = runner.invoke(app, [*command, "--device", "cuda"])
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == (
        "--device is 'cuda', but torch sees no CUDA device: use 'cpu', or run propreg doctor --devices to see why.\n"
    )
    assert not list(tmp_path.iterdir())


def remove_fifty_runs(store: Path) -> None:
    """Those with the smallest keys."""
    with Store(store) as opened:
        for key in sorted(opened.keys())[:50]:
            opened.remove(key)


def test_status_of_a_clone_reads_its_results(tmp_path: Path, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "no store propreg-study.sqlite yet" in runner.invoke(app, ["status", "digits-smoke"]).stdout
    (tmp_path / "results").mkdir()
    remove_fifty_runs(store)
    assert runner.invoke(app, ["store", "export", "results/runs.jsonl.gz", "--store", str(store)]).exit_code == 0
    note = [{"device": "cpu", "runs": 100, "seconds": 400.0}, {"device": "cpu", "runs": 100, "seconds": 200.0}]
    (tmp_path / "results" / "runs.provenance.json").write_text(json.dumps([*note, {"runs": 7}]))
    said = runner.invoke(app, ["status", "digits-smoke"]).stdout.splitlines()
    assert said[-2].startswith("150 of 200 runs done, ")
    # A run took 3 s on average, and each of the ten batches of 20 lacks one and is trained whole.
    assert said[-2].endswith("about 10 min of training left, roughly, by the times of recorded runs (cpu).")
    assert said[-1] == (
        "Read from results/. To go on from it: propreg store import results/runs.jsonl.gz, then propreg reproduce "
        "digits-smoke."
    )
    state = json.loads(runner.invoke(app, ["status", "digits-smoke", "--json"]).stdout)
    assert (state["done"], state["read"]) == (150, "results")
    assert 500 < state["seconds_left"] < 700
    # A store that took the runs in knows that pace too.
    assert runner.invoke(app, ["store", "import", "results/runs.jsonl.gz"]).exit_code == 0
    said = runner.invoke(app, ["status", "digits-smoke"]).stdout.splitlines()
    assert said[-1] == "Read from results/. To go on from it: propreg reproduce digits-smoke."
    named = ["--store", "propreg-study.sqlite"]
    state = json.loads(runner.invoke(app, ["status", "digits-smoke", "--json", *named]).stdout)
    assert (state["done"], state["read"]) == (150, "propreg-study.sqlite")
    assert 500 < state["seconds_left"] < 700
    assert set(state) == {"runs", "done", "batches_left", "seconds_left", "lines", "read"}
    other = json.loads(runner.invoke(app, ["status", "digits-smoke", "--json", "--store", "mine.sqlite"]).stdout)
    assert (other["done"], other["read"]) == (0, None), "a store that is named is not replaced by another record"


def test_status_of_everything_is_a_line_for_each_experiment(
    tmp_path: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    remove_fifty_runs(store)
    said = runner.invoke(app, ["status", "--store", str(store)]).stdout.splitlines()
    assert [line.split()[0] for line in said[:-2]] == experiment_names()
    assert "digits-smoke                 150 of     200 runs   75 %" in said
    state = json.loads(runner.invoke(app, ["status", "--store", str(store), "--json"]).stdout)
    assert (state["done"], state["read"]) == (0, str(store)), "those show how it goes, and are not of the study"
    assert {"experiment": "digits-smoke", "done": 150, "runs": 200} in state["experiments"]
    assert state["runs"] < sum(each["runs"] for each in state["experiments"]), "experiments share runs"
    empty = json.loads(runner.invoke(app, ["status", "--json"]).stdout)
    assert (empty["done"], empty["runs"], empty["read"]) == (0, state["runs"], None)
    assert sorted(tmp_path.iterdir()) == [store]
    (tmp_path / "results").mkdir()  # somebody else's: there are no exports in it
    assert json.loads(runner.invoke(app, ["status", "--json"]).stdout) == empty


def test_a_check_as_json(tmp_path: Path) -> None:
    path = fill(tmp_path / "a.sqlite", batches()[0].runs[:3])
    state = json.loads(runner.invoke(app, ["store", "check", "--store", str(path), "--json"]).stdout)
    assert state == {"runs": 3, "wrong": []}


def test_a_damaged_store_is_one_sentence(tmp_path: Path, store: Path) -> None:
    whole = store.read_bytes()
    for name, raw in (("noise.sqlite", b"\xff\xfe" * 2000), ("cut.sqlite", whole[:16] + b"\xff" * 5000)):
        file = tmp_path / name
        file.write_bytes(raw)
        done = runner.invoke(app, ["table", "digits-smoke", "--results", str(file)])
        assert (done.exit_code, len(done.output.splitlines())) == (1, 1)
        assert f"{name} is damaged or no" in done.stderr


def test_a_failed_import_leaves_no_store_but_keeps_one_that_was_there(tmp_path: Path, store: Path) -> None:
    bad, good, new = tmp_path / "bad.jsonl", tmp_path / "good.jsonl", tmp_path / "new.sqlite"
    bad.write_text('{"format":"propreg runs","version":3}\n{"cell"')
    assert runner.invoke(app, ["store", "export", str(good), "--store", str(store)]).exit_code == 0
    done = runner.invoke(app, ["store", "import", str(bad), "--store", str(new)])
    assert (done.exit_code, len(done.output.splitlines())) == (1, 1)
    assert not list(tmp_path.glob("new.sqlite*"))
    # What was taken in before the failure stays.
    assert runner.invoke(app, ["store", "import", str(good), str(bad), "--store", str(new)]).exit_code == 1
    with Store(new, "read") as opened:
        assert len(opened.keys()) == 200
    assert runner.invoke(app, ["store", "import", str(bad), "--store", str(new)]).exit_code == 1
    assert "200 runs, whole." in runner.invoke(app, ["store", "check", "--store", str(new)]).stdout


def test_rerun_takes_the_exported_runs_of_a_clone(tmp_path: Path, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "results").mkdir()
    assert runner.invoke(app, ["store", "export", str(tmp_path / "results" / "a.jsonl"), "--store", str(store)])
    monkeypatch.chdir(tmp_path)
    key = batches()[0].runs[0].key
    done = runner.invoke(app, ["rerun", key, "--alone", "--json"])
    assert "Training the run alone." in done.stderr
    assert json.loads(done.stdout)["key"] == key
    assert not (tmp_path / "propreg-study.sqlite").exists()


def test_export_import_merge_check(tmp_path: Path, store: Path) -> None:
    first, second, copy = tmp_path / "a.jsonl.gz", tmp_path / "b.jsonl.gz", tmp_path / "copy.sqlite"
    for arguments in (
        ["store", "export", str(first), "--store", str(store)],
        ["store", "import", str(first), "--store", str(copy)],
        ["store", "export", str(second), "--store", str(copy), "--experiment", "digits-smoke"],
        ["store", "merge", str(store), "--store", str(copy)],
        ["store", "check", "--store", str(copy)],
    ):
        done = runner.invoke(app, arguments)
        assert done.exit_code == 0, done.output
    assert first.read_bytes() == second.read_bytes()
    assert "200 runs, whole." in done.stdout
    made_by = json.loads((tmp_path / "a.provenance.json").read_text())
    assert made_by[0]["runs"] == 200
    # Whoever trained them is still named after they went through another store.
    assert json.loads((tmp_path / "b.provenance.json").read_text()) == made_by


def test_a_merge_with_unequal_results_fails(tmp_path: Path, store: Path) -> None:
    other = tmp_path / "other.sqlite"
    with Store(store, "read") as opened:
        first, *others = map(opened.find, sorted(opened.keys()))
    with Store(other) as opened:
        session = opened.begin_session({})
        for record in (replace(first, outcome=replace(first.outcome, epochs=999)), *others):
            opened.add(record, session)
    done = runner.invoke(app, ["store", "merge", str(other), "--store", str(store)])
    assert done.exit_code == 1
    assert "0 runs added, 199 known, 1 unequal" in done.stdout
    assert "has a different result than" in done.stderr


@pytest.mark.parametrize("how", ["text", "markdown", "latex", "csv", "html"])
def test_tables(store: Path, how: str) -> None:
    done = runner.invoke(app, ["table", "digits-smoke", "--results", str(store), "--format", how])
    assert done.exit_code == 0, done.output
    assert "mlp-16" in done.stdout


def test_a_place_lists_its_runs(store: Path) -> None:
    arguments = ["table", "digits-smoke", "--results", str(store)]
    listed = runner.invoke(app, [*arguments, "--runs", "digits/gcn/preg"]).stdout.splitlines()
    assert listed[0] == "method,preset,strength,split,seed,val,test,epoch,epochs,failed_at,key"
    assert len(listed) == 41
    with Store(store, "read") as opened:
        assert opened.find(listed[1].rpartition(",")[2]).run.cell.strength == 0.1
    picked = runner.invoke(app, [*arguments, "--picked", "--only", "model=gcn"]).stdout
    assert picked.startswith("dataset/model/method")  # more than one method
    one = runner.invoke(app, [*arguments, "--picked", "--only", "model=gcn,method=preg-paper"]).stdout
    assert one.startswith('"digits/gcn" = 0.')
    mu = float(one.split()[2])
    mine = runner.invoke(app, [*arguments, "--picked", "--runs", "digits/gcn/preg-paper"]).stdout.splitlines()[1:]
    assert {float(row.split(",")[2]) for row in mine} == {mu}
    assert len(mine) == 20


def test_a_place_and_a_filter_hold_both(store: Path) -> None:
    arguments = ["table", "table1", "--results", str(store), "--runs", "cora/gcn/preg"]

    def presets(*more: str) -> set[str]:
        done = runner.invoke(app, [*arguments, *more])
        assert done.exit_code == 0, done.output
        return {row["preset"] for row in csv.DictReader(io.StringIO(done.stdout))}

    assert presets() == {"reference", "paper"}
    assert presets("--only", "preset=paper") == {"paper"}
    assert presets("--only", "model=gcn", "--only", "preset=reference,dataset=cora") == {"reference"}


def test_one_seed_is_a_range(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for seeds, runs in (("1-1", 50), ("0-2", 150), ("0,2-3", 150)):
        state = json.loads(runner.invoke(app, ["status", "digits-smoke", "--seeds", seeds, "--json"]).stdout)
        assert state["runs"] == runs


def test_a_run_that_is_missing_has_a_key_and_no_numbers(store: Path) -> None:
    arguments = ["table", "table1", "--results", str(store), "--runs", "cora/gcn/plain"]
    for row in runner.invoke(app, arguments).stdout.splitlines()[1:]:
        *_, val, test, epoch, epochs, failed_at, key = row.split(",")
        assert (val, test, epoch, epochs, failed_at) == ("", "", "", "", "")
        assert len(key) == 64


def _modules(command: str) -> set[str]:
    code = f"{command}\nimport sys; print(*sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    return set(out.splitlines()[-1].split())


def test_reading_results_imports_neither_torch_nor_scipy(store: Path, tmp_path: Path) -> None:
    table = f"""
from typer.testing import CliRunner
from propreg.cli.app import app
for arguments in (
    ["table", "digits-smoke", "--results", {str(store)!r}],
    ["status", "table1", "--store", {str(store)!r}],
    ["store", "check", "--store", {str(store)!r}],
    ["store", "export", {str(tmp_path / "out.jsonl")!r}, "--store", {str(store)!r}],
):
    assert CliRunner().invoke(app, arguments).exit_code == 0"""
    assert not _modules(table) & {"torch", "scipy", "sklearn", "matplotlib"}


def test_an_identity_imports_no_torch() -> None:
    assert "torch" not in _modules(
        "import propreg.store.run, propreg.store.store, propreg.study.execute.runner, propreg.engine"
    )


def test_a_rule_must_be_known() -> None:
    done = runner.invoke(app, ["table", "table1", "--rule", "mine"])
    assert done.exit_code == 2
    assert "There is no rule 'mine'" in done.output
