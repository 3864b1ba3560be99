"""Records that are not what they should be: one sentence that names the field."""

from typing import Any

import pytest

from propreg.data.errors import DataError
from propreg.report.run_html import run_page
from propreg.report.run_record import read_run
from report.samples import run_record

OWN = {"confusion", "agreement", "map"}
"""A run on whole graphs has none of them."""


@pytest.mark.parametrize("name", sorted(set(run_record()) - OWN))
def test_a_missing_field_is_named(name: str) -> None:
    record = run_record()
    del record[name]
    with pytest.raises(DataError, match="version 1" if name in ("format", "version") else rf"record's {name} should"):
        read_run(record)


def test_without_its_nodes_a_record_has_a_page() -> None:
    some = {name: value for name, value in run_record().items() if name not in OWN}
    assert read_run(some).map is None
    page = run_page(some)
    assert "on this graph" in page
    assert "What it did to the nodes" not in page


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("version", 2),
        ("mus", []),
        ("mus", [0.1, 0.5, 0.7, 1.0]),
        ("mus", [0.0, 0.5, 0.1, 1.0]),
        ("mus", [0.0, 0.1, 0.5, float("nan")]),
        ("mus", "0"),
        ("mu", 0.7),
        ("mu", True),
        ("seeds", 3),
        ("seeds", 0),
        ("splits", []),
        ("splits", ["0"]),
        ("splits", [0, 1, 2]),
        ("val", 0.5),
        ("val", [[[0.5]]]),
        ("test", [[["a", "b"]] * 3] * 4),
        ("test", [[[1.5, 0.5]] * 3] * 4),
        ("test", [[[-0.1, 0.5]] * 3] * 4),
        ("test", [[[0.1, float("inf")]] * 3] * 4),
        ("epochs", [[[-1, 5]] * 3] * 4),
        ("dataset", 3),
        ("dataset", None),
        ("targets", 3),
        ("targets", "toxic"),
        ("targets", [3]),
        ("targets", [{"name": "a", "labels": -1}]),
        ("targets", [{"name": 3, "labels": 1}]),
        ("targets", [{"name": "a", "labels": 1, "share": "half"}]),
        ("preview", []),
        ("preview", {"split": "0", "graph": ["a"], "targets": ["t"], "given": [["1"]], "predicted": []}),
        ("preview", {"split": "0", "graph": ["a"], "targets": ["t"], "given": [["1", "2"]], "predicted": [["1"]]}),
        ("preview", {"split": "0", "graph": ["a"], "targets": ["t"], "given": [[1]], "predicted": [["1"]]}),
        ("graph", []),
        ("graph", {"nodes": -1}),
        ("graph", {"nodes": "many"}),
        ("seconds", float("inf")),
        ("classes", "abc"),
        ("notes", "one"),
        ("notes", [1]),
        ("notes", ["x"] * 101),
        ("histories", []),
        ("histories", {"plain": 3}),
        ("histories", {"plain": [3]}),
        ("histories", {"plain": [{"epoch": [1], "loss": [1], "val": [], "test": []}]}),
        ("histories", {"plain": [{"loss": [1], "val": [1], "test": [1], "epoch": [None]}]}),
        ("confusion", {"plain": [[1]]}),
        ("confusion", {"plain": [[1]], "chosen": [[1]]}),
        ("agreement", [1]),
        ("agreement", {"plain": 1.5}),
        ("map", [1]),
        ("map", {"node": ["a"]}),
        ("map", run_record()["map"] | {"x": [0.0]}),
        ("map", run_record()["map"] | {"state": [0, 1, 2, 4, 0]}),
        ("map", run_record()["map"] | {"label": [0, 1, 3, 0, 0]}),
        ("map", run_record()["map"] | {"x": [0.0, 1.0, 2.0, 3.0, float("nan")]}),
        ("map", run_record()["map"] | {"node": ["a"] * 10_001}),
        ("settings", [1]),
        ("settings", {str(i): i for i in range(51)}),
        ("versions", "2.13"),
        ("date", 3),
        ("confusion", [1]),
    ],
)
def test_a_wrong_field_is_refused_in_one_sentence(name: str, value: Any) -> None:
    with pytest.raises(DataError) as caught:
        read_run(run_record() | {name: value})
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200


def test_unknown_values_are_nan_and_accuracies_are_in_per_cent() -> None:
    record = run_record()
    record["test"][1][0][0] = None
    run = read_run(record)
    assert run.test[0, 0, 0] == pytest.approx(80.0)
    assert run.test[1, 0, 0] != run.test[1, 0, 0]


def test_a_loss_that_became_nan_is_unknown() -> None:
    curve = {"epoch": [1, 2], "loss": [1.0, float("nan")], "val": [0.1, None], "test": [0.1, float("inf")]}
    (history,) = read_run(run_record(histories={"plain": [curve], "chosen": []})).histories["plain"]
    assert (history.loss, history.val, history.test) == ((1.0, None), (0.1, None), (0.1, None))
    assert history.epoch == (1, 2)


def test_names_are_clipped_and_cleaned() -> None:
    run = read_run(run_record(dataset="a\x00" + "x" * 10_000, classes=["", " ", "\ud800"]))
    assert run.dataset.startswith("a\ufffdx")
    assert len(run.dataset) == 120
    assert run.classes == ("(no name)", "(no name)", "\ufffd")
