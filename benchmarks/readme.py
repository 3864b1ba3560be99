"""The numbers of the README, from the records: ``python benchmarks/readme.py`` writes them between its markers.

What a record does not have is left out, or shown as a dash. ``--check`` changes nothing and fails where they differ.
"""

import json
import re
import sys
from pathlib import Path
from statistics import fmean
from typing import Any

from propreg.study.counting import count_runs
from propreg.study.experiment import Line, load_experiment, study_names
from propreg.study.figures.build import figure_data
from propreg.study.figures.words import DATASETS
from propreg.study.render import decimals
from propreg.study.results import Results, load_results
from propreg.study.table import Row, table_rows
from ratios import times

ROOT = Path(__file__).resolve().parents[1]
GCN_CORA = ("gcn", "cora")
Records = dict[tuple[str, str], dict[str, Any]]


def accuracies(results: Results) -> str:
    """Plain, with P-reg in both forms and the paper's, for each model and dataset of Table 1."""
    rows = {
        (r.model, r.dataset, r.method, r.preset): r
        for r in table_rows(load_experiment("table1"), results)
        if r.selection != "test"
    }
    lines = ["| | " + " | ".join(DATASETS.values()) + " |", "|---" * (len(DATASETS) + 1) + "|"]
    for model in ("gcn", "gat", "mlp"):
        for title, method, preset, paper in (
            (model.upper(), "plain", "", False),
            (f"{model.upper()} + P-reg", "preg", "paper", False),
            ("… the code's form", "preg", "reference", False),
            ("*the paper's*", "preg", "reference", True),
        ):
            cells = [_cell(rows.get((model, name, method, preset)), paper) for name in DATASETS]
            lines.append(f"| {title} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(row: Row | None, paper: bool) -> str:
    mean, std = (None, None) if row is None else (row.paper_mean, row.paper_std) if paper else (row.mean, row.std)
    text = "–" if mean is None else f"{mean:.1f}" if std is None else f"{mean:.1f} ± {std:.1f}"
    return f"*{text}*" if paper else text


def counts(results: Results) -> str:
    """How many runs of the study are recorded, as its page counts them, and how much of the paper's Table 1."""
    wanted = [
        r
        for r in table_rows(load_experiment("table1"), results)
        if r.selection != "test" and r.model in ("gcn", "gat", "mlp") and r.preset in ("", "reference", "paper", "mean")
    ]
    places = {(r.model, r.dataset, r.method): False for r in wanted}
    for r in wanted:
        places[r.model, r.dataset, r.method] |= r.mean is not None
    complete = f"{sum(places.values())} of the {len(places)} places of the paper's Table 1 are complete"
    recorded, wanted_runs = count_runs(map(load_experiment, study_names()), results)
    if recorded == wanted_runs and all(places.values()):
        return f"All {wanted_runs:,} runs of the study are recorded: every table and figure is complete."
    so_far = f"{recorded:,} of the study's {wanted_runs:,} runs are recorded"
    return f"{so_far}, and {complete}; the tables say what is missing."


def choices(results: Results) -> str:
    """How far P-reg's accuracies are from the paper's, by how μ is chosen."""
    apart: dict[tuple[str, str], list[float]] = {}
    for r in table_rows(load_experiment("table1"), results):
        if r.method == "preg" and r.mean is not None and r.paper_mean is not None:
            apart.setdefault((r.preset, r.selection), []).append(r.mean - r.paper_mean)
    means = {which: decimals(fmean(each), 1, sign=True) for which, each in apart.items()}
    return (
        "Ours less the paper's numbers, on average over the table: with μ picked on validation "
        f"{means['paper', 'validation']} points, and {means['reference', 'validation']} in the\n"
        "code's form, with which "
        f"those were made; with μ picked on test, as they seem to be, {means['paper', 'test']} and "
        f"{means['reference', 'test']}:\n[where we differ](docs/study.md#where-we-differ-from-the-paper)."
    )


def limits(results: Results) -> str:
    """Where P-reg hurts, in our own runs."""
    lines = {
        line.method.name: line for line in load_experiment("table1").lines if (line.model, line.dataset) == GCN_CORA
    }
    means = {name: _means(line, results) for name, line in lines.items() if name in ("plain", "preg-paper")}
    plain, strongest = means["plain"][0], means["preg-paper"][-1]
    figure = figure_data("fig-training-nodes", results)
    fewest = {s.key: s.y[0] for panel in figure.panels[:1] for s in panel.series}
    return (
        "**It does not always help.** Neighbours must tend to share a class, μ must be tuned, and too much of it\n"
        f"hurts: a GCN on Cora falls from {plain:.1f} to {strongest:.1f} % at μ = 1, and with 35 random labels from "
        f"{fewest['plain']:.1f} to {fewest['preg-paper']:.1f} % at the best of\nμ = 0.2, 0.4 … 1 "
        "(`propreg figure fig-strength`, `fig-training-nodes`). `fit` and `propreg run` therefore train the\n"
        "plain model beside it, and give you that one where it wins."
    )


def _means(line: Line, results: Results) -> list[float]:
    """The mean test accuracy at each strength."""
    found = [results.accuracies(cell, line.splits, line.seeds) for cell in line.cells]
    return [float(each.test.mean()) for each in found if each is not None]


def engine() -> str:
    """Epochs of the serial loop and of the engine, on each machine that was measured."""
    places = [("GCN", "Cora"), ("GCN", "Photo"), ("GCN", "CS"), ("GCN", "Physics"), ("GAT", "Cora"), ("GAT", "Physics")]
    cases = [f"{model}+P-reg {name.lower()}" for model, name in places]
    titles = [f"{model}, {name}" for model, name in places]
    lines = ["| | " + " | ".join(titles) + " |", "|---" * (len(titles) + 1) + "|"]
    for name in ("engine-h200", "engine-cpu"):
        found = _records(name)
        if found is None:
            continue
        machine, records = found
        fastest = {case: _fastest(records, case) for case in cases}
        serial, least = (
            {case: records.get((case, metric)) for case in cases}
            for metric in ("serial epoch", "limit by memory bandwidth")
        )
        lines += [
            f"| {machine}: serial epoch | " + " | ".join(_time(serial[case]) for case in cases) + " |",
            "| … engine, per replica | " + " | ".join(_time(fastest[case]) for case in cases) + " |",
            "| … ratio | " + " | ".join(_ratio(fastest[case]) for case in cases) + " |",
            "| … limit by memory bandwidth | " + " | ".join(_time(least[case]) for case in cases) + " |",
        ]
    return "\n".join(lines)


def term() -> str:
    """The regulariser against the official way and against two bare products."""
    if not any(_records(name) for name in ("regularizer-cpu", "regularizer-h200")):
        return "No measurement of it is recorded yet."
    lines = [
        "| graph | machine | faster than official | over two bare products | peak memory, official / ours |",
        "|---|---|---|---|---|",
    ]
    for name in ("regularizer-cpu", "regularizer-h200"):
        found = _records(name)
        if found is None:
            continue
        machine, records = found
        for case in dict.fromkeys(case for case, _ in records):
            values = [
                _ratio(records.get((case, metric)))
                for metric in ("speed-up", "time over bare products", "peak memory saved")
            ]
            lines.append(f"| {case} | {machine} | " + " | ".join(values) + " |")
    return "\n".join(lines)


def study() -> str:
    """How long Table 1 takes on a GPU: a part of it, and all of it by a sample."""
    part, whole = (_records(name) for name in ("study-h200", "table1-h200"))
    if part is None or whole is None:
        return "No measurement of it is recorded yet."
    (record,) = part[1].values()
    _, estimate = whole[1].values()
    runs = int(record["metric"].split()[0])
    every = sum(len(list(line.runs())) for line in load_experiment("table1").lines)
    share = estimate["metric"].split("by ")[1].removesuffix(" of the work")
    return (
        f"**The study.** On one GPU ({part[0]}), by three processes that share it, with kernels\ncompiled before: "
        f"the {runs:,} trainings of the plain and P-reg rows of GCN and MLP in Table 1 took {record['value']:.0f} s\n"
        f"(`python benchmarks/study.py`). All {every:,} of Table 1 would take about {estimate['value'] / 60:.0f} "
        f"minutes, by a sample of {share}\nof the work (`python benchmarks/study.py table1 --share 8`)."
    )


def _fastest(records: Records, case: str) -> dict[str, Any] | None:
    mine = [r for (name, metric), r in records.items() if name == case and metric.startswith("engine, per replica")]
    return min(mine, key=lambda r: float(r["value"])) if mine else None


def _time(record: dict[str, Any] | None) -> str:
    if record is None:
        return "–"
    value, unit = record["value"], record["unit"]
    if value >= 1000:
        value, unit = value / 1000, {"ms": "s", "µs": "ms"}[unit]
    return f"{value:.3g} {unit}"


def _ratio(record: dict[str, Any] | None) -> str:
    return "–" if record is None else times(record["ratio"])


def _records(name: str) -> tuple[str, Records] | None:
    path = ROOT / "results" / "benchmarks" / f"{name}.json"
    if not path.exists():
        return None
    found = json.loads(path.read_text())
    return found["machine"], {(r["case"], r["metric"]): r for r in found["records"]}


def filled(text: str) -> str:
    """The README's text with every block between markers made anew."""
    results = load_results(ROOT / "results")
    blocks = {
        "accuracies": accuracies(results),
        "counts": counts(results),
        "choices": choices(results),
        "limits": limits(results),
        "engine": engine(),
        "study": study(),
        "term": term(),
    }
    for name, block in blocks.items():
        pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
        text, times = pattern.subn(lambda m, block=block: m[1] + block + "\n" + m[2], text)  # type: ignore[misc]
        if times != 1:
            raise SystemExit(f"README.md should have the markers of {name} once, but has them {times} times.")
    return text


def main() -> None:
    """Write or check."""
    path = ROOT / "README.md"
    before = path.read_text()
    after = filled(before)
    if "--check" in sys.argv[1:]:
        if after != before:
            raise SystemExit("README.md does not show what results/ holds: run python benchmarks/readme.py.")
        return
    path.write_text(after)


if __name__ == "__main__":
    main()
