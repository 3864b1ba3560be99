"""A real Ctrl-C in the middle of a fit."""

import signal
import subprocess
import sys

import pytest

SCRIPT = """
import signal, threading, torch
signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever started this may ignore it
from communities import communities
from propreg import console
from propreg.fitting.fit import fit
console.EVERY = 0.0
torch.set_num_threads(2)
result = fit(communities(), mu=0.5, splits=50, seeds=50, train_per_class=5, val_per_class=5, progress="lines")
print(result.finished, 0 < len(result.runs) < 5000, threading.active_count(), torch.get_num_threads())
print(result.summary().splitlines()[0])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for one process")
def test_ctrl_c_returns_what_is_finished() -> None:
    path = f"import sys; sys.path[:0] = {sys.path!r}"
    command = [sys.executable, "-c", path + SCRIPT]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        assert child.stderr is not None
        assert any(" of 5,000 runs, " in line for line in iter(child.stderr.readline, "")), "one is finished"
        child.send_signal(signal.SIGINT)
        out, error = child.communicate(timeout=60)
    assert child.returncode == 0, error
    state, said = out.splitlines()
    assert state == "False True 1 2"
    assert said.startswith("Interrupted: ")
    assert said.endswith(" of 5000 trainings are finished.")
