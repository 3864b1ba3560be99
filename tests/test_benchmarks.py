"""The benchmarks follow the code that they measure: what they patch is still there."""

import importlib
import sys
from pathlib import Path

import pytest


def test_the_parts_of_a_fit_that_are_timed_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(Path(__file__).parent.parent / "benchmarks"), *sys.path])
    for part, module, name in importlib.import_module("fixed_costs").PARTS:
        owner = importlib.import_module(module)
        for each in name.split("."):
            assert hasattr(owner, each), f"{part}: there is no {module}.{name}"
            owner = getattr(owner, each)
