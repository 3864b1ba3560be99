"""``propreg run --resume``: what was finished before a kill, a signal, Ctrl-C or a full disk is not trained again."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import propreg.fitting.fit as fitting
from communities import communities
from propreg.cli.app import app
from propreg.data.own.npz import write_graph
from propreg.engine import train_all

QUICK = [
    "--graph",
    "mine.npz",
    "--mu",
    "0.2,0.5",
    "--splits",
    "2",
    "--seeds",
    "1",
    "--max-epochs",
    "8",
    "--no-progress",
]
LONG = ["--graph", "mine.npz", "--mu", "0.5", "--splits", "2", "--seeds", "8", "--max-epochs", "40", "--no-progress"]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_graph("mine.npz", communities(nodes=200))


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["run", *arguments])


def numbers(folder: str = "propreg-run") -> Any:
    """What a run has found, without its time."""
    record = json.loads(Path(folder, "run.json").read_text())
    return {name: value for name, value in record.items() if name != "seconds"}, Path(folder, "runs.csv").read_text()


def trained(monkeypatch: pytest.MonkeyPatch, after: int | None = None) -> list[int]:
    """The number of runs that each fit began to train; after so many results it is interrupted."""
    found = []

    def some(*arguments: Any) -> Any:
        found.append(len(arguments[3]))
        for number, item in enumerate(train_all(*arguments)):
            if number == after:
                raise KeyboardInterrupt
            yield item

    monkeypatch.setattr(fitting, "train_all", some)
    return found


def test_an_interrupted_run_goes_on_in_its_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    run(*QUICK, "-o", "whole")
    trained(monkeypatch, after=4)
    done = run(*QUICK)
    assert done.exit_code == 130
    assert "the same command with --resume continues from there" in " ".join(done.stdout.split())
    count = trained(monkeypatch)
    again = run(*QUICK, "--resume")
    assert again.exit_code == 0, again.output
    assert count[0] < 6
    assert numbers() == numbers("whole")
    assert sorted(path.name for path in Path().iterdir()) == ["mine.npz", "propreg-run", "whole"]
    refused = run(*QUICK, "--resume")
    assert refused.exit_code == 1
    assert "propreg-run: holds a run that is finished: leave --resume out" in refused.stderr


def test_a_new_run_leaves_the_kept_trainings_alone_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    trained(monkeypatch, after=0)
    run(*QUICK)
    trained(monkeypatch, after=4)
    run(*QUICK, "-o", "out")
    kept = sorted(Path(".out.training").glob("*/*"))
    Path("out").rename("elsewhere")
    trained(monkeypatch)
    done = run(*QUICK, "-o", "out", "--model", "mlp")
    said = " ".join(done.stdout.split())
    assert "out has 4 finished trainings of an unfinished run: --resume, with the options of that run" in said
    assert sorted(Path(".out.training").glob("*/*")) == kept
    assert not Path(".propreg-run.training").exists(), "nothing was finished"


def test_a_comparison_of_models_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    several = [*QUICK, "--model", "gcn,mlp"]
    run(*several, "-o", "whole")
    trained(monkeypatch, after=4)
    assert run(*several).exit_code == 130
    count = trained(monkeypatch)
    again = run(*several, "--resume")
    assert again.exit_code == 0, again.output
    assert sum(count) < 12
    assert numbers() == numbers("whole")
    assert sorted(path.name for path in Path().iterdir()) == ["mine.npz", "propreg-run", "whole"]


def test_there_may_be_nothing_to_resume(monkeypatch: pytest.MonkeyPatch) -> None:
    done = run(*QUICK, "--resume")
    assert (done.exit_code, done.stderr.count("\n")) == (1, 1)
    assert "propreg-run: no finished training is kept for it, so there is nothing to resume: leave" in done.stderr
    assert [path.name for path in Path().iterdir()] == ["mine.npz"]
    trained(monkeypatch, after=3)
    Path("propreg-run").mkdir()
    Path("propreg-run/notes.txt").touch()
    assert "Written to propreg-run-2" in " ".join(run(*QUICK).stdout.split())
    Path("propreg-run/notes.txt").unlink()
    assert "name its folder, -o propreg-run-2." in run(*QUICK, "--resume").stderr
    assert run(*QUICK, "--resume", "--replace").exit_code == 2


def test_a_disk_that_is_full_at_the_end_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    run(*QUICK, "-o", "whole")

    def full(*_: Any) -> str:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("propreg.report.run_page", full)
        assert run(*QUICK).exit_code == 1
    count = trained(monkeypatch)
    assert run(*QUICK, "--resume").exit_code == 0
    assert count == [0]
    assert numbers() == numbers("whole")
    assert Path("propreg-run/index.html").exists()
    assert not Path(".propreg-run.training").exists()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has neither signal")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_signal_loses_no_finished_training(number: signal.Signals, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "propreg", "run", *LONG]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as child:
        until = time.monotonic() + 60
        while child.poll() is None and len(list(Path().glob(".propreg-run.training/*/*.safetensors"))) < 4:
            assert time.monotonic() < until
        assert child.poll() is None, "it ended too early"
        child.send_signal(number)
        said, error = child.communicate(timeout=60)
    if number == signal.SIGTERM:
        assert child.returncode == 130, error
        assert error == ""
        assert "trainings are finished" in " ".join(said.split())
        assert numbers()[0]["finished"] is False
    else:
        assert not Path("propreg-run").exists()
    count = trained(monkeypatch)
    done = run(*LONG, "--resume")
    assert done.exit_code == 0, done.output
    assert count[0] < 32
    run(*LONG, "-o", "whole")
    assert numbers() == numbers("whole")
    assert sorted(path.name for path in Path().iterdir()) == ["mine.npz", "propreg-run", "whole"]
