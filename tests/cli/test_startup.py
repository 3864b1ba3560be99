"""What the light commands import: neither torch nor PyG nor SciPy, and the lightest not even NumPy or rich."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from propreg.cli.app import app
from report.samples import run_record

ROOT = Path(__file__).parent.parent.parent
HEAVY = {"torch", "torch_geometric", "scipy", "sklearn"}
LIGHT = {*HEAVY, "numpy", "rich", "matplotlib", "jinja2"}

# The command as a user starts it, and then what it has imported.
PROGRAM = """
import json, sys
sys.argv = ["propreg", *json.loads(sys.argv[1])]
from propreg.cli import main
try:
    main()
except SystemExit as end:
    code = end.code or 0
print("\\n" + json.dumps([code, sorted(sys.modules)]), file=sys.stderr)
"""


def imported(*arguments: str) -> tuple[int, set[str]]:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM, json.dumps(arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": ""},
    )
    code, modules = json.loads(done.stderr.splitlines()[-1])
    return code, {name.partition(".")[0] for name in modules}


COMMANDS = [str(info.name or info.callback.__name__) for info in app.registered_commands if info.callback]
GROUPS = [str(info.name) for info in app.registered_groups]


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["doctor"], ["doctor", "--json"]], ids=" ".join)
def test_the_lightest(arguments: list[str]) -> None:
    code, modules = imported(*arguments)
    assert code == 0
    assert not modules & LIGHT


@pytest.mark.parametrize("command", [*COMMANDS, *GROUPS])
def test_the_help_of_every_command(command: str) -> None:
    code, modules = imported(command, "--help")
    assert code == 0
    assert not modules & LIGHT


READING = [
    ["table", "table1"],
    ["status"],
    ["status", "table1"],
    ["figure", "table1", "-o", "{folder}/figure.svg"],
    ["report", "-o", "{folder}"],
    ["report", "{folder}", "-o", "{folder}/page"],
]


@pytest.mark.parametrize("arguments", READING, ids=" ".join)
def test_reading_records(arguments: list[str], tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(json.dumps(run_record()))
    code, modules = imported(*(part.format(folder=tmp_path) for part in arguments))
    assert code == 0
    assert not modules & HEAVY


def test_torch_is_seen_where_it_is_imported() -> None:
    """The test would notice: a command that trains does import it."""
    code, modules = imported("run", "--dataset", "cors")
    assert code == 1
    assert "torch" in modules
