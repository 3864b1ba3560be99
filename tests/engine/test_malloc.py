"""What is freed is kept: memory that comes and goes is taken from the system once."""

import platform
import subprocess
import sys

import pytest

COUNT = """
import resource, torch
from propreg.engine.training.memory import warm_up_malloc
warm_up_malloc()
def faults(number):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    some = [torch.ones(number) for _ in range(8)]
    del some
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
print(sum(sum([faults(number) for _ in range(20)][3:]) for number in (700_000, 300_000, 50_000)))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library keeps memory in its own way")
def test_pages_are_taken_once() -> None:
    """Of 140,000 pages in all: without the call half of them and more are taken anew, in every other process or so."""
    done = subprocess.run([sys.executable, "-c", COUNT], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 5_000
