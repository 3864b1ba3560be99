"""An architecture and a regularizer of one file each, from the engine to fit, run, a saved file and a study's table."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import propreg
from communities import communities
from engine.graphs import problem
from propreg.data.own.pyg import to_data
from propreg.data.splits import random_split
from propreg.engine import Method, Model, Options, Protocol, Replica, train_all
from propreg.engine.models import MODELS
from propreg.engine.ops.random import stream_key
from propreg.engine.regularizers import REGULARIZERS
from propreg.fitting.checkpoint import read_settings
from propreg.fitting.pyg_modules import untrained_module
from propreg.names import method_title, model_title
from propreg.report import run_figures, run_page
from propreg.running import text
from propreg.running.compare import compare
from propreg.running.plan import Source, make_plan
from propreg.store.batch import cost_of
from propreg.store.results import load_results
from propreg.store.run import Cell, Run
from propreg.store.store import Store
from propreg.study.execute.runner import reproduce
from propreg.study.execute.trainer import Trainer
from propreg.study.spec.batches import cut
from propreg.study.spec.experiment import read_experiment
from propreg.study.tables.rows import table_rows
from propreg.study.tables.text import to_text
from toys.hops import HOPS, Hops
from toys.length import LENGTH, Length

GRAPH = communities()
PROTOCOL = Protocol(max_epochs=8)
FIT: dict[str, Any] = {"splits": 1, "seeds": 2, "train_per_class": 5, "val_per_class": 5, "max_epochs": 10}
FIT |= {"progress": False, "device": "cpu"}


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both toys, as a line in each table would have them."""
    monkeypatch.setitem(MODELS, "hops", HOPS)
    monkeypatch.setitem(REGULARIZERS, "length", LENGTH)


def test_the_engine_trains_them() -> None:
    """The loss of the first epoch is that of the formulas."""
    found, replica = problem(), Replica(split="a", strength=0.3, dropout=0.0)
    options = Options(keep_history=True, keep_weights=True)
    ((_, result),) = train_all(found, Hops(hops=2), Length(power=1.0), [replica], PROTOCOL, options)
    graph, p = found.graph, found.network(Hops(hops=2)).initial(found, Hops(hops=2), [replica])
    spread = propreg.Propagation(torch.from_numpy(graph.edge_index), 60, norm="sym", add_self_loops=True)
    x = torch.from_numpy(graph.x.to_dense() if not isinstance(graph.x, np.ndarray) else graph.x).double()
    z = spread(spread(x @ p["w0"][0].detach()))
    train = torch.from_numpy(found.splits["a"].train)
    entropy = torch.nn.functional.cross_entropy(z[train], found.y[train])
    expected = entropy + 0.3 * (z.norm(dim=1) + 1e-6).mean()
    assert result.history["loss"][0] == pytest.approx(float(expected), abs=1e-9)
    assert result.history["loss"][-1] < result.history["loss"][0]


@pytest.mark.parametrize(
    ("model", "method", "says"),
    [
        (Hops(hops=0), Method(), "hops must be a whole number of at least 1, got 0"),
        (Hops(heads=3), Method(), "heads does not apply to hops, got 3"),
        (Hops(), Length(phi="kl"), "phi does not apply to length, got 'kl'"),
        (Model("hop"), Method(), "model must be one of .*'hops', got 'hop'. Did you mean 'hops'"),
    ],
)
def test_their_settings_are_checked(model: Model, method: Method, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        list(train_all(problem(), model, method, [Replica(split="a")], PROTOCOL))


def test_a_name_has_settings_of_one_class() -> None:
    assert Model.of("hops", hops=4) == Hops(hops=4)
    with pytest.raises(ValueError, match="'hops' has settings of class Hops, got Model: use Hops"):
        Model("hops")
    with pytest.raises(ValueError, match="'gcn' has settings of class Model, got Hops: use Model"):
        replace(Hops(), name="gcn")


def test_fit_save_and_load(tmp_path: Path) -> None:
    result = propreg.fit(GRAPH, "hops", "auto", method="length", preset="reference", **FIT)
    assert result.mus == (0.0, 0.01, 0.1)
    assert (result.architecture, result.dropout) == (Hops(hops=3), 0.0)
    assert "logit length 0." in result.summary()
    data = to_data(GRAPH)
    predicted = result.model(data.x, data.edge_index).argmax(-1).numpy()
    assert (predicted == result.predicted[result.mu]).all(-1).any(), "the module is one of the trained runs"
    for name in ("model.npz", "model.safetensors"):
        result.save(tmp_path / name)
        loaded = propreg.load_model(tmp_path / name)
        assert torch.equal(loaded(data.x, data.edge_index), result.model(data.x, data.edge_index))
        assert read_settings(tmp_path / name).architecture == Hops(hops=3)
    wide = propreg.fit(GRAPH, Hops(hops=1), 0.1, **FIT)
    assert wide.architecture == Hops(hops=1)


def test_run_writes_a_page() -> None:
    splits = {str(i): random_split(GRAPH.y, 5, 10, i) for i in range(2)}
    plan = make_plan(
        Source("communities", GRAPH, splits), model="hops", method="length", seeds=1, max_epochs=5, device="cpu"
    )
    comparison = compare(plan, progress=False)
    said = "\n".join([*text.before(plan), *text.table(comparison), *text.remarks(comparison)])
    assert "k hops + logit length, mu = " in said
    record = json.loads(json.dumps(comparison.record))
    assert (record["model"], record["method"]) == ("hops", "length")
    assert "k hops" in run_page(record)
    assert all("<svg" in figure for figure in run_figures(record).values())


EXPERIMENT = """
title = "Toys"
[[parts]]
datasets = ["digits"]
models = ["gcn", "hops"]
methods = ["plain", "length"]
strengths = [0.1]
max_epochs = 3
splits = 1
seeds = 2
"""


def test_a_study_s_table(tmp_path: Path) -> None:
    experiment = read_experiment("toys", EXPERIMENT)
    runs = list(experiment.runs())
    assert [Run.from_text(run.text) for run in runs] == runs
    assert {run.cell.model for run in runs} == {Model("gcn"), Hops(hops=3)}
    assert all(cost_of(run.cell) > 0 for run in runs)
    with Store(tmp_path / "store.sqlite") as store:
        report = reproduce(cut(experiment.lines), store, lambda: Trainer("cpu"))
    assert report.missing == 0
    rows = table_rows(experiment, load_results(tmp_path / "store.sqlite"))
    assert [(row.model, row.method, row.runs) for row in rows] == [
        (model, method, 2) for model in ("gcn", "hops") for method in ("plain", "length")
    ]
    assert all(row.mean is not None and row.mean > 10 for row in rows)
    assert "hops" in to_text(experiment, rows)
    assert (model_title("hops"), method_title("length")) == ("k hops", "logit length")


def test_a_new_setting_with_a_default_changes_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No random stream, no key of a run, no saved file; what was written before is read."""

    @dataclass(frozen=True)
    class Later(Hops):
        residual: bool = False

    @dataclass(frozen=True)
    class LaterLength(Length):
        squared: bool = False

    replica = Replica(split="a")

    def seen(model: Model, method: Method, name: str) -> tuple[int, str, bytes]:
        cell = Cell("digits", "d", model=model, method=method, strength=0.1)
        result = propreg.fit(GRAPH, model, 0.1, **FIT)
        result.save(tmp_path / name)
        return stream_key("d", replica, model, "w0"), Run(cell, 0, 0).key, (tmp_path / name).read_bytes()

    before = seen(Hops(hops=2), Length(power=1.0), "before.safetensors")
    written = Run(Cell("digits", "d", model=Hops(hops=2), method=Length(power=1.0), strength=0.1), 0, 0).text
    monkeypatch.setitem(MODELS, "hops", replace(HOPS, kind=Later))
    monkeypatch.setitem(REGULARIZERS, "length", replace(LENGTH, kind=LaterLength))
    assert seen(Later(hops=2), LaterLength(power=1.0), "after.safetensors") == before
    assert stream_key("d", replica, Later(hops=2, residual=True), "w0") == before[0]
    read = Run.from_text(written).cell
    assert (read.model, read.method) == (Later(hops=2), LaterLength(power=1.0))
    assert read_settings(tmp_path / "before.safetensors").architecture == Later(hops=2)


def test_an_unknown_model_is_not_another_one() -> None:
    """Neither the engine nor the export takes it for one that it knows."""
    with pytest.raises(ValueError, match=r"model must be one of .*, got 'gcnx'. Did you mean 'gcn'"):
        problem().network(Model("gcnx"))
    with pytest.raises(ValueError, match=r"model must be one of .*, got 'gcnx'"):
        untrained_module(Model("gcnx"), (8, 3), 0.5)
    with pytest.raises(ValueError, match=r"method must be one of .*, got 'pregg'. Did you mean 'preg'"):
        problem().regularizer(Method("pregg"))
