"""One thread per test process: with two processes on two cores, torch's threads would wait for each other.

What tests count, such as the faults that they met, is printed at the end.
"""

import os
from typing import Any

for _name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")  # before torch is imported, and for the processes that tests start


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print what tests recorded as ``counted``, also those of other processes."""
    reports = [each for how in ("passed", "failed") for each in terminalreporter.stats.get(how, ())]
    counted = [value for each in reports for name, value in each.user_properties if name == "counted"]
    for line in counted:
        terminalreporter.write_line(line)
