"""The record and the page of a fit on whole graphs."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import propreg
from fitting.graphs.lists import listed
from molecules.made_up import molecules
from propreg.data.errors import DataError
from propreg.data.graph_list import of_molecules
from propreg.fitting.verdict import pair
from propreg.report.recipe import call
from propreg.report.run_record import read_run
from propreg.running.graphs import graph_record

pytest.importorskip("torch_geometric")
SMALL: dict[str, Any] = {"hidden": 8, "layers": 2, "max_epochs": 4, "splits": 2, "seeds": 2, "mu": [0.3]}


def test_each_target_has_its_pair_of_runs() -> None:
    made = of_molecules(molecules(60, tasks=2))
    result = propreg.fit_graphs(made, **SMALL)
    record = json.loads(json.dumps(graph_record(result, "mine")))
    run = read_run(record)
    assert [target.name for target in run.targets] == ["t0", "t1"]
    for place, target in enumerate(run.targets):
        known = made.y[~np.isnan(made.y[:, place]), place]
        assert target.labels == len(known)
        assert target.spread == pytest.approx(known.std(), rel=1e-6)
        assert target.pair == pair(result.for_task(place), 0.3)
        assert target.pair is not None
        assert target.pair.plain.mean == pytest.approx(result.by_task[0, ..., place].mean())
    assert run.notes[1] == "RMSE is the mean over 2 targets."
    assert (run.graph["graphs"], run.settings["hidden"], run.settings["max_epochs"]) == (60, "8", "4")
    assert "task='regression'," in call(run, benchmark=False)


def test_the_preview_goes_from_the_smallest_error_to_the_largest() -> None:
    graphs = listed(200)
    graphs[3].y = torch.tensor(torch.nan)
    result = propreg.fit_graphs(graphs, **{**SMALL, "splits": [{"train": range(100), "val": range(100, 130),
                                                               "test": range(130, 200)}]})  # fmt: skip
    record = graph_record(result, "mine")
    shown = record["preview"]
    errors = [abs(float(g[0]) - float(p[0])) for g, p in zip(shown["given"], shown["predicted"], strict=True)]
    assert len(errors) == 12
    assert errors == sorted(errors)
    every = np.abs(result.predict()[130:, 0] - [float(graph.y) for graph in graphs[130:]])
    assert errors[0] == pytest.approx(every.min(), abs=0.1)
    assert errors[-1] == pytest.approx(every.max(), rel=0.01)
    assert all(130 <= int(name) < 200 for name in shown["graph"])
    assert record["notes"][-1] == "1 graph without a label: predicted, but not trained on."


def test_classes_are_previewed_with_their_probability() -> None:
    result = propreg.fit_graphs(listed(60, classes=3), **SMALL)
    record = graph_record(result, "mine")
    (target,) = read_run(record).targets
    assert (target.name, target.labels, target.share, target.spread) == ("y", 60, None, None)
    first, chance = int(record["preview"]["graph"][0]), result.predict_proba()
    assert record["preview"]["predicted"][0] == [f"{chance[first].argmax()} ({chance[first].max():.0%})"]


def test_a_result_writes_its_page(tmp_path: Path) -> None:
    result = propreg.fit_graphs(listed(classes=2), **SMALL)
    result.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "result = propreg.fit_graphs(" in page
    assert "Target by target" in page
    with pytest.raises(DataError, match="cannot be written"):
        result.report(tmp_path / "no" / "page.html")
    result.plot(tmp_path / "curve.svg")
    assert "test accuracy" in (tmp_path / "curve.svg").read_text(encoding="utf-8")
