"""One thread per test process: with two processes on two cores, torch's threads would wait for each other."""

import os

for _name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")  # before torch is imported, and for the processes that tests start
