"""Figure 2a: accuracy against the number of training nodes, without and with P-reg."""

import itertools

from propreg.names import model_title
from propreg.statistics import Runs, paired
from propreg.store.results import Results
from propreg.study.figures.curves import (
    Point,
    count,
    difference_phrase,
    lines_of,
    method_label,
    missing_phrase,
    missing_phrases,
    per_cell,
    percent,
    picked,
    runs_phrase,
    series,
    strengths_phrase,
    test_runs,
    view_from,
)
from propreg.study.figures.parts import Figure, Level, Panel, Series, number
from propreg.study.spec.experiment import Experiment, load_experiment
from propreg.study.spec.paper import paper_number
from propreg.study.spec.part import Line
from propreg.study.tables.text import Listing

METHODS = ("plain", "preg-reference", "preg-paper")
USUAL = 140  # training nodes of the public split
TICKS = (35, 70, 140, 300, 600, 1200)
BELOW = -3.0  # points under the plain model that are still shown: with very few nodes P-reg takes far more away
FINDING = (
    "Plain accuracy rises at every step. With 35 labeled nodes P-reg costs 6 to 17 points; with 1,200 it changes 0.1 "
    "points at most. It helps most in between: with 140 nodes it does as well as the plain model with 180 to 196."
)
Curves = dict[tuple[str, str], list[Point]]
"""By model and method, from few nodes to many."""


def training_nodes(results: Results) -> Figure:
    """The figure, from recorded runs."""
    experiment = load_experiment("fig-training-nodes")
    models = experiment.models
    curves = {(model, method): _curve(experiment, results, model, method) for model in models for method in METHODS}
    panels = (
        *(_panel(experiment, results, model, curves) for model in models),
        *(_gain_panel(model, curves) for model in models),
    )
    sizes = [_nodes(line) for line in lines_of(experiment, model=models[0], method="plain")]
    strengths = [cell.strength for cell in lines_of(experiment, method=METHODS[1])[0].cells]
    shown = {m: {method_label(name): lines_of(experiment, model=m, method=name) for name in METHODS} for m in models}
    return Figure(
        "fig-training-nodes",
        experiment.title,
        f"Test accuracy on Cora against the number of training nodes ({min(sizes)} to {max(sizes):,}), above, and what "
        f"P-reg adds to the plain model, below. {USUAL} nodes are the public split's; smaller sets are drawn from "
        f"them and larger sets add random nodes, {len(experiment.lines[0].splits)} draws each; validation and test "
        "nodes stay those of the public split. "
        f"P-reg's μ is picked on validation at each size, from {strengths_phrase(strengths)}.",
        f"Line and band: mean of {runs_phrase(experiment.lines[0], 'draws')} and its 95 % interval, which is about "
        f"seeds only at {USUAL} nodes, where all draws are equal; ◇: the paper's Table 2, which is the public split "
        f"with its {USUAL} nodes; ▾: lies below the axis.",
        "accuracy generally rises with more training nodes. The paper shows plain models only; P-reg is our addition.",
        FINDING,
        missing_phrases(results, {model_title(m): lines for m, lines in shown.items()}),
        panels,
        columns=len(models),
        share_y=True,
        listings=_listings(models, curves),
    )


def _curve(experiment: Experiment, results: Results, model: str, method: str) -> list[Point]:
    lines = lines_of(experiment, model=model, method=method)
    return [_point(results, line) for line in sorted(lines, key=_nodes)]


def _nodes(line: Line) -> int:
    return line.cells[0].train_nodes or 0


def _point(results: Results, line: Line) -> Point:
    runs = sum(count(results, line, cell) for cell in line.cells)
    if line.method.method == "plain":
        return Point(_nodes(line), test_runs(results, line, line.cells[0]), runs)
    chosen = picked(results, line)
    if chosen is None:
        return Point(_nodes(line), None, runs)
    return Point(_nodes(line), chosen.test, per_cell(line), f"μ = {chosen.strength:g}")


def _panel(experiment: Experiment, results: Results, model: str, curves: Curves) -> Panel:
    drawn = []
    for method in METHODS:
        lines, label = lines_of(experiment, model=model, method=method), method_label(method)
        missing = missing_phrase(label, results, lines)
        drawn.append(series(method, label, curves[model, method], per_cell(lines[0]), missing))
    nothing = all(each.empty for each in drawn)
    papers = [] if nothing else [_paper(model, method) for method in METHODS[:2]]
    return Panel(
        model_title(model),
        "training nodes",
        "test accuracy in %",
        (*drawn, *papers),
        x_scale="log",
        x_ticks=TICKS,
        empty=missing_phrase(model_title(model), results, lines_of(experiment, model=model)) if nothing else "",
    )


def _gain_panel(model: str, curves: Curves) -> Panel:
    """What P-reg adds, which is too small to see beside accuracies from 40 to 90 %."""
    plain = {point.x: point.values for point in curves[model, "plain"]}
    drawn = [
        series(method, method_label(method), [_minus(each, plain.get(each.x)) for each in curves[model, method]], 0)
        for method in METHODS[1:]
    ]
    nothing = all(each.empty for each in drawn)
    return Panel(
        f"{model_title(model)}: what P-reg adds",
        "training nodes",
        "points to the plain model",
        tuple(drawn),
        () if nothing else (Level("plain", "", 0.0),),
        x_scale="log",
        x_ticks=TICKS,
        y_view=None if nothing else view_from(BELOW, drawn, [0.0]),
        empty=f"{model_title(model)}: no difference is recorded" if nothing else "",
    )


def _minus(point: Point, plain: Runs | None) -> Point:
    values = None if point.values is None or plain is None else point.values - plain
    return Point(point.x, values, point.runs, point.note)


def _paper(model: str, method: str) -> Series:
    """Table 2, whose split is one of the sweep's."""
    found = paper_number("table-standard", model, method, "cora")
    value = None if found is None else number(found[0])
    return Series(f"paper:{method}", f"paper, {method_label(method)}", (float(USUAL),), (value,), kind="points")


def _listings(models: list[str], curves: Curves) -> tuple[Listing, ...]:
    """Plain accuracy and what P-reg adds at both ends, and how many labels P-reg is worth."""
    plain_rows, rows = [], []
    for model in models:
        plain = [point for point in curves[model, "plain"] if point.mean is not None]
        if len(plain) < 2:
            continue
        means = [point.mean or 0.0 for point in plain]
        rises = sum(after > before for before, after in itertools.pairwise(means))
        ends = [f"{percent(means[i])} ({plain[i].x:,.0f} nodes)" for i in (0, -1)]
        plain_rows.append((f"plain {model_title(model)}", *ends, f"{rises} of {len(means) - 1}"))
        rows += [row for method in METHODS[1:] if (row := _gains(model, method, plain, curves)) is not None]
    return (
        Listing("Plain test accuracy", ("", "fewest", "most", "rising steps"), tuple(plain_rows)),
        Listing(
            "What P-reg adds, in points (95 % interval)",
            ("", "fewest nodes", "most nodes", f"plain nodes as good as {USUAL}"),
            tuple(rows),
        ),
    )


def _gains(model: str, method: str, plain: list[Point], curves: Curves) -> tuple[str, ...] | None:
    base = {point.x: point.values for point in plain}
    both = [(point, base.get(point.x)) for point in curves[model, method]]
    gains = [
        f"{difference_phrase(paired(point.values, other))}, {point.x:,.0f} nodes"
        for point, other in both
        if point.values is not None and other is not None
    ]
    if not gains:
        return None
    usual = next((point.mean for point, _ in both if point.x == USUAL and point.mean is not None), None)
    worth = "" if usual is None else _worth(plain, usual)
    return f"{model_title(model)} + {method_label(method)}", gains[0], gains[-1], worth


def _worth(plain: list[Point], accuracy: float) -> str:
    """How many nodes the plain model needs for an accuracy: where its curve first gets there."""
    known = [(point.x, point.mean) for point in plain if point.mean is not None]
    if known[0][1] >= accuracy:
        return f"at most {known[0][0]:.0f}"
    for (x, y), (next_x, next_y) in itertools.pairwise(known):
        if next_y >= accuracy:
            return f"about {x + (next_x - x) * (accuracy - y) / (next_y - y):.0f}"
    return f"more than {known[-1][0]:,.0f}"
