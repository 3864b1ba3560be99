"""Sparse loading of the largest graph stays small; dense it would take 1.2 GB."""

import subprocess
import sys

import pytest

CODE = """
import re
import propreg.data.{module} as module
def most():  # not ru_maxrss, which a child inherits from the process that started it
    return int(re.search(r"VmHWM:\\s*(\\d+)", open("/proc/self/status").read())[1]) / 1024
{warm}
before = most()
data = module.{load}
print(most() - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the peak of a process is read from Linux's /proc")
@pytest.mark.usefixtures("benchmarks")
@pytest.mark.parametrize(
    ("module", "warm", "load"),
    [
        ("benchmarks.load", "", "load_node_graph('physics', split=0, normalize_features=True)"),
        ("benchmarks.load", "module.load_dataset('digits')", "load_dataset('physics', features='sparse')"),
    ],
)  # fmt: skip
def test_sparse_physics_takes_less_than_100_mb(module: str, warm: str, load: str) -> None:
    code = CODE.format(module=module, warm=warm, load=load)
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    assert 0 < float(done.stdout) < 100
