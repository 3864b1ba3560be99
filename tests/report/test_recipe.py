"""The recipe of a run: commands that the command line takes, code that runs, a table that compiles."""

import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from propreg.cli.app import app
from propreg.report.recipe import call, command, latex, loop, next_steps
from propreg.report.run_numbers import numbers_of
from propreg.report.run_record import read_run
from report.samples import graphs_record, run_record

RUN = read_run(run_record())


def parsed(line: str) -> dict[str, object]:
    """The options of a command, as the command line reads them."""
    program, name, *arguments = shlex.split(line)
    assert program == "propreg"
    group = get_command(app)
    found = group.commands[name]  # type: ignore[attr-defined]
    options: dict[str, object] = found.make_context(name, arguments).params
    return options


def test_the_command_spells_out_every_choice() -> None:
    found = parsed(command(RUN, benchmark=False))
    assert (found["model"], found["method"], str(found["preset"])) == ("gcn", "preg", "paper")
    assert (found["mu"], found["splits"], found["seeds"], found["max_epochs"]) == ("0.1,0.5,1", 3, 2, 1000)
    assert str(found["scale"]) == "rows"
    assert found["dataset"] is None
    assert parsed(command(read_run(run_record(dataset="cora")), benchmark=True))["dataset"] == "cora"


@pytest.mark.parametrize("kind", ["helps", "inconclusive", "does not help", "harms", "not chosen"])
def test_every_next_step_is_a_command(kind: str) -> None:
    verdict = {"kind": kind, "sentence": "So it is.", "pair": None}
    steps = next_steps(read_run(run_record(verdict=verdict)), benchmark=False)
    assert steps
    for step in steps:
        assert step.why.endswith(".")
        parsed(step.command)


def test_the_code_runs() -> None:
    source = call(RUN, benchmark=False)
    compile(source, "recipe", "exec")
    assert "mu=[0.1, 0.5, 1]" in source
    assert "lr=0.01" in source
    on_digits = call(read_run(run_record(dataset="digits")), benchmark=True)
    assert on_digits.startswith("import propreg\nfrom propreg.data.splits import official_splits\n\n")
    names: dict[str, object] = {}
    exec(on_digits.replace("max_epochs=1000", "max_epochs=2"), names)
    assert list(names["result"].splits) == ["0", "1", "2"]  # type: ignore[attr-defined]
    assert "0.5 * regularizer(z, edge_index)" in loop(RUN)


MOLECULES = read_run(graphs_record())
LIST = read_run(graphs_record(settings={"hidden": 8, "max_epochs": 20}))


def test_a_target_with_a_comma_is_one_target() -> None:
    found = parsed(command(MOLECULES, benchmark=False))
    assert found["target"] == ["log S, mol/l", "mass"]
    assert (found["hidden"], found["splits"], found["max_epochs"], found["model"]) == (64, 3, 20, "gin")
    assert "['log S, mol/l', 'mass']" in call(MOLECULES, benchmark=False)


def test_the_code_for_a_table_of_molecules_trains_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("rdkit")
    monkeypatch.chdir(tmp_path)
    rings = ["C1CC1", "C1CCC1", "c1ccccc1", "c1ccoc1", "C1CCCC1", "C1CCCCC1", "c1ccncc1", "C1CCOC1", "C1CCNC1", "CO"]
    rows = [f"{'C' * n}{ring},{n},{n % 3}" for ring in rings for n in range(1, 4)]
    Path("mine.csv").write_text("\n".join(['smiles,"log S, mol/l",mass', *rows]))
    short = graphs_record()["settings"] | {"max_epochs": 1, "hidden": 4}
    for splits in (["random-0", "random-1", "random-2"], ["scaffold"]):
        runs = {name: [mu[: len(splits)] for mu in graphs_record()[name]] for name in ("val", "test", "epochs")}
        run = read_run(graphs_record(splits=splits, settings=short, **runs))
        names: dict[str, Any] = {}
        exec(call(run, benchmark=False), names)
        result = names["result"]
        assert (list(result.splits), result.mus, result.test.shape[2]) == (splits, run.mus, run.seeds)
        assert result.model.architecture.hidden == 4


@pytest.mark.parametrize("kind", ["helps", "inconclusive", "does not help"])
def test_next_steps_of_a_list_of_graphs_are_code(kind: str) -> None:
    verdict = {"kind": kind, "sentence": "So it is.", "pair": None}
    run = read_run(graphs_record(settings=LIST.settings, verdict=verdict))
    assert command(run, benchmark=False) == ""
    steps = next_steps(run, benchmark=False)
    assert len(steps) == 2
    for step in steps:
        compile(step.command, "step", "exec")
        assert step.command != call(run, benchmark=False)
    molecules = next_steps(read_run(graphs_record(verdict=verdict)), benchmark=False)
    assert all(parsed(step.command) for step in molecules)


def test_the_table_is_latex() -> None:
    text = latex(read_run(run_record(dataset="a_b & 100 %")), numbers_of(RUN))
    assert r"a\_b \& 100 \%" in text
    assert text.count(r"\\") == 3
    assert "GCN + P-reg & $85.10" in text


def test_folds_several_models_and_mini_batches_are_in_both_recipes() -> None:
    settings = {"lr": 0.02, "test": "cv", "models": "gcn,mlp", "hidden": 32, "batch": 256}
    run = read_run(run_record(dataset="digits", settings=settings))
    typed = command(run, benchmark=True)
    assert "--model gcn,mlp" in typed
    assert "--test cv" in typed
    assert "--batch 256" in typed
    code = call(run, benchmark=True)
    sized = "propreg.engine.Model.of('gcn', hidden=32), propreg.engine.Model.of('mlp', hidden=32)"
    assert f"models=[{sized}]" in code
    assert "test='cv', splits=3" in code
    assert "batch=256" in code
    assert "official_splits" not in code
    compile(code, "recipe", "exec")


def test_how_the_reader_s_own_graph_was_read_is_in_both_recipes() -> None:
    read = {"columns": "label=the species,id=name", "directed": True, "train_per_class": 10, "val_per_class": 5}
    run = read_run(run_record(splits=["random-0", "random-1", "random-2"], settings={"lr": 0.02, **read}))
    typed = parsed(command(run, benchmark=False))
    assert {name: typed[name] for name in read} == read
    code = call(run, benchmark=False)
    columns = "columns={'label': 'the species', 'id': 'name'}"
    assert f"propreg.load_graph('my/folder', directed=True, {columns})" in code
    assert "train_per_class=10, val_per_class=5, splits=3)" in code
    compile(code, "recipe", "exec")
