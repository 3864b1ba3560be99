"""``propreg table`` on a terminal: as wide as that; in a pipe: the same bytes whatever the terminal."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios

import pytest

from propreg.store.export import write_export
from propreg.store.store import Store
from propreg.study.execute.runner import reproduce
from propreg.study.spec.experiment import experiment_names
from study.sweeping import MadeUp, batches


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The table of made-up runs."""
    folder = tmp_path_factory.mktemp("results")
    with Store(folder / "store.sqlite") as store:
        reproduce(batches(), store, MadeUp)
        write_export(folder / "runs.jsonl.gz", store.rows())
    return [sys.executable, "-m", "propreg", "table", "digits-smoke", "--results", str(folder)]


def on_a_terminal(command: list[str], width: int) -> str:
    """What a terminal of this width gets to show."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    process = subprocess.Popen(command, stdout=its, stderr=its, stdin=its, env=environment)
    os.close(its)
    found = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # on Linux, how the other side's end is told
            piece = b""
        if not piece:
            break
        found += piece
    os.close(ours)
    assert process.wait() == 0, found.decode()
    return found.decode().replace("\r\n", "\n")


def test_a_terminal_gets_datasets_side_by_side_with_the_best_in_bold(command: list[str]) -> None:
    shown = on_a_terminal(command, 100)
    piped = subprocess.run(command, capture_output=True, check=True).stdout.decode()
    bold = re.findall(r"\x1b\[1m(.*?)\x1b\[0m", shown)
    models = [line for line in piped.splitlines()[3:] if line and not line.startswith(" ")]
    assert len(bold) == models.index(next(line for line in models if line.startswith("Mean")))
    assert "\x1b" not in piped
    assert "best on test" not in piped.partition("\nMean ±")[0]
    narrow = on_a_terminal(command, 50)
    assert max(len(re.sub(r"\x1b\[\d+m", "", line)) for line in narrow.splitlines()) <= 50
    assert re.findall(r"\x1b\[1m(.*?)\x1b\[0m", narrow) == bold


def test_without_a_name_all_tables_are_listed(command: list[str]) -> None:
    listed = subprocess.run([*command[:4], *command[5:]], capture_output=True, check=True).stdout.decode().splitlines()
    assert [line.split()[0] for line in listed] == experiment_names()
    assert next(line for line in listed if line.startswith("digits-smoke ")).split()[1:5] == [
        "200",
        "of",
        "200",
        "runs",
    ]


def test_a_narrow_terminal_gets_narrow_lines_and_a_pipe_all_columns(command: list[str]) -> None:
    command = [*command, "--long"]
    narrow = on_a_terminal(command, 60)
    assert max(map(len, narrow.splitlines())) <= 60
    assert "Left out to fit 60 columns: " in narrow
    environment = {**os.environ, "COLUMNS": "60"}
    piped = subprocess.run(command, capture_output=True, env=environment, check=True).stdout.decode()
    assert max(map(len, piped.splitlines())) > 100
    tables = piped.partition("\nMean ±")[0]
    assert on_a_terminal(command, 200).partition("\nMean ±")[0] == tables
