"""One thread per test process: with two processes on two cores, torch's threads would wait for each other.

What tests count, such as the faults that they met, is printed at the end; if ``PROPREG_PROMISES`` names a file, the
inputs of the tests behind a promise are written to it, see :mod:`building.promises`.
"""

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from counting import Inputs

for _name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")  # before torch is imported, and for the processes that tests start


@pytest.fixture
def inputs(record_property: Any) -> Inputs:
    """Takes how many inputs a test has tried."""

    def count(number: int) -> None:
        record_property("inputs", number)

    return count


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print what tests recorded as ``counted``, also those of other processes; write the counts of promises."""
    reports = [each for how in ("passed", "failed") for each in terminalreporter.stats.get(how, ())]
    counted = [value for each in reports for name, value in each.user_properties if name == "counted"]
    for line in counted:
        terminalreporter.write_line(line)
    if file := os.environ.get("PROPREG_PROMISES"):
        _note(Path(file), reports)


def _note(file: Path, reports: list[Any]) -> None:
    from building.promises import note, promised

    found: dict[str, Counter[str]] = {}
    for each in reports:
        test = each.nodeid.removeprefix("tests/").partition("[")[0]
        if promised(test):
            tried = [value for name, value in each.user_properties if name == "inputs"]
            found.setdefault(test, Counter(cases=0, inputs=0, broken=0)).update(
                cases=1, inputs=sum(tried) if tried else 1, broken=int(each.failed)
            )
    note(file, {test: dict(counts) for test, counts in found.items()})
