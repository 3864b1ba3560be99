"""Figure 4: the intra-class distance ω and accuracy, of GCNs of 2, 3 and 4 layers and of P-reg against μ."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from propreg.names import dataset_title, model_title
from propreg.statistics import Runs, paired, summarize
from propreg.store.errors import unknown
from propreg.store.results import Results
from propreg.study.figures.curves import (
    Point,
    count,
    difference_phrase,
    lines_of,
    measures,
    method_label,
    missing_phrase,
    missing_phrases,
    per_cell,
    percent,
    runs_phrase,
    series,
    test_runs,
    view_from,
)
from propreg.study.figures.equivalent_depth import EquivalentDepth, equivalent_depth
from propreg.study.figures.parts import Figure, Level, Panel, Series, Value, number
from propreg.study.spec.experiment import Experiment, load_experiment
from propreg.study.spec.part import Line
from propreg.study.tables.text import Listing

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
FINDING = (
    "ω itself rises with depth on every dataset, against the paper. Scale-free ω falls with depth on Cora, Computers "
    "and Photo, is inconclusive on the others, and falls with μ in 13 of 14 curves. Accuracy is best at a μ below 1 in "
    "11 of 14 curves, on Cora at 0.5 (official-code form) and 0.4 (paper form), by scale-free ω a GCN of 3.2 to 3.3 "
    "layers; the paper names 0.7, between 2 and 3 layers."
)


@dataclass(frozen=True)
class Curves:
    """What is recorded of a dataset: for each quantity the runs of each depth and the points of each method."""

    dataset: str
    levels: dict[str, dict[int, Runs]]
    points: dict[str, dict[str, list[Point]]]
    worth: dict[str, EquivalentDepth]


def depth(results: Results, dataset: str | None = None) -> Figure:
    """The figure of one dataset (Cora by default), or ``"all"`` as small multiples."""
    experiment = load_experiment("fig-depth")
    known = experiment.datasets
    wanted = (dataset or "cora").lower()
    if wanted not in (*known, "all"):
        raise unknown("dataset of fig-depth", wanted, (*known, "all"))
    chosen = known if wanted == "all" else [wanted]
    curves = [_curves(experiment, results, name) for name in chosen]
    if wanted == "all":
        panels = [
            _against_strength(experiment, results, each, what, short=True) for what in QUANTITIES for each in curves
        ]
    else:
        panels = [_against_strength(experiment, results, curves[0], what) for what in QUANTITIES]
        panels += [_against_accuracy(curves[0], what) for what in ("omega", "scale-free")]
        panels.append(_equivalent(curves[0]))
    asked = {dataset_title(d): {_label(x): [x] for x in lines_of(experiment, dataset=d)} for d in chosen}
    return Figure(
        "fig-depth",
        f"Fig. 4: intra-class distance and depth, {'seven datasets' if wanted == 'all' else dataset_title(wanted)}",
        "The average distance ω of a node's output to the mean of its class, at the reported epoch (the latest with "
        "the best validation accuracy), of plain GCNs of 2, 3 and 4 layers and of a 2-layer GCN with P-reg against "
        "μ; scale-free ω is ω over the outputs' mean length, which does not change when all outputs grow.",
        f"Lines and bands: mean of {runs_phrase(experiment.lines[0])} and its 95 % interval; horizontal lines and "
        "digits: plain GCNs of so many layers; ▾: lies below the axis.",
        "ω falls with more layers and with larger μ; accuracy rises and then falls, on Cora best at μ = 0.7 between "
        "the 2- and the 3-layer GCN; other datasets behave alike.",
        "" if missing_phrase("", results, experiment.lines) else FINDING,  # it is about all datasets
        missing_phrases(results, asked),
        tuple(panels),
        len(curves) if wanted == "all" else 3,
        listings=_listings(curves),
    )


def _label(line: Line) -> str:
    return line.method.title if line.method.method != "plain" else model_title(line.model)


def _values(results: Results, line: Line, at: int, what: str) -> Runs | None:
    cell = line.cells[at]
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
    points: dict[str, dict[str, list[Point]]] = {what: {} for what in QUANTITIES}
    for what in QUANTITIES:
        for layers, model in DEPTHS.items():
            (line,) = lines_of(experiment, dataset=dataset, model=model, method="plain")
            found = _values(results, line, 0, what)
            if found is not None:
                levels[what][layers] = found
        for method in METHODS:
            (line,) = lines_of(experiment, dataset=dataset, method=method)
            start = [Point(0.0, levels[what].get(2), per_cell(line))] if 2 in levels[what] else []
            points[what][method] = start + [
                Point(c.strength, _values(results, line, i, what), count(results, line, c), f"μ = {c.strength:g}")
                for i, c in enumerate(line.cells)
            ]
    worth = {name: equivalent_depth(levels["scale-free"], points["scale-free"][name]) for name in METHODS}
    return Curves(dataset, levels, points, worth)


def _against_strength(
    experiment: Experiment, results: Results, curves: Curves, what: str, short: bool = False
) -> Panel:
    drawn, lines = [], lines_of(experiment, dataset=curves.dataset)
    for method in METHODS:
        (line,) = lines_of(experiment, dataset=curves.dataset, method=method)
        missing = missing_phrase(method_label(method), results, [line])
        drawn.append(series(method, method_label(method), curves.points[what][method], per_cell(line), missing))
    levels = [_level(layers, runs, short) for layers, runs in curves.levels[what].items()]
    if what == "accuracy" and curves.dataset == "cora" and not short:
        levels.append(Level("paper", "paper: best at μ = 0.7", BEST, axis="x", source="paper"))
    label, name = QUANTITIES[what]
    label = label.split(" of ")[0].split(", ")[0] if short else label
    title = dataset_title(curves.dataset) * (what == "omega") if short else f"{name} against μ"
    nothing = all(each.empty for each in drawn) and not curves.levels[what]
    why = missing_phrase(dataset_title(curves.dataset), results, lines) or f"no {name} is recorded"
    return Panel(
        title,
        "strength μ",
        label,
        tuple(drawn),
        tuple(levels),
        x_view=(0.0, 1.0),
        y_view=_view(curves, drawn) if what == "accuracy" else None,
        empty=why if nothing else "",
    )


def _view(curves: Curves, drawn: list[Series]) -> tuple[float, float] | None:
    """From a little below the deepest GCN, since a strong P-reg collapses and would hide the rest."""
    levels = [float(runs.mean()) for runs in curves.levels["accuracy"].values()]
    low = min((y for each in drawn for y in each.y if y is not None), default=None)
    if low is None or not levels or low >= min(levels) - BELOW:
        return None
    return view_from(min(levels) - BELOW, drawn, levels)


def _level(layers: int, runs: Runs, short: bool) -> Level:
    found, label = summarize(runs), str(layers) if short else f"{layers} layers"
    return Level(f"depth-{layers}", label, number(found.mean) or 0.0, number(found.low), number(found.high))


def _against_accuracy(curves: Curves, what: str) -> Panel:
    """Accuracy against a distance: P-reg as a path through its μ, the depths as points."""
    drawn = [
        _both(method, method_label(method), curves.points[what][method], curves.points["accuracy"][method])
        for method in METHODS
    ]
    for layers in DEPTHS:
        if layers in curves.levels[what] and layers in curves.levels["accuracy"]:
            x, y = (Point(0.0, curves.levels[each][layers], 0) for each in (what, "accuracy"))
            one = _both(f"depth-{layers}", f"{layers}-layer GCN", [x], [y])
            drawn.append(Series(**(vars(one) | {"kind": "points"})))
    label, name = QUANTITIES[what]
    nothing = all(each.empty for each in drawn)
    return Panel(
        f"accuracy against {name}",
        label,
        "test accuracy in %",
        tuple(drawn),
        y_view=_view(curves, drawn),
        empty=f"no {name} is recorded" if nothing else "",
    )


def _both(key: str, label: str, across: list[Point], up: list[Point]) -> Series:
    x, y = series(key, label, across, 0), series(key, label, up, 0)
    return Series(key, label, x.y, y.y, y.low, y.high, x.low, x.high, y.runs, notes=y.notes)


def _equivalent(curves: Curves) -> Panel:
    """The depth that a μ is worth."""
    drawn, notes = [], []
    for method, worth in curves.worth.items():
        if worth.why:
            notes.append(f"{method_label(method)}: {worth.why}")
        x: tuple[Value, ...] = tuple(number(mu) for mu in worth.strengths)
        ys = tuple(number(value) for value in worth.depths)
        low, high = (tuple(number(v) for v in end) for end in (worth.low, worth.high))
        drawn.append(Series(method, method_label(method), x, ys, low, high))
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
        notes=() if nothing else tuple(notes),
        empty="\n".join(notes) if nothing else "",
    )


def _listings(curves: Sequence[Curves]) -> tuple[Listing, ...]:
    """ω with depth, ω with μ, and accuracy with μ: how many steps are significant, and the best μ."""
    by_depth = [row for each in curves for what in ("omega", "scale-free") if (row := _depth_row(each, what))]
    by_strength = [
        row
        for each in curves
        for method in METHODS
        for what in ("omega", "scale-free")
        if (row := _strength_row(each, method, what))
    ]
    accuracy = [row for each in curves for method in METHODS if (row := _accuracy_row(each, method))]
    steps = ("significant falls", "rises", "of")
    return (
        Listing("With more layers", ("", *(f"{layers} layers" for layers in DEPTHS), *steps), tuple(by_depth)),
        Listing("With larger μ", ("", "smallest μ", "largest μ", *steps, "from end to end"), tuple(by_strength)),
        Listing(
            "Accuracy with μ",
            ("", "best μ", "accuracy", "minus plain", "verdict", "largest μ minus best", "verdict", "worth in layers"),
            tuple(accuracy),
        ),
    )


def _steps(runs: Sequence[Runs]) -> tuple[str, str, str]:
    """How many steps significantly fall and rise, and how many there are."""
    verdicts = [paired(after, before).verdict for before, after in itertools.pairwise(runs)]
    return str(verdicts.count("worse")), str(verdicts.count("better")), str(len(verdicts))


def _depth_row(curves: Curves, what: str) -> tuple[str, ...] | None:
    levels = curves.levels[what]
    if len(levels) < 2:
        return None
    means = (f"{float(levels[each].mean()):.3g}" if each in levels else "" for each in DEPTHS)
    name = f"{dataset_title(curves.dataset)}: {QUANTITIES[what][1]}"
    return name, *means, *_steps([levels[each] for each in sorted(levels)])


def _strength_row(curves: Curves, method: str, what: str) -> tuple[str, ...] | None:
    known = [(point.x, point.values) for point in curves.points[what][method] if point.values is not None]
    if len(known) < 2:
        return None
    runs = [each for _, each in known]
    ends = (f"{float(each.mean()):.3g} (μ = {x:g})" for x, each in (known[0], known[-1]))
    # Better means larger here, which for ω is against the paper.
    whole = {"worse": "falls", "better": "rises"}.get(paired(runs[-1], runs[0]).verdict, "inconclusive")
    name = f"{dataset_title(curves.dataset)}, {method_label(method)}: {QUANTITIES[what][1]}"
    return name, *ends, *_steps(runs), whole


def _accuracy_row(curves: Curves, method: str) -> tuple[str, ...] | None:
    points = curves.points["accuracy"][method]
    known = [(point.x, point.values) for point in points if point.values is not None]
    if len(known) < 2 or len(known) < len(points):
        return None
    means = [float(runs.mean()) for _, runs in known]
    best = int(np.argmax(np.round(means, 9)))
    mu, runs = known[best]
    ends = [paired(runs, known[0][1]) if best else None, paired(known[-1][1], runs) if mu < known[-1][0] else None]
    apart = [text for each in ends for text in (("", "") if each is None else (difference_phrase(each), each.verdict))]
    layers = dict(zip(curves.worth[method].strengths, curves.worth[method].depths, strict=True)).get(mu)
    name = f"{dataset_title(curves.dataset)}, {method_label(method)}"
    return name, f"{mu:g}", percent(means[best]), *apart, "" if layers is None else f"{layers:.1f}"
