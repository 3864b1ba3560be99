"""The table of promises counts what tests have tried: each promise has tests, and each of them has run."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from building.promises import PROMISES, RECORD, note, promised, rows

ROOT = Path(__file__).parents[2]


def functions(file: str) -> set[str]:
    tree = ast.parse((ROOT / "tests" / file).read_text(encoding="utf-8"))
    names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    return {f"{file}::{name}" for name in names if name.startswith("test_")}


def test_every_test_of_a_promise_exists_and_was_counted() -> None:
    counted = json.loads(RECORD.read_text(encoding="utf-8"))
    named: set[str] = set()
    for promise in PROMISES:
        for test in promise.tests:
            mine = functions(test.partition("::")[0])
            assert test in mine or "::" not in test, test
            named |= {test} if "::" in test else mine
    assert {test for test in counted if promised(test)} <= named
    missing = named - counted.keys()
    assert not missing, "PROPREG_PROMISES=docs/promises.json make test slow"


def test_nothing_was_broken_and_each_promise_was_tried() -> None:
    for says, *_, inputs, broken in rows():
        assert int(inputs.replace(",", "")) > 0, says
        assert broken == "0", says


def test_counts_of_a_run_replace_those_before_and_leave_others(tmp_path: Path) -> None:
    first, second = "store/test_faults.py::a", "fuzz/test_fuzz.py::b"
    one, two = {"cases": 1, "inputs": 5, "broken": 0}, {"cases": 1, "inputs": 7, "broken": 1}
    note(tmp_path / "a.json", {first: one, second: one, "store/other.py::c": one})
    note(tmp_path / "a.json", {second: two})
    assert json.loads((tmp_path / "a.json").read_text()) == {first: one, second: two}
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


@pytest.mark.parametrize("processes", ["0", pytest.param("1", marks=pytest.mark.slow)])
def test_a_test_run_writes_what_it_tried(tmp_path: Path, processes: str) -> None:
    test = "store/test_export.py::test_a_small_file_that_becomes_large_is_refused"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", processes, f"tests/{test}"]
    environment = os.environ | {"PROPREG_PROMISES": str(tmp_path / "a.json")}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert json.loads((tmp_path / "a.json").read_text()) == {test: {"cases": 1, "inputs": 1, "broken": 0}}
