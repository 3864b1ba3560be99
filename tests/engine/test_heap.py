"""What is freed is kept: memory that comes and goes is taken from the system once."""

import platform
import subprocess
import sys

import pytest

COUNT = """
import resource, sys, torch
from propreg.engine.heap import keep_freed_memory
if sys.argv[1] == "kept":
    keep_freed_memory()
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    some = [torch.ones(700_000) for _ in range(8)]
    del some
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
print(sum([faults() for _ in range(20)][3:]))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library keeps memory in its own way")
def test_pages_are_taken_once() -> None:
    kept, given_back = (
        int(subprocess.run([sys.executable, "-c", COUNT, how], capture_output=True, text=True, check=True).stdout)
        for how in ("kept", "given back")
    )
    assert given_back > 10_000
    assert kept < given_back / 10
