"""Where output goes: the same bytes in every pipe, and nothing that breaks where a stream is closed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = [sys.executable, "-m", "propreg"]


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONIOENCODING", "PYTHONUTF8")}
    return subprocess.run([*COMMAND, *arguments], capture_output=True, env=kept | environment, check=False)


@pytest.mark.parametrize("environment", [{}, {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}])
def test_a_pipe_gets_utf_8(environment: dict[str, str]) -> None:
    done = run("run", "--help", **environment)
    assert done.returncode == 0
    assert "source → target" in done.stdout.decode("utf-8")


def test_who_names_an_encoding_gets_it() -> None:
    assert b"source ? target" in run("run", "--help", PYTHONIOENCODING="latin-1").stdout


@pytest.mark.skipif(sys.platform == "win32", reason="a shell closes the streams")
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_a_closed_stream_is_no_file_of_anybodys(tmp_path: Path, closed: str) -> None:
    """The next file to be opened would have its number, and what is printed would go there."""
    command = f'"{sys.executable}" -m propreg status digits-smoke --store "{tmp_path / "none.sqlite"}" {closed}'
    done = subprocess.run(["sh", "-c", command], capture_output=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert not list(tmp_path.iterdir())
