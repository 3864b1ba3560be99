"""``propreg table`` on a terminal: as wide as that; in a pipe: the same bytes whatever the terminal."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios

import pytest

from propreg.store.export import write_export
from propreg.store.store import Store
from propreg.study.execute.runner import reproduce
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


def test_a_narrow_terminal_gets_narrow_lines_and_a_pipe_all_columns(command: list[str]) -> None:
    narrow = on_a_terminal(command, 60)
    assert max(map(len, narrow.splitlines())) <= 60
    assert "Left out to fit 60 columns: " in narrow
    environment = {**os.environ, "COLUMNS": "60"}
    piped = subprocess.run(command, capture_output=True, env=environment, check=True).stdout.decode()
    assert max(map(len, piped.splitlines())) > 100
    tables = piped.partition("\nMean ±")[0]
    assert on_a_terminal(command, 200).partition("\nMean ±")[0] == tables
