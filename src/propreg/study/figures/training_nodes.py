"""Figure 2a: accuracy against the number of training nodes, without and with P-reg."""

import itertools

from propreg.statistics import Runs, paired
from propreg.study.experiment import Experiment, Line, load_experiment
from propreg.study.figures import words
from propreg.study.figures.measured import (
    Place,
    all_lacking,
    behind,
    count,
    lacking,
    lines_of,
    per_cell,
    picked,
    said,
    series,
    test_runs,
    view_from,
)
from propreg.study.figures.parts import Figure, Level, Panel, Series, number
from propreg.study.paper import paper_number
from propreg.study.results import Results

METHODS = ("plain", "preg-reference", "preg-paper")
USUAL = 140  # training nodes of the public split
TICKS = (35, 70, 140, 300, 600, 1200)
BELOW = -3.0  # points under the plain model that are still shown: with very few nodes P-reg takes far more away


def training_nodes(results: Results) -> Figure:
    """The figure, from recorded runs."""
    experiment = load_experiment("fig-training-nodes")
    models = list(dict.fromkeys(line.model for line in experiment.lines))
    curves = {(model, method): _curve(experiment, results, model, method) for model in models for method in METHODS}
    panels = (
        *(_panel(experiment, results, model, curves) for model in models),
        *(_gain_panel(model, curves) for model in models),
    )
    sizes = [line.cells[0].train_nodes or 0 for line in lines_of(experiment, model=models[0], method="plain")]
    return Figure(
        "fig-training-nodes",
        experiment.title,
        f"Test accuracy on Cora against the number of training nodes ({min(sizes)} to {max(sizes):,}), above, and what "
        f"P-reg adds to the plain model, below. {USUAL} nodes are those of the public split, fewer a random part of "
        f"them, more have others added at random, {len(experiment.lines[0].splits)} times each; validation and test "
        "nodes stay those of the public split. "
        f"P-reg's μ is picked on validation at each size, from {words.strengths(_grid(experiment))}.",
        f"Line and band: mean of {behind(experiment.lines[0], 'draws')} and its 95 % interval, which is about seeds "
        f"only at {USUAL} nodes, where every draw has the same; ◇: the paper's Table 2, which is the public split with "
        f"its {USUAL} nodes; ▾: lies below the axis.",
        "accuracy generally rises with more training nodes. The paper shows plain models only; P-reg is our addition.",
        said(sentence for model in models for sentence in _found(model, curves)),
        all_lacking(
            results,
            {
                words.model(m): {words.method(name): lines_of(experiment, model=m, method=name) for name in METHODS}
                for m in models
            },
        ),
        panels,
        columns=len(models),
        share_y=True,
    )


def _curve(experiment: Experiment, results: Results, model: str, method: str) -> list[Place]:
    lines = lines_of(experiment, model=model, method=method)
    return [_place(results, line) for line in sorted(lines, key=_nodes)]


def _grid(experiment: Experiment) -> list[float]:
    return [cell.strength for cell in lines_of(experiment, method=METHODS[1])[0].cells]


def _nodes(line: Line) -> int:
    return line.cells[0].train_nodes or 0


def _place(results: Results, line: Line) -> Place:
    runs = sum(count(results, line, cell) for cell in line.cells)
    if line.method.method == "plain":
        return Place(_nodes(line), test_runs(results, line, line.cells[0]), runs)
    chosen = picked(results, line)
    if chosen is None:
        return Place(_nodes(line), None, runs)
    return Place(_nodes(line), chosen.test, per_cell(line), f"μ = {chosen.strength:g}")


def _panel(experiment: Experiment, results: Results, model: str, curves: dict[tuple[str, str], list[Place]]) -> Panel:
    drawn = tuple(_series(experiment, results, model, method, curves[model, method]) for method in METHODS)
    nothing = all(each.empty for each in drawn)
    papers = [] if nothing else [_paper(model, method) for method in METHODS[:2]]
    return Panel(
        words.model(model),
        "training nodes",
        "test accuracy in %",
        (*drawn, *papers),
        x_scale="log",
        x_ticks=TICKS,
        empty=lacking(words.model(model), results, lines_of(experiment, model=model)) if nothing else "",
    )


def _gain_panel(model: str, curves: dict[tuple[str, str], list[Place]]) -> Panel:
    """What P-reg adds, which cannot be seen beside accuracies from 40 to 90 %."""
    plain = {place.x: place.values for place in curves[model, "plain"]}
    drawn = [
        series(method, words.method(method), [_less(place, plain.get(place.x)) for place in curves[model, method]], 0)
        for method in METHODS[1:]
    ]
    nothing = all(each.empty for each in drawn)
    return Panel(
        f"{words.model(model)}: what P-reg adds",
        "training nodes",
        "points to the plain model",
        tuple(drawn),
        () if nothing else (Level("plain", "", 0.0),),
        x_scale="log",
        x_ticks=TICKS,
        y_view=None if nothing else view_from(BELOW, drawn, [0.0]),
        empty=f"{words.model(model)}: no difference is recorded" if nothing else "",
    )


def _less(place: Place, plain: Runs | None) -> Place:
    values = None if place.values is None or plain is None else place.values - plain
    return Place(place.x, values, place.runs, place.note)


def _paper(model: str, method: str) -> Series:
    """Table 2, which the sweep passes through."""
    found = paper_number("table-standard", model, method, method.partition("-")[0], "cora")
    value = None if found is None else number(found[0])
    return Series(f"paper:{method}", f"paper, {words.method(method)}", (float(USUAL),), (value,), kind="points")


def _series(experiment: Experiment, results: Results, model: str, method: str, places: list[Place]) -> Series:
    lines = lines_of(experiment, model=model, method=method)
    return series(
        method, words.method(method), places, per_cell(lines[0]), lacking(words.method(method), results, lines)
    )


def _found(model: str, curves: dict[tuple[str, str], list[Place]]) -> list[str]:
    """What the plain curve does, and what P-reg adds at both ends."""
    name, plain = words.model(model), [place for place in curves[model, "plain"] if place.mean is not None]
    if len(plain) < 2:
        return []
    means = [place.mean or 0.0 for place in plain]
    rises = sum(after > before for before, after in itertools.pairwise(means))
    steps = len(means) - 1
    out = [
        f"Plain {name} goes from {words.percent(means[0])} with {plain[0].x:.0f} nodes to {words.percent(means[-1])} "
        f"with {plain[-1].x:,.0f}, rising in {rises} of {steps} steps, "
        f"{words.agrees(means[-1] > means[0] and rises >= 0.7 * steps)}."
    ]
    for method in METHODS[1:]:
        out += _gains(name, method, plain, curves[model, method])
    return out


def _gains(name: str, method: str, plain: list[Place], mine: list[Place]) -> list[str]:
    base = {place.x: place.values for place in plain}
    both = [(place, base.get(place.x)) for place in mine]
    gains = [
        (place.x, paired(place.values, other))
        for place, other in both
        if place.values is not None and other is not None
    ]
    if not gains:
        return []
    first, last = gains[0], gains[-1]
    label = f"{name} + {words.method(method)}"
    text = f"{label} {words.adds(first[1])} with {first[0]:.0f} nodes"
    if len(gains) > 1:
        text += f" and {words.adds(last[1])} with {last[0]:,.0f}"
    usual = next((place.mean for place in mine if place.x == USUAL and place.mean is not None), None)
    if usual is not None and (worth := _worth(plain, usual)):
        text += f"; with {USUAL} it reaches what the plain model needs {worth} for"
    return [text + "."]


def _worth(plain: list[Place], accuracy: float) -> str:
    """How many nodes the plain model needs for an accuracy: where its curve first gets there."""
    known = [(place.x, place.mean) for place in plain if place.mean is not None]
    if known[0][1] >= accuracy:
        return f"at most {known[0][0]:.0f}"
    for (x, y), (next_x, next_y) in itertools.pairwise(known):
        if next_y >= accuracy:
            return f"about {x + (next_x - x) * (accuracy - y) / (next_y - y):.0f}"
    return f"more than {known[-1][0]:,.0f}"
