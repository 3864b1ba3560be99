"""How commands end: exit codes, one sentence per error, tracebacks only when asked for, quiet pipes."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from propreg._lazy import MissingPackageError
from propreg.cli.app import app as propreg_app
from propreg.cli.guard import GuardedGroup, sentence
from propreg.data.errors import DataError

FOREVER = """
import typer
from propreg.cli.guard import GuardedGroup

app = typer.Typer(cls=GuardedGroup)


@app.callback()
def options(debug: bool = False) -> None: ...


@app.command()
def lines(count: int) -> None:
    for number in range(count):
        print(number)


app()
"""


def app_that(raises: BaseException) -> typer.Typer:
    app = typer.Typer(cls=GuardedGroup, rich_markup_mode=None)

    @app.callback()
    def options(debug: bool = typer.Option(False, "--debug", envvar="PROPREG_DEBUG")) -> None:
        """The global options."""

    @app.command()
    def fail(number: int = 0) -> None:
        if number == 0:
            raise raises

    return app


@pytest.mark.parametrize(
    ("error", "code", "says"),
    [
        (DataError("a.npz: is damaged: copy it again."), 1, "a.npz: is damaged: copy it again.\n"),
        (MissingPackageError("run pip install x."), 1, "run pip install x.\n"),
        (ImportError("cannot import name 'x'"), 1, "propreg failed (ImportError: cannot import name 'x')"),
        (ValueError("too many values to unpack"), 1, "propreg failed (ValueError: too many values to unpack)"),
        (TypeError("unhashable type: 'list'"), 1, "propreg failed (TypeError: unhashable type: 'list')"),
        (OSError(28, "No space left on device", "/tmp/x"), 1, "/tmp/x: No space left on device.\n"),
        (MemoryError(), 1, "There is not enough memory"),
        (KeyError("k"), 1, "propreg failed (KeyError: 'k'): run it again with --debug to see where"),
        (RuntimeError("two\nlines"), 1, "propreg failed (RuntimeError: two lines)"),
        (KeyboardInterrupt(), 130, "Interrupted.\n"),
        (typer.Exit(3), 3, ""),
    ],
)
def test_every_end_has_its_code_and_at_most_one_line(error: BaseException, code: int, says: str) -> None:
    done = CliRunner().invoke(app_that(error), ["fail"])
    assert done.exit_code == code
    assert done.stderr.startswith(says)
    assert done.stderr.count("\n") <= 1
    assert done.stdout == ""


def _traced(arguments: list[str], environment: dict[str, str] | None = None) -> str:
    done = CliRunner().invoke(app_that(DataError("it broke.")), arguments, env=environment)
    assert done.exit_code == 1
    return done.stderr


def test_a_traceback_only_when_it_is_asked_for() -> None:
    assert "Traceback" not in _traced(["fail"])
    assert "Traceback" not in _traced(["fail"], {"PROPREG_DEBUG": "0"})
    for arguments, environment in (
        (["--debug", "fail"], None),
        (["fail", "--debug"], None),
        (["fail"], {"PROPREG_DEBUG": "1"}),
    ):
        text = _traced(arguments, environment)
        assert "Traceback" in text
        assert "it broke." in text
        assert "raise raises" in text


def test_debug_shows_what_a_command_turned_into_a_sentence() -> None:
    done = CliRunner().invoke(propreg_app, ["--debug", "table", "tabel1"])
    assert done.exit_code == 1
    assert "StudyError" in done.stderr
    assert "Traceback" in done.stderr
    assert "Traceback" not in CliRunner().invoke(propreg_app, ["table", "tabel1"]).stderr


def test_debug_after_two_dashes_is_an_argument() -> None:
    done = CliRunner().invoke(propreg_app, ["data", "info", "--", "--debug"])
    assert done.exit_code == 1
    assert "There is no dataset '--debug'" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [["rnu"], ["run", "--modle", "gcn"], ["run", "--seeds", "0"], ["run", "--model", "gnc"], ["run", "--mu", "much"]],
)
def test_a_wrong_command_line_is_2(arguments: list[str]) -> None:
    done = CliRunner().invoke(propreg_app, arguments)
    assert done.exit_code == 2
    assert "Error" in done.stderr
    assert "Traceback" not in done.output


def test_the_help_names_the_exit_codes() -> None:
    text = CliRunner().invoke(propreg_app, ["--help"]).stdout
    for code in ("0 success", "1 failure", "2 wrong", "3 runs are missing", "130 interrupted", "141"):
        assert code in " ".join(text.split())


def test_a_reader_that_stops_reading_is_no_error(tmp_path: Path) -> None:
    script = tmp_path / "forever.py"
    script.write_text(FOREVER)
    for count in ("10", "1000000"):  # one that fits into the pipe, and one that is cut off while it writes
        arguments = [sys.executable, str(script), "lines", count]
        with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as command:
            assert command.stdout is not None
            assert command.stderr is not None
            if count != "10":
                command.stdout.readline()
            command.stdout.close()
            said = command.stderr.read()
        assert command.returncode == 141
        assert said == b""


def test_a_terminal_that_cannot_show_a_sign_gets_another() -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    done = subprocess.run(
        [sys.executable, "-m", "propreg", "run", "--help"], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "source ? target" in done.stdout


def test_the_version() -> None:
    import propreg

    done = CliRunner().invoke(propreg_app, ["--version"])
    assert (done.exit_code, done.stdout) == (0, f"propreg {propreg.__version__}\n")


class OutOfMemoryError(RuntimeError):
    """As torch calls it."""


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to …"), "There is not enough memory"),
        (OutOfMemoryError("CUDA out of memory. Tried …"), "There is not enough memory"),
        (OSError("no errno"), "propreg failed (OSError: no errno)"),
        (ValueError(""), "propreg failed (ValueError)"),
    ],
)
def test_other_sentences(error: Any, says: str) -> None:
    assert sentence(error).startswith(says)
