"""The kernels against their plain twins: on a GPU for real, elsewhere through Triton's interpreter.

The interpreter has to be asked for before Triton is imported, and would then be used for every kernel of the process:
the checks get processes of their own, two of them, so that two workers share the work. Kernels that are as the last GPU
run tested them need no interpreter in every ``make test``: the checks are then slow ones, which run before a landing.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from engine.kernels import stamp
from propreg.engine import kernels

TESTS = Path(__file__).parents[2]
CHECKS = sorted(TESTS.glob("engine/kernels/check_*.py"))
MOLECULES = sorted(TESTS.glob("molecules/check_*.py"))
CHANGED = bool(stamp.staleness(stamp.STAMP, stamp.sources()))


NEEDS_TRITON = pytest.mark.skipif(
    not kernels.installed(), reason="Triton is not installed: there are no kernels to compare"
)


@NEEDS_TRITON
@pytest.mark.parametrize("half", [pytest.param(half, marks=() if CHANGED else pytest.mark.slow) for half in (0, 1)])
def test_twins(half: int) -> None:
    passes(CHECKS[half::2], "not slow")


@NEEDS_TRITON
@pytest.mark.slow
def test_twins_of_the_molecules() -> None:
    passes(MOLECULES, "not slow")


@NEEDS_TRITON
@pytest.mark.slow
def test_twins_that_take_long() -> None:
    passes(CHECKS, "slow")


def passes(checks: list[Path], marked: str) -> None:
    """These checks pass, in a process of their own."""
    paths = [str(path) for path in checks]
    interpreted = {} if torch.cuda.is_available() else {"TRITON_INTERPRET": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", marked, *paths],
        cwd=Path(__file__).parents[3],
        env={**os.environ, **interpreted},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_cpu_never_uses_them() -> None:
    if os.environ.get("TRITON_INTERPRET") != "1":
        assert not kernels.usable(torch.zeros(3))


def test_without_triton_the_modules_still_import() -> None:
    code = (
        "import sys, pkgutil, importlib; sys.modules['triton'] = None\n"
        "from propreg.engine import kernels\n"
        "for m in pkgutil.iter_modules(kernels.__path__): importlib.import_module(f'{kernels.__name__}.{m.name}')\n"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
