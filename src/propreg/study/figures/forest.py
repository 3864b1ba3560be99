"""Table 1 as a picture: what each method adds to the plain model, per dataset, with intervals."""

from propreg.statistics import Difference, paired
from propreg.study.experiment import Experiment, Line, load_experiment
from propreg.study.figures import words
from propreg.study.figures.measured import (
    Picked,
    all_lacking,
    behind,
    gain,
    lacking,
    lines_of,
    per_cell,
    picked,
    said,
    the_line,
)
from propreg.study.figures.parts import Figure, Level, Panel, Series, number
from propreg.study.paper import paper_number
from propreg.study.results import Results
from propreg.study.telling import told

METHODS = ("preg-reference", "preg-paper", "label_smoothing", "confidence_penalty-paper", "laplacian-mean")
"""The paper's definitions; the table has the other forms too."""
MODELS = ("gcn", "gat", "mlp")
BASELINES = METHODS[2:]
Chosen = dict[tuple[str, str, str], Picked | None]


def forest(results: Results) -> Figure:
    """The figure, from recorded runs."""
    experiment = load_experiment("table1")
    datasets = list(dict.fromkeys(line.dataset for line in experiment.lines))
    chosen: Chosen = {
        (m, d, name): picked(results, the_line(experiment, model=m, dataset=d, method=name))
        for m in MODELS
        for d in datasets
        for name in METHODS
    }
    gains = {place: found for place, each in chosen.items() if (found := gain(results, each)) is not None}
    return Figure(
        "table1",
        "What regularisers add to the plain model: test accuracy, random splits",
        "Difference of test accuracy to the plain model on the same splits and seeds, strength picked on validation.",
        f"Dot and bar: mean of {behind(experiment.lines[0])} and its 95 % interval; ◇: the "
        "difference of the paper's means, whose strengths seem to be picked on test.",
        "P-reg improves GCN, GAT and MLP on almost all datasets, and more than the other regularisers do.",
        said(sentence for model in MODELS for sentence in _found(model, datasets, gains, chosen)),
        all_lacking(
            results,
            {
                words.model(m): {
                    words.method(name): lines_of(experiment, model=m, method=name) for name in ("plain", *METHODS)
                }
                for m in MODELS
            },
        ),
        tuple(_panel(experiment, results, model, datasets, gains) for model in MODELS),
        columns=len(MODELS),
    )


def _shown(experiment: Experiment, model: str) -> list[Line]:
    return [line for name in ("plain", *METHODS) for line in lines_of(experiment, model=model, method=name)]


def _lacking(experiment: Experiment, results: Results, model: str, method: str) -> str:
    lines = lines_of(experiment, model=model, method=method)
    return lacking(f"{words.model(model)}, {words.method(method)}", results, lines)


def _panel(
    experiment: Experiment,
    results: Results,
    model: str,
    datasets: list[str],
    gains: dict[tuple[str, str, str], Difference],
) -> Panel:
    drawn = []
    for name in METHODS:
        found = [gains.get((model, d, name)) for d in datasets]
        drawn.append(
            Series(
                name,
                words.method(name),
                tuple(None if each is None else number(each.mean) for each in found),
                tuple(float(i) for i in range(len(datasets))),
                x_low=tuple(None if each is None else number(each.low) for each in found),
                x_high=tuple(None if each is None else number(each.high) for each in found),
                runs=tuple(0 if each is None else per_cell(experiment.lines[0]) for each in found),
                of=per_cell(experiment.lines[0]),
                notes=tuple("" if each is None else words.points(each) for each in found),
                kind="points",
                missing=_lacking(experiment, results, model, name),
            )
        )
    nothing = all(each.empty for each in drawn)
    return Panel(
        words.model(model),
        "points above the plain model",
        "",
        (*drawn, *(() if nothing else _papers(model, datasets))),
        (Level("plain", f"plain {words.model(model)}", 0.0, axis="x"),),
        y_names=tuple(words.dataset(d) for d in datasets),
        empty=lacking(words.model(model), results, _shown(experiment, model)) if nothing else "",
    )


def _papers(model: str, datasets: list[str]) -> list[Series]:
    """The paper's differences, one series for each method so that each stands beside ours."""
    out = []
    for name in METHODS:
        if name == "preg-paper":
            continue  # the paper has one P-reg, which its code computed as the reference preset
        found = []
        for d in datasets:
            base = paper_number("table1", model, "plain", "plain", d)
            mine = paper_number("table1", model, name, name.partition("-")[0], d)
            found.append(None if base is None or mine is None else number(mine[0] - base[0]))
        places = tuple(float(i) for i in range(len(datasets)))
        out.append(Series(f"paper:{name}", f"paper, {words.method(name)}", tuple(found), places, kind="points"))
    return out


def _found(model: str, datasets: list[str], gains: dict[tuple[str, str, str], Difference], chosen: Chosen) -> list[str]:
    out = []
    for name in METHODS:
        mine = {d: gains[model, d, name] for d in datasets if (model, d, name) in gains}
        if not mine:
            continue
        surely = sum(told(each) == "better" for each in mine.values())
        harms = [words.dataset(d) for d, each in mine.items() if told(each) == "worse"]
        means = [each.mean for each in mine.values()]
        out.append(
            f"{words.model(model)} + {words.method(name)}: {words.from_to(means)} points, surely better on "
            f"{surely} of {len(mine)} datasets" + (f", surely worse on {words.listed(harms)}." if harms else ".")
        )
    ahead = _ahead(model, datasets, chosen)
    return out + ([ahead] if ahead else [])


def _ahead(model: str, datasets: list[str], chosen: Chosen) -> str:
    """Where P-reg beats every baseline, and whether the paper's means say so of the same datasets."""
    won, surely = {}, 0
    for d in datasets:
        mine, others = chosen[model, d, METHODS[0]], [chosen[model, d, name] for name in BASELINES]
        apart = [paired(mine.test, other.test) for other in others if mine is not None and other is not None]
        if len(apart) == len(BASELINES):
            won[d] = all(each.mean > 0 for each in apart)
            surely += all(told(each) == "better" for each in apart)
    if not won:
        return ""
    unlike = [words.dataset(d) for d, mine in won.items() if mine != _paper_ahead(model, d)]
    agrees = words.agrees(not unlike, len(won) == len(datasets)) + (f" of {words.listed(unlike)}" if unlike else "")
    return (
        f"{words.model(model)}: {words.method(METHODS[0])} is ahead of all {len(BASELINES)} baselines on "
        f"{sum(won.values())} of {len(won)} datasets, surely on {surely}, {agrees}."
    )


def _paper_ahead(model: str, dataset: str) -> bool:
    means = [paper_number("table1", model, name, name.partition("-")[0], dataset) for name in (METHODS[0], *BASELINES)]
    known = [found[0] for found in means if found is not None]
    return known[0] > max(known[1:])
