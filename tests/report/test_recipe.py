"""The recipe of a run: commands that the command line takes, code that runs, a table that compiles."""

import shlex

import pytest
from typer.main import get_command

from propreg.cli.app import app
from propreg.report.recipe import call, command, latex, loop, next_steps
from propreg.report.run_numbers import numbers_of
from propreg.report.run_record import read_run
from report.samples import run_record

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


def test_the_table_is_latex() -> None:
    text = latex(read_run(run_record(dataset="a_b & 100 %")), numbers_of(RUN))
    assert r"a\_b \& 100 \%" in text
    assert text.count(r"\\") == 3
    assert "GCN + P-reg & $85.10" in text
