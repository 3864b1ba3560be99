"""What the page's tests are fed with: a small made-up study, a run, and text that wants to be more than text."""

import json
import random
from collections.abc import Iterable
from dataclasses import asdict
from types import SimpleNamespace
from typing import Any

import numpy as np

from propreg.fitting.graphs.result import JUDGED
from propreg.fitting.verdict import JUDGING, Judging, judge
from propreg.store.results import Results
from propreg.study.figures.tsne_record import Cloud, RunMeasures, TsneRecord
from propreg.study.spec.experiment import load_experiment, select_lines
from propreg.study.spec.part import Line

HOSTILE = (
    "</script><script>window.pwned = 1</script>",
    "<!--<script>",
    "--><img src=x onerror='window.pwned = 1'>",
    '"><svg onload="window.pwned = 1">',
    "' onmouseover='window.pwned = 1",
    "{{ 7 * 7 }}{% raw %}{# #}",
    "${7 * 7}`\\u003cb\\u003e",
    "&lt;b&gt; &amp;amp; ]]>",
    "javascript:window.pwned=1",
    "line\u2028and\u2029paragraph",
    "\u202egnp.exe\u202c \u200f\u2067right to left",
    "nul\x00 bell\x07 half\ud800 escape\x1b[31m",
    "$\\frac{1}{2$ and $x$",
    "</title></style></textarea></bdi></table>",
    "x" * 10_000,
    "",
    " ",
    "😀 数据集 مرحبا",
)


def study_lines() -> list[Line]:
    """Lines of several experiments, few enough to train in the head: GCN on a few datasets, all of Fig. 3."""
    parts = {
        "table1": ["dataset=cora,model=gcn", "dataset=citeseer,model=gcn"],
        "fig-mask": ["dataset=cora,model=gcn"],
        "fig-depth": ["dataset=cora"],
        "fig-tsne": [""],
        "fig-strength": ["model=gcn"],
        "table-standard-gcn-gat": ["dataset=cora,model=gcn"],
        "ablation": ["dataset=cora,model=gcn", "dataset=citeseer,model=gcn"],
    }
    lines: list[Line] = []
    for name, filters in parts.items():
        for each in filters:
            lines += select_lines(load_experiment(name), [each] if each else [])
    return lines


def made_up(lines: Iterable[Line]) -> Results:
    """P-reg has a hill at μ = 0.4, on CiteSeer all of it below the plain model; some noise, the same every time.

    The Laplacian's sum ends at chance where it is strong, and P-reg with squared error adds nothing.
    """
    noise, results, known = random.Random(7), Results(), set[str]()
    for line in lines:
        for cell in {each.text: each for each in [line.cells[0].plain, *line.cells]}.values():
            hill = 60 - 100 * abs(cell.strength - 0.4) - (120 if cell.dataset == "citeseer" else 0)
            gain = hill if cell.method.name == "preg" and "squared_error" not in cell.text else 0
            if cell.method.name == "laplacian" and '"sum"' in cell.text and cell.strength >= 0.05:
                gain = -650
            measured = json.dumps({"length": 5.0, "omega": 2.0 - cell.strength}) if cell.measure else None
            rows = []
            for split in line.splits:
                for seed in line.seeds:
                    val, test = (int(800 + gain + 8 * split + noise.gauss(0, 6)) for _ in range(2))
                    rows.append((split, seed, val, 1000, test, 1000, 50 + seed, 200, None, measured, "b"))
            if cell.text not in known:  # a run has one result, whichever lines share it
                results.take(cell.text, rows)
            known.add(cell.text)
    return results


def made_up_tsne() -> TsneRecord:
    """Sixty nodes of three classes."""
    places = random.Random(3)
    labels = tuple(node % 3 for node in range(60))
    methods = [(line.method.name, line.cells[0].strength) for line in load_experiment("fig-tsne").lines]
    clouds = tuple(
        Cloud(
            name,
            strength,
            tuple((20.0 * label + places.gauss(0, 3), places.gauss(0, 3)) for label in labels),
            tuple(RunMeasures(seed, "0" * 64, 700, 1000, 50, 0.3, 2.0, 5.0) for seed in range(10)),
        )
        for name, strength in methods
    )
    return TsneRecord("citeseer", "gcn", 0, 30.0, labels, clouds, {})


def run_record(**changes: Any) -> dict[str, Any]:
    """A run on three splits with two seeds: P-reg at μ = 0.5 wins by four points everywhere."""
    mus, splits, seeds = [0.0, 0.1, 0.5, 1.0], ["0", "1", "2"], 2
    gain = {0.0: 0.0, 0.1: 0.02, 0.5: 0.04, 1.0: -0.01}

    def runs(extra: float) -> list[list[list[float]]]:
        return [[[0.8 + gain[mu] + 0.01 * s + 0.002 * e + extra for e in range(seeds)] for s in range(3)] for mu in mus]

    curve = {"epoch": [1, 2, 3], "loss": [2.0, 1.0, 0.5], "val": [0.3, 0.6, 0.8], "test": [0.3, 0.6, 0.79]}
    record: dict[str, Any] = {
        "format": "propreg run",
        "version": 1,
        "dataset": "my graph",
        "graph": {"nodes": 120, "edges": 300, "features": 8, "classes": 3, "homophily": 0.81, "isolated": 2},
        "model": "gcn",
        "method": "preg",
        "preset": "paper",
        "mus": mus,
        "splits": splits,
        "seeds": seeds,
        "val": runs(0.01),
        "test": runs(0.0),
        "epochs": [[[100 + e for e in range(seeds)] for _ in splits] for _ in mus],
        "mu": 0.5,
        "finished": True,
        "device": "cpu",
        "seconds": 12.5,
        "classes": ["cats", "dogs", "birds"],
        "notes": ["P-reg helps on this graph: it does.", "Few validation nodes."],
        "histories": {"plain": [curve], "chosen": [curve, curve]},
        "confusion": {"plain": [[9, 1, 0], [2, 8, 0], [0, 3, 7]], "chosen": [[10, 0, 0], [1, 9, 0], [0, 1, 9]]},
        "agreement": {"labels": 0.81, "plain": 0.77, "chosen": 0.84},
        "map": {
            "split": "1",
            "node": ["n1", "n2", "n3", "n4", "n5"],
            "x": [0.0, 1.0, 2.0, -1.0, 0.5],
            "y": [0.0, 1.0, -2.0, 0.3, 0.4],
            "state": [0, 1, 2, 3, 0],
            "label": [0, 1, 2, 0, 1],
            "plain": [0, 0, 2, 1, 1],
            "chosen": [0, 1, 1, 1, 1],
        },
        "settings": {"lr": 0.01, "weight_decay": 5e-4, "patience": 100, "max_epochs": 1000, "scale": "rows"},
        "date": "2026-01-31",
        "versions": {"python": "3.12.1", "torch": "2.13.0"},
        "judging": asdict(JUDGING),
    }
    record |= changes
    return {"verdict": verdict_of(record), **record}


def verdict_of(record: dict[str, Any]) -> dict[str, Any]:
    """The verdict on the scores of a record."""
    runs = {name: np.array(record[name], float) for name in ("val", "test")}
    judging = Judging(**record["judging"])
    found = {**record, **runs, "mus": tuple(record["mus"]), "judging": judging}
    fit = SimpleNamespace(**found, picking=judging.sign * runs["val"])
    return asdict(judge(fit))


def models(title: str = "MLP, plain") -> list[dict[str, Any]]:
    """Two models: a GCN that P-reg helps, and one that was chosen plain."""
    test = {"mean": 0.85, "std": 0.01, "low": 0.84, "high": 0.86, "runs": 6}
    gain = {"mean": 0.04, "low": 0.03, "high": 0.05, "p_value": 0.25, "won": 1.0, "units": 3}
    plain = {**test, "mean": 0.71, "low": 0.7, "high": 0.72}
    return [
        {"title": "GCN + P-reg 0.5", "validation": 0.86, "test": test, "gain": gain},
        {"title": title, "validation": 0.72, "test": plain, "gain": None},
    ]


def graphs_record(**changes: Any) -> dict[str, Any]:
    """A run on 40 molecules of a table with two columns of numbers: P-reg lowers the RMSE of both."""
    plain = run_record()
    scores = {name: [[[1.5 - v for v in row] for row in mu] for mu in plain[name]] for name in ("val", "test")}
    mean = {"runs": 6, "std": 0.1, "low": 0.6, "high": 0.8}
    pair = {
        "mu": 0.5,
        "plain": mean | {"mean": 0.7},
        "other": mean | {"mean": 0.66},
        "difference": {"mean": 0.04, "low": 0.03, "high": 0.05, "p_value": 0.03125, "won": 1.0},
        "units": 6,
    }
    known = {"labels": 40, "spread": 2.1, "pair": pair}
    targets = [known | {"name": "log S, mol/l"}, {"name": "mass", "labels": 3, "spread": 0.5, "pair": None}]
    record = run_record(
        **scores,
        dataset="mine",
        graph={"graphs": 40, "nodes": 300, "edges": 310, "features": 9, "classes": None, "homophily": None},
        model="mol-gin",
        judging=asdict(JUDGED["regression"]),
        splits=["random-0", "random-1", "random-2"],
        classes=[],
        confusion=None,
        agreement={},
        map=None,
        verdict={"kind": "helps", "sentence": "P-reg helps.", "pair": pair},
        targets=targets,
        preview={
            "split": "random-1",
            "graph": ["CCO", "c1ccccc1"],
            "targets": ["log S, mol/l", "mass"],
            "given": [["0.5", ""], ["-2", "78"]],
            "predicted": [["0.61", "44"], ["1.25", "80"]],
        },
        settings={
            "molecules": "mine.csv", "smiles_column": "smiles", "target": "log S, mol/l, mass", "hidden": 64,
            "layers": 3, "virtual_node": False, "lr": 0.001, "dropout": 0.5, "batch_size": 32, "max_epochs": 20,
        },
    )  # fmt: skip
    return record | changes


def hostile_record(text: str) -> dict[str, Any]:
    """A run with this text in every place that holds text."""
    return run_record(
        dataset=text,
        model=text,
        method=text,
        preset=text,
        device=text,
        splits=[text, text + "1", text + "2"],
        classes=[text, text, text],
        notes=[text, text],
        models=models(text),
        map={name: [text] * 5 if name == "node" else part for name, part in run_record()["map"].items()},
        settings={text: text},
        targets=[each | {"name": text} for each in graphs_record()["targets"]],
        preview={
            name: text if name == "split" else [[text, text]] if name in ("given", "predicted") else [text] * count
            for name, count in {"split": 0, "graph": 1, "targets": 2, "given": 0, "predicted": 0}.items()
        },
        date=text or "x",
        versions={text: text},
    )
