"""The benchmarks follow the code that they measure: what they patch is still there."""

import importlib
import sys
from pathlib import Path

import pytest

from propreg.study.execute.trainer import Trainer
from propreg.study.spec.experiment import read_experiment
from propreg.study.tables.costs import EPOCH, EPOCH_IN_BATCH, case_of


def test_the_parts_of_a_fit_that_are_timed_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(Path(__file__).parent.parent / "benchmarks"), *sys.path])
    for part, module, name in importlib.import_module("fixed_costs").PARTS:
        owner = importlib.import_module(module)
        for each in name.split("."):
            assert hasattr(owner, each), f"{part}: there is no {module}.{name}"
            owner = getattr(owner, each)


def test_the_costs_of_a_training_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(Path(__file__).parent.parent / "benchmarks"), *sys.path])
    costs = importlib.import_module("costs")
    text = "[[parts]]\ndatasets = ['digits']\nmodels = ['appnp']\nmethods = ['preg-paper']\nsplits = 1\nseeds = 1\n"
    (line,) = read_experiment("costs", text).lines
    found = list(costs.measure(line, Trainer("cpu"), costs.QUICK))
    assert [(each.case, each.metric) for each in found] == [(case_of(line), EPOCH), (case_of(line), EPOCH_IN_BATCH)]
    assert all(each.value > 0 for each in found)
