"""Every file in examples/ runs, and every Python block of the README does."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_example_runs_and_is_short(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 40
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning:propreg", path.name],
        cwd=path.parent,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_there_are_examples() -> None:
    assert EXAMPLES


def test_the_blocks_of_the_readme_run_in_order() -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert blocks
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
