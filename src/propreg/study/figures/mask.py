"""Figure 2b: accuracy against the share α of nodes that P-reg acts on, on all seven datasets."""

import statistics

from propreg.statistics import Difference, paired
from propreg.study.experiment import Experiment, load_experiment
from propreg.study.figures import words
from propreg.study.figures.measured import (
    Place,
    all_lacking,
    behind,
    count,
    lacking,
    lines_of,
    per_cell,
    said,
    series,
    test_runs,
    the_line,
)
from propreg.study.figures.parts import Figure, Panel, Series, number
from propreg.study.paper import paper_number
from propreg.study.results import Results
from propreg.study.telling import told

METHOD = "preg-reference"


def mask(results: Results) -> Figure:
    """The figure, from recorded runs."""
    experiment = load_experiment("fig-mask")
    datasets = list(dict.fromkeys(line.dataset for line in experiment.lines))
    models = list(dict.fromkeys(line.model for line in experiment.lines))
    curves = {(d, m): _curve(experiment, results, d, m) for d in datasets for m in models}
    return Figure(
        "fig-mask",
        experiment.title,
        "Test accuracy against the unmask ratio α: P-reg acts on a share α of the nodes, from none (the plain model) "
        "to all; masks are nested per split and seed, and μ is fixed.",
        f"Line and band: mean of {behind(experiment.lines[0])} and its 95 % interval; ◇: the paper's "
        "Table 1, plain (α = 0) and with P-reg (α = 1); "
        f"μ beside a name: {' / '.join(words.model(m) for m in models)}. The term is a mean over the nodes it acts "
        "on, as in the paper: the fewer they are, the more each counts.",
        "accuracy generally rises with α and then becomes stable, on all datasets.",
        said(sentence for model in models for sentence in _found(model, datasets, curves)),
        all_lacking(
            results,
            {
                words.model(m): {words.dataset(d): lines_of(experiment, dataset=d, model=m) for d in datasets}
                for m in models
            },
        ),
        tuple(_panel(experiment, results, d, models, curves) for d in datasets),
        columns=4,
    )


def _curve(experiment: Experiment, results: Results, dataset: str, model: str) -> list[Place]:
    plain = the_line(experiment, dataset=dataset, model=model, method="plain")
    cell = plain.cells[0]
    places = [Place(0.0, test_runs(results, plain, cell), count(results, plain, cell))]
    for line in lines_of(experiment, dataset=dataset, model=model, method=METHOD):
        cell = line.cells[0]
        places.append(Place(cell.unmask, test_runs(results, line, cell), count(results, line, cell)))
    return sorted(places, key=lambda place: place.x)


def _strength(experiment: Experiment, dataset: str, model: str) -> float:
    return lines_of(experiment, dataset=dataset, model=model, method=METHOD)[0].cells[0].strength


def _panel(
    experiment: Experiment,
    results: Results,
    dataset: str,
    models: list[str],
    curves: dict[tuple[str, str], list[Place]],
) -> Panel:
    drawn, papers, notes = [], [], []
    for model in models:
        lines = lines_of(experiment, dataset=dataset, model=model)
        missing = lacking(words.model(model), results, lines)
        one = series(model, words.model(model), curves[dataset, model], per_cell(lines[0]), missing)
        drawn.append(one)
        notes.append(f"{_strength(experiment, dataset, model):g}")
        if not one.empty:
            papers.append(_paper(model, dataset))
    nothing = all(one.empty for one in drawn)
    return Panel(
        words.dataset(dataset),
        "unmask ratio α",
        "test accuracy in %",
        (*drawn, *papers),
        x_view=(0.0, 1.0),
        notes=(f"μ {' / '.join(notes)}",),
        empty=lacking(words.dataset(dataset), results, lines_of(experiment, dataset=dataset)) if nothing else "",
    )


def _paper(model: str, dataset: str) -> Series:
    """Table 1 at both ends."""
    found = [paper_number("table1", model, name, name.partition("-")[0], dataset) for name in ("plain", METHOD)]
    values = tuple(None if each is None else number(each[0]) for each in found)
    return Series(f"paper:{model}", f"paper, {words.model(model)}", (0.0, 1.0), values, kind="points")


def _found(model: str, datasets: list[str], curves: dict[tuple[str, str], list[Place]]) -> list[str]:
    name = words.model(model)
    gains = {d: found for d in datasets if (found := _gain(curves[d, model])) is not None}
    if not gains:
        return []
    better = [d for d, found in gains.items() if found.mean > 0]
    surely = [d for d, found in gains.items() if told(found) == "better"]
    worse = [d for d, found in gains.items() if told(found) == "worse"]
    best = max(gains, key=lambda d: gains[d].mean)
    text = (
        f"{name}: all nodes (α = 1) beat none on {len(better)} of {len(gains)} datasets, surely on "
        f"{len(surely)}, the most on {words.dataset(best)}, {words.points(gains[best])}"
    )
    if worse:
        text += f"; they are surely worse on {words.listed([words.dataset(d) for d in worse])}"
    out = [text + f", {words.agrees(len(better) == len(gains), len(gains) == len(datasets))}."]
    whole = [d for d in surely if all(place.mean is not None for place in curves[d, model])]
    if whole:
        shares = sorted(_share_of_gain(curves[d, model]) for d in whole)
        recorded = "" if whole == surely else f" and every α is recorded ({len(whole)} of {len(surely)} datasets)"
        out.append(
            f"{name}: where they surely do{recorded}, α = {curves[whole[0], model][1].x:g} already brings "
            f"{shares[0]:.0f} to {shares[-1]:.0f} % of the gain (middle {statistics.median(shares):.0f} %)."
        )
    return out


def _gain(places: list[Place]) -> Difference | None:
    first, last = places[0], places[-1]
    return None if first.values is None or last.values is None else paired(last.values, first.values)


def _share_of_gain(places: list[Place]) -> float:
    """How much of the gain at α = 1 the smallest α has, in per cent."""
    none, few, *_, everyone = (place.mean or 0.0 for place in places)
    return 100 * (few - none) / (everyone - none)
