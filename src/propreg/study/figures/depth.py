"""Figure 4: the intra-class distance ω and accuracy, of GCNs of 2, 3 and 4 layers and of P-reg against μ."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from propreg.statistics import Runs, summarise
from propreg.study.errors import unknown
from propreg.study.experiment import Experiment, Line, load_experiment
from propreg.study.figures import words
from propreg.study.figures.depth_words import found_for
from propreg.study.figures.equivalent import Reading, read_depth
from propreg.study.figures.measured import (
    Place,
    all_lacking,
    behind,
    count,
    lacking,
    lines_of,
    measures,
    per_cell,
    said,
    series,
    test_runs,
    view_from,
)
from propreg.study.figures.parts import Figure, Level, Panel, Series, Value, number
from propreg.study.results import Results

METHODS = ("preg-reference", "preg-paper")
DEPTHS = {2: "gcn", 3: "gcn-3", 4: "gcn-4"}
BEST = 0.7
"""The μ that the paper names as the best on Cora."""
BELOW = 2.0
"""Points below the deepest GCN that are still shown."""
QUANTITIES = {
    "omega": ("ω of the reported epoch", "ω"),
    "scale-free": ("ω / mean ‖z‖, reported epoch", "scale-free ω"),
    "accuracy": ("test accuracy in %", "test accuracy"),
}


@dataclass(frozen=True)
class Curves:
    """What is known of a dataset: for each quantity the levels of depths and the places of each method."""

    dataset: str
    levels: dict[str, dict[int, Runs]]
    places: dict[str, dict[str, list[Place]]]
    readings: dict[str, Reading]


def depth(results: Results, dataset: str | None = None) -> Figure:
    """The figure of one dataset (Cora where none is named), or ``"all"`` as small multiples."""
    experiment = load_experiment("fig-depth")
    known = list(dict.fromkeys(line.dataset for line in experiment.lines))
    wanted = (dataset or "cora").lower()
    if wanted not in (*known, "all"):
        raise unknown("dataset of fig-depth", wanted, (*known, "all"))
    chosen = known if wanted == "all" else [wanted]
    curves = [_curves(experiment, results, name) for name in chosen]
    if wanted == "all":
        rows = [
            [_against_strength(experiment, results, each, what, short=True) for each in curves] for what in QUANTITIES
        ]
        panels, columns = [panel for row in rows for panel in row], len(curves)
    else:
        panels, columns = _six(experiment, results, curves[0]), 3
    return Figure(
        "fig-depth",
        f"Fig. 4: intra-class distance and depth, {'seven datasets' if wanted == 'all' else words.dataset(wanted)}",
        "The average distance ω of a node's output to the mean of its class, at the reported epoch (the latest with "
        "the best validation accuracy), of plain GCNs of 2, 3 and 4 layers and of a 2-layer GCN with P-reg against "
        "μ; ω also over the outputs' mean length, which does not change when all outputs grow.",
        f"Lines and bands: mean of {behind(experiment.lines[0])} and its 95 % interval; horizontal lines and digits: "
        "plain GCNs of so many layers; ▾: lies below the axis.",
        "ω falls with more layers and with larger μ; accuracy rises and then falls, on Cora best at μ = 0.7 between "
        "the 2- and the 3-layer GCN; other datasets behave alike.",
        said(_found(curves)),
        all_lacking(
            results,
            {words.dataset(d): {_line_label(x): [x] for x in lines_of(experiment, dataset=d)} for d in chosen},
        ),
        tuple(panels),
        columns,
    )


def _line_label(line: Line) -> str:
    return words.method(line.method.name) if line.method.method != "plain" else words.model(line.model)


def _values(results: Results, line: Line, place: int, what: str) -> Runs | None:
    cell = line.cells[place]
    if what == "accuracy":
        return test_runs(results, line, cell)
    omega = measures(results, line, cell, "omega")
    if omega is None or what == "omega":
        return omega
    length = measures(results, line, cell, "length")
    if length is None or bool((length <= 0).any()):
        return None
    return np.asarray(omega / length, np.float64)


def _curves(experiment: Experiment, results: Results, dataset: str) -> Curves:
    levels: dict[str, dict[int, Runs]] = {what: {} for what in QUANTITIES}
    places: dict[str, dict[str, list[Place]]] = {what: {} for what in QUANTITIES}
    for what in QUANTITIES:
        for layers, model in DEPTHS.items():
            (line,) = lines_of(experiment, dataset=dataset, model=model, method="plain")
            found = _values(results, line, 0, what)
            if found is not None:
                levels[what][layers] = found
        for method in METHODS:
            (line,) = lines_of(experiment, dataset=dataset, method=method)
            start = [Place(0.0, levels[what].get(2), per_cell(line))] if 2 in levels[what] else []
            places[what][method] = start + [
                Place(
                    cell.strength, _values(results, line, i, what), count(results, line, cell), f"μ = {cell.strength:g}"
                )
                for i, cell in enumerate(line.cells)
            ]
    readings = {name: read_depth(levels["scale-free"], places["scale-free"][name]) for name in METHODS}
    return Curves(dataset, levels, places, readings)


def _six(experiment: Experiment, results: Results, curves: Curves) -> list[Panel]:
    first = [_against_strength(experiment, results, curves, what) for what in QUANTITIES]
    return [*first, *(_against_accuracy(curves, what) for what in ("omega", "scale-free")), _worth(curves)]


def _found(curves: Sequence[Curves]) -> list[str]:
    found = [s for each in curves for s in found_for(each.dataset, each.levels, each.places, each.readings) if s]
    return [*found, *(["Falls and rises are said only of what surely does."] if found else [])]


def _against_strength(
    experiment: Experiment, results: Results, curves: Curves, what: str, short: bool = False
) -> Panel:
    drawn, lines = [], lines_of(experiment, dataset=curves.dataset)
    for method in METHODS:
        (line,) = lines_of(experiment, dataset=curves.dataset, method=method)
        missing = lacking(words.method(method), results, [line])
        drawn.append(series(method, words.method(method), curves.places[what][method], per_cell(line), missing))
    levels = [_level(layers, runs, short) for layers, runs in curves.levels[what].items()]
    if what == "accuracy" and curves.dataset == "cora" and not short:
        levels.append(Level("paper", "paper: best at μ = 0.7", BEST, axis="x", source="paper"))
    view = _view(curves, drawn) if what == "accuracy" else None
    label, name = QUANTITIES[what]
    label = label.split(" of ")[0].split(", ")[0] if short else label
    nothing = all(each.empty for each in drawn) and not curves.levels[what]
    title = words.dataset(curves.dataset) if short else f"{name} against μ"
    return Panel(
        title if not short or what == "omega" else "",
        "strength μ",
        label,
        tuple(drawn),
        tuple(levels),
        x_view=(0.0, 1.0),
        y_view=view,
        empty=lacking(words.dataset(curves.dataset), results, lines) or f"no {name} is recorded" if nothing else "",
    )


def _view(curves: Curves, drawn: list[Series]) -> tuple[float, float] | None:
    """From a little below the deepest GCN, where a strong P-reg collapses and would hide the rest."""
    levels = [float(runs.mean()) for runs in curves.levels["accuracy"].values()]
    low = min((y for each in drawn for y in each.y if y is not None), default=None)
    if low is None or not levels or low >= min(levels) - BELOW:
        return None
    return view_from(min(levels) - BELOW, drawn, levels)


def _level(layers: int, runs: Runs, short: bool) -> Level:
    found, label = summarise(runs), str(layers) if short else f"{layers} layers"
    return Level(f"depth-{layers}", label, number(found.mean) or 0.0, number(found.low), number(found.high))


def _against_accuracy(curves: Curves, what: str) -> Panel:
    """Accuracy against a distance: P-reg as a path through its μ, the depths as points."""
    drawn = [
        _both(method, words.method(method), curves.places[what][method], curves.places["accuracy"][method])
        for method in METHODS
    ]
    for layers in DEPTHS:
        if layers in curves.levels[what] and layers in curves.levels["accuracy"]:
            x, y = (Place(0.0, curves.levels[each][layers], 0) for each in (what, "accuracy"))
            one = _both(f"depth-{layers}", f"{layers}-layer GCN", [x], [y])
            drawn.append(Series(**(vars(one) | {"kind": "points"})))
    name = QUANTITIES[what][1]
    return Panel(
        f"accuracy against {name}",
        QUANTITIES[what][0],
        "test accuracy in %",
        tuple(drawn),
        y_view=_view(curves, drawn),
        empty="" if any(not each.empty for each in drawn) else f"no {name} is recorded",
    )


def _both(key: str, label: str, across: list[Place], up: list[Place]) -> Series:
    x, y = series(key, label, across, 0), series(key, label, up, 0)
    return Series(key, label, x.y, y.y, y.low, y.high, x.low, x.high, y.runs, notes=y.notes)


def _worth(curves: Curves) -> Panel:
    """The depth that a μ is worth."""
    drawn, notes = [], []
    for method, reading in curves.readings.items():
        if reading.why:
            notes.append(f"{words.method(method)}: {reading.why}")
        x: tuple[Value, ...] = tuple(number(mu) for mu in reading.strengths)
        ys = tuple(number(value) for value in reading.depths)
        low, high = (tuple(number(v) for v in end) for end in (reading.low, reading.high))
        drawn.append(Series(method, words.method(method), x, ys, low, high))
    levels = [Level(f"depth-{layers}", f"{layers} layers", float(layers)) for layers in DEPTHS]
    nothing = all(each.empty for each in drawn)
    return Panel(
        "depth that a μ is worth",
        "strength μ",
        "layers, by scale-free ω",
        tuple(drawn),
        tuple(levels),
        x_view=(0.0, 1.0),
        y_view=(1.9, 4.1),
        notes=tuple(notes) if not nothing else (),
        empty="\n".join(notes) if nothing else "",
    )
