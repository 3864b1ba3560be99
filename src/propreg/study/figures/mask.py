"""Figure 2b: accuracy against the share α of nodes that P-reg acts on, on all seven datasets."""

from propreg.names import dataset_title, model_title
from propreg.statistics import paired
from propreg.store.results import Results
from propreg.study.figures.curves import (
    Point,
    count,
    difference_phrase,
    lines_of,
    missing_phrase,
    missing_phrases,
    per_cell,
    runs_phrase,
    series,
    test_runs,
    the_line,
)
from propreg.study.figures.parts import Figure, Panel, Series, number
from propreg.study.spec.experiment import Experiment, load_experiment
from propreg.study.spec.paper import paper_number
from propreg.study.tables.text import Listing

METHOD = "preg-reference"
FINDING = (
    "P-reg on all nodes makes GCN and GAT more accurate on all seven datasets, significantly on six; with α = 0.1 most "
    "of that gain is there already."
)
Curves = dict[tuple[str, str], list[Point]]
"""By dataset and model, from α = 0 to 1."""


def mask(results: Results) -> Figure:
    """The figure, from recorded runs."""
    experiment = load_experiment("fig-mask")
    datasets = experiment.datasets
    models = experiment.models
    curves = {(d, m): _curve(experiment, results, d, m) for d in datasets for m in models}
    by_dataset = {m: {dataset_title(d): lines_of(experiment, dataset=d, model=m) for d in datasets} for m in models}
    return Figure(
        "fig-mask",
        experiment.title,
        "Test accuracy against the unmask ratio α: P-reg acts on a share α of the nodes, from none (the plain model) "
        "to all; masks are nested per split and seed, and μ is fixed.",
        f"Line and band: mean of {runs_phrase(experiment.lines[0])} and its 95 % interval; ◇: the paper's Table 1, "
        f"plain (α = 0) and with P-reg (α = 1); μ beside a name: {' / '.join(map(model_title, models))}. The term is a "
        "mean over the nodes it acts on, as in the paper: the fewer they are, the more each counts.",
        "accuracy generally rises with α and then becomes stable, on all datasets.",
        FINDING,
        missing_phrases(results, {model_title(m): lines for m, lines in by_dataset.items()}),
        tuple(_panel(experiment, results, d, models, curves) for d in datasets),
        columns=4,
        listings=_listings(models, datasets, curves),
    )


def _curve(experiment: Experiment, results: Results, dataset: str, model: str) -> list[Point]:
    plain = the_line(experiment, dataset=dataset, model=model, method="plain")
    points = [Point(0.0, test_runs(results, plain, plain.cells[0]), count(results, plain, plain.cells[0]))]
    for line in lines_of(experiment, dataset=dataset, model=model, method=METHOD):
        cell = line.cells[0]
        points.append(Point(cell.unmask, test_runs(results, line, cell), count(results, line, cell)))
    return sorted(points, key=lambda point: point.x)


def _panel(experiment: Experiment, results: Results, dataset: str, models: list[str], curves: Curves) -> Panel:
    drawn, papers, strengths = [], [], []
    for model in models:
        lines = lines_of(experiment, dataset=dataset, model=model)
        missing = missing_phrase(model_title(model), results, lines)
        one = series(model, model_title(model), curves[dataset, model], per_cell(lines[0]), missing)
        drawn.append(one)
        preg = lines_of(experiment, dataset=dataset, model=model, method=METHOD)[0]
        strengths.append(f"{preg.cells[0].strength:g}")
        if not one.empty:
            papers.append(_paper(model, dataset))
    nothing = all(one.empty for one in drawn)
    return Panel(
        dataset_title(dataset),
        "unmask ratio α",
        "test accuracy in %",
        (*drawn, *papers),
        x_view=(0.0, 1.0),
        notes=(f"μ {' / '.join(strengths)}",),
        empty=missing_phrase(dataset_title(dataset), results, lines_of(experiment, dataset=dataset)) * nothing,
    )


def _paper(model: str, dataset: str) -> Series:
    """Table 1 at both ends."""
    found = [paper_number("table1", model, name, dataset) for name in ("plain", METHOD)]
    values = tuple(None if each is None else number(each[0]) for each in found)
    return Series(f"paper:{model}", f"paper, {model_title(model)}", (0.0, 1.0), values, kind="points")


def _listings(models: list[str], datasets: list[str], curves: Curves) -> tuple[Listing, ...]:
    """What P-reg on all nodes adds, and how much of that the smallest α does."""
    rows = []
    for model, dataset in ((model, dataset) for model in models for dataset in datasets):
        first, *_, last = points = curves[dataset, model]
        if first.values is None or last.values is None:
            continue
        gain = paired(last.values, first.values)
        complete = gain.verdict == "better" and all(point.values is not None for point in points)
        share = f"{_share_of_gain(points):.0f} %" if complete else ""
        name = f"{model_title(model)}, {dataset_title(dataset)}"
        rows.append((name, difference_phrase(gain), gain.verdict, share))
    smallest = curves[datasets[0], models[0]][1].x
    head = ("", "points (95 % interval)", "verdict", f"of it with α = {smallest:g}")
    return (Listing("All nodes (α = 1) minus none (α = 0)", head, tuple(rows)),)


def _share_of_gain(points: list[Point]) -> float:
    """How much of the gain at α = 1 the smallest α has, in percent."""
    none, few, *_, everyone = (point.mean or 0.0 for point in points)
    return 100 * (few - none) / (everyone - none)
