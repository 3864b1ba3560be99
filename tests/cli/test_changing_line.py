"""A terminal that cannot write over a line gets whole lines, without control codes."""

import os
import pty
import select
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = ["reproduce", "digits-smoke", "--only", "model=mlp-16,method=plain", "--device", "cpu"]


@pytest.mark.parametrize(("term", "codes"), [("dumb", False), ("xterm", True)])
def test_progress_of_a_study(term: str, codes: bool, tmp_path: Path) -> None:
    ours, its = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "propreg", *COMMAND, "--store", str(tmp_path / "store.sqlite")],
        stdout=subprocess.DEVNULL,
        stderr=its,
        env={**os.environ, "TERM": term, "NO_COLOR": "1"},
    )
    os.close(its)
    said = b""
    while select.select([ours], [], [], 120)[0]:
        try:
            part = os.read(ours, 4096)
        except OSError:  # Linux's way to say that the other end is closed
            break
        if not part:
            break
        said += part
    os.close(ours)
    assert process.wait(60) == 0
    assert b"20 of 20 runs" in said
    assert (b"\x1b" in said) is codes
