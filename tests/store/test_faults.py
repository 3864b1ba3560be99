"""Each call that changes a store, an export, a run's folder or kept runs fails once, and each point is killed once."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from counting import Inputs
from samples import COMPILER
from store_faults import KINDS, SCENARIOS

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="calls are intercepted and processes forked as Linux does it"),
    pytest.mark.skipif(COMPILER is None, reason="what intercepts the calls is compiled"),
]
FEWEST = 25
PATIENCE = 600.0


@pytest.fixture(scope="module")
def interceptor(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library that is preloaded."""
    library = tmp_path_factory.mktemp("faults") / "faults.so"
    source = Path(__file__).with_name("faults.c")
    command = [str(COMPILER), "-x", "c", "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl"]
    subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE)
    return library


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_fault_leaves_the_old_or_the_new_state(
    interceptor: Path, name: str, kind: str, record_property: Callable[[str, object], None], inputs: Inputs
) -> None:
    done = subprocess.run(
        [sys.executable, Path(__file__).parents[1] / "store_faults.py", name, kind],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
        env=os.environ | {"LD_PRELOAD": str(interceptor), "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    ends = ", ".join(f"{number} {end}" for end, number in found["ends"].items() if number)
    counted = f"{name}, a call {kind}: {found['points']} points ({ends}), {len(found['broken'])} broken"
    record_property("counted", counted)
    inputs(found["points"])
    assert found["broken"] == []
    assert found["points"] >= FEWEST, "most calls were not intercepted"
    assert sum(found["ends"].values()) == found["points"]
