"""``propreg run --plan``: memory and time before anything is trained, by the cost model."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from propreg.cli.app import app
from propreg.running import forecast as module
from propreg.running.forecast import forecast
from propreg.running.plan import load_source, make_plan


def test_the_command_trains_and_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["run", "--plan", "--model", "gcn,gat,gcnii", "--device", "cpu", "--splits", "2"])
    assert done.exit_code == 0, done.output
    gcn, memory, time, gat, _, other, gcnii, _, unknown = done.stdout.splitlines()
    assert gcn.startswith("GCN on digits: 1,797 nodes, 12,618 edges, 10 runs of at most 100 epochs, ")
    assert " MiB beyond the graph: " in memory
    assert " for an epoch of a run on one core of " in time
    assert gat.startswith("GAT on digits: ")
    assert " for an epoch of a run on one core of " in other
    assert gcnii.startswith("GCNII on digits: ")
    assert unknown == "  time    not known beforehand for this model"
    assert not list(tmp_path.iterdir())


def test_the_longest_time_is_that_of_all_runs_to_the_last_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "cores", lambda: 2)
    plan = make_plan(load_source("digits", splits=4), device="cpu", mu=(0.0, 0.5), seeds=5, max_epochs=360_000)
    *_, time = forecast([plan])
    # 40 runs of 360,000 epochs on two cores: as many hours as an epoch has milliseconds times 2.
    milliseconds = float(time.split()[1])
    assert f"{milliseconds * 2:.0f}" in {f"{float(time.split('; ')[1].split()[0]) + by:.0f}" for by in (-0.1, 0, 0.1)}


def test_a_gpu_trains_all_together_and_too_little_memory_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = make_plan(load_source("digits", splits=2), device="cpu", mu=(0.0, 0.5), seeds=5)
    first, memory, time = forecast([replace(plan, device="cuda:0")])
    assert "20 runs of at most 100 epochs, 20 at once." in first
    assert "free" not in memory
    assert " for an epoch on an H200, all 20 together; " in time
    monkeypatch.setattr(module, "available_bytes", lambda: 2**20)
    first, memory, _, batches = forecast([plan])
    assert memory.endswith("; 1 MiB are free: too little")
    assert batches.startswith("  batches of 1,024 training nodes: "), "what fit does then"
    assert len(forecast([replace(plan, batch="full")])) == 3


def test_batches_that_are_asked_for_have_a_cost() -> None:
    source = load_source("digits", splits=2)
    *_, batches = forecast([make_plan(source, device="cpu", mu=(0.0, 0.5), batch=20)])
    assert re.fullmatch(
        r"  batches of 20 training nodes: [\d,]+ nodes, [\d,]+ edges each; .* ms for an epoch of a run on one core",
        batches,
    )
    *_, unknown = forecast([make_plan(source, device="cpu", mu=(0.0, 0.5), batch=20, model="gat")])
    assert unknown.endswith("; a time not known beforehand")


def test_mini_batches_have_no_forecast_of_full_ones() -> None:
    source = load_source("digits", splits=2)
    plan = make_plan(source, device="cpu", mu=(0.0, 0.5), batch=256)
    first, second = forecast([plan])
    assert first == "GCN on digits: 1,797 nodes, 12,618 edges, 4 runs of at most 100 epochs."
    assert second.startswith("  batches of 256 training nodes: ")
    assert forecast([replace(plan, device="cuda:0")])[1].endswith("on a GPU are not known beforehand")


def test_molecules_have_no_plan(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("smiles,y\nC,1\n")
    done = CliRunner().invoke(app, ["run", "--plan", "--molecules", str(tmp_path / "a.csv"), "--target", "y"])
    assert done.exit_code == 2
    assert "--plan" in done.stderr
