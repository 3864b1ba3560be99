"""Completion in bash, as the shell asks for it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from propreg.data.benchmarks.catalog import MOLECULE_SETS, NODE_SETS
from propreg.engine.models import MODELS
from propreg.study.spec.experiment import experiment_names

PROGRAM = "import sys; sys.argv[0] = 'propreg'; from propreg.cli import main; main()"


def completed(line: str) -> list[str]:
    """What is offered after this line."""
    words = line.split(" ")
    environment = {
        **os.environ,
        "_PROPREG_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
    }
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=environment, check=False)
    return done.stdout.split()


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("propreg run --dataset c", ["cora", "citeseer", "cs", "computers", "chameleon-filtered"]),
        ("propreg run --dataset ", list(NODE_SETS)),
        ("propreg run --model ", list(MODELS)),
        ("propreg data info ogbg-mol", list(MOLECULE_SETS)),
        ("propreg data fetch cora pho", ["photo"]),
        ("propreg table ", experiment_names()),
        ("propreg reproduce table", [name for name in experiment_names() if name.startswith("table")]),
        ("propreg status digits", ["digits-smoke"]),
        ("propreg doc", ["doctor"]),
        ("propreg run --out", ["--output"]),
    ],
)
def test_names_are_offered(line: str, offered: list[str]) -> None:
    assert completed(line) == offered


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_the_installed_script_works_in_bash(tmp_path: Path) -> None:
    """``--install-completion`` writes to a home of its own; bash then completes through it."""
    environment = {**os.environ, "HOME": str(tmp_path)}
    install = "import sys; sys.argv = ['propreg', '--install-completion', 'bash']; from propreg.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", install], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (script,) = (path for path in tmp_path.rglob("*propreg*") if path.is_file())
    assert str(script) in (tmp_path / ".bashrc").read_text()
    command = tmp_path / "propreg"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m propreg "$@"\n')
    command.chmod(0o755)
    ask = f"""
    source "{script}"
    PATH="{tmp_path}:$PATH"
    COMP_WORDS=(propreg run --dataset pu); COMP_CWORD=3
    "$(complete -p propreg | sed 's/.*-F \\([^ ]*\\).*/\\1/')" propreg
    echo "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, check=False)
    assert done.stdout == "pubmed\n", done.stderr
