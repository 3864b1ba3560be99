"""A search end to end on the embedded digits: rung after rung from one store, killed and resumed, and its table."""

import itertools
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

import quick_start
from propreg.cli.app import app
from propreg.store.errors import StudyError
from propreg.store.integrity import check_store
from propreg.store.results import load_results
from propreg.store.store import Store
from propreg.study.execute.runner import SweepReport
from propreg.study.spec.experiment import load_experiment
from propreg.study.spec.search import rungs_of, winner_of
from study.sweeping import exported

SEARCH = """
title = "A search"

[spaces.small]
lr = { log = [0.003, 0.03] }
input_dropout = { uniform = [0.1, 0.5] }
hidden = { values = [4, 8] }
strength = { log = [0.05, 1.0] }

[[parts]]
datasets = ["digits"]
models = ["appnp"]
methods = ["plain", "preg-paper"]
split_kind = "random"
splits = 1
rule = "last"
max_epochs = 4
space = "small"
rungs = [[6, 1], [2, 3]]
fresh = 2
"""
RUNS = 2 * (6 + 2 * 2 + 2)


def written(folder: Path) -> str:
    file = folder / "search.toml"
    file.write_text(SEARCH)
    return str(file)


def search(path: Path, file: str) -> int:
    """Train what the store lacks; the exit code."""
    return CliRunner().invoke(app, ["reproduce", file, "--store", str(path), "--device", "cpu"]).exit_code


def begun(path: Path, file: str) -> None:
    """The same in another process."""
    search(path, file)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of a search that nobody disturbs."""
    folder = tmp_path_factory.mktemp("search")
    assert search(folder / "store.sqlite", written(folder)) == 0
    return folder / "store.sqlite"


def test_all_rungs_are_trained_and_the_fresh_seeds_selected_nothing(undisturbed: Path, tmp_path: Path) -> None:
    results = load_results(undisturbed)
    assert len(results) == RUNS
    for line in load_experiment(written(tmp_path)).lines:
        rungs = rungs_of(line, results)
        assert [(len(rung.cells), rung.seeds) for rung in rungs] == [(6, (0,)), (2, (1, 2)), (1, (3, 4))]
        first, second, last = rungs
        val = {cell: results.accuracies(cell, line.splits, (0,)) for cell in first.cells}
        worst_kept = min(found.val.mean() for cell, found in val.items() if cell in second.cells and found)
        best_left = max(found.val.mean() for cell, found in val.items() if cell not in second.cells and found)
        assert worst_kept >= best_left
        winner = winner_of(line, results)
        assert winner is not None
        assert (winner.cell,) == last.cells
        assert not set(last.seeds) & {seed for rung in (first, second) for seed in rung.seeds}


def test_once_more_trains_nothing(undisturbed: Path, tmp_path: Path) -> None:
    before = exported(undisturbed)
    assert search(undisturbed, written(tmp_path)) == 0
    assert exported(undisturbed) == before


@pytest.mark.parametrize("every", [1, 5])
def test_stopped_and_resumed_it_ends_in_the_same_bytes(
    undisturbed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, every: int
) -> None:
    """Ctrl-C after every so many runs, whatever rung they are of."""
    from propreg.study.execute import runner

    file, path, real = written(tmp_path), tmp_path / "store.sqlite", runner.run_sweep

    def interrupted(batches: object, store: object, executor: object, stop: runner.Stop, _: object) -> SweepReport:
        counted = itertools.count(1)

        def count(progress: runner.Progress) -> None:
            if progress.event == "run" and next(counted) % every == 0:
                stop.asked.set()

        return real(batches, store, executor, stop, count)  # type: ignore[arg-type]

    monkeypatch.setattr(runner, "run_sweep", interrupted)
    for _ in range(2 * RUNS):
        if (code := search(path, file)) == 0:
            break
        assert code == 130
    assert exported(path) == exported(undisturbed)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="processes are forked and killed the way Linux does it")
def test_killed_it_ends_in_the_same_bytes(undisturbed: Path, tmp_path: Path) -> None:
    file, path = written(tmp_path), tmp_path / "store.sqlite"
    for runs in (3, 9, 14, 20):
        process = quick_start.begin(begun, path, file)
        until = time.monotonic() + 300
        while process.is_alive() and recorded(path) < runs:
            assert time.monotonic() < until
            time.sleep(0.005)
        process.kill()
        process.join(300)
        assert not path.exists() or check_store(path)[1] == []
    assert search(path, file) == 0
    assert exported(path) == exported(undisturbed)


def recorded(path: Path) -> int:
    try:
        with Store(path, "read") as store:
            return sum(session["runs"] for session in store.sessions())
    except StudyError:
        return 0


def test_the_commands_show_it(undisturbed: Path, tmp_path: Path) -> None:
    file, store = written(tmp_path), str(undisturbed)
    shown = CliRunner().invoke(app, ["table", file, "--results", store])
    assert shown.exit_code == 0, shown.output
    assert "What P-reg adds" in shown.output
    assert "input dropout 0." in shown.output
    for more in (["--long"], ["--format", "csv"], ["--format", "latex"], ["--format", "html"]):
        assert CliRunner().invoke(app, ["table", file, "--results", store, *more]).exit_code == 0
    state = CliRunner().invoke(app, ["status", file, "--store", store])
    assert f"{RUNS} of {RUNS} runs done" in state.output
    assert f"with all of them there are {RUNS} runs" in state.output
    cell = CliRunner().invoke(app, ["table", file, "--results", store, "--runs", "digits/appnp/preg"])
    assert len(cell.output.splitlines()) == 1 + RUNS // 2
    out = str(tmp_path / "out.jsonl.gz")
    assert CliRunner().invoke(app, ["store", "export", out, "--experiment", file, "--store", store]).exit_code == 0
    assert len(load_results(Path(out))) == RUNS


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["table", "--picked"], "--picked is for grids of strengths"),
        (["table", "--rule", "latest_best"], "--rule does not apply to a search"),
        (["reproduce", "--seeds", "0"], "--seeds cannot choose from"),
    ],
)
def test_what_means_nothing_for_a_search_is_refused(
    undisturbed: Path, tmp_path: Path, command: list[str], words: str
) -> None:
    name, *options = command
    where = "--results" if name == "table" else "--store"
    found = CliRunner().invoke(app, [name, written(tmp_path), *options, where, str(undisturbed)])
    assert found.exit_code == 2
    assert words in found.output


@pytest.mark.parametrize("known", [False, True])
def test_a_run_of_a_later_rung_is_trained_again(
    undisturbed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: bool
) -> None:
    """In its batch where the package knows the search, else alone; its own settings come from its cell."""
    from propreg.study.execute import rerun

    if known:
        file = written(tmp_path)
        monkeypatch.setattr(rerun, "experiment_names", lambda: [file])
    line = load_experiment(written(tmp_path)).lines[1]
    last = rungs_of(line, load_results(undisturbed))[-1]
    key = next(last.runs()).key
    again = CliRunner().invoke(app, ["rerun", key[:16], "--store", str(undisturbed), "--device", "cpu"])
    assert again.exit_code == 0, again.output
    assert ("trained again in its batch: the same to the last node" if known else "trained again alone") in again.output
