"""Table 1 as a picture: what each method adds to the plain model, per dataset, with intervals."""

from propreg.names import dataset_title, model_title
from propreg.statistics import Difference, paired
from propreg.store.results import Results
from propreg.study.figures.curves import (
    Picked,
    difference_phrase,
    gain,
    in_rows,
    lines_of,
    method_label,
    missing_phrase,
    missing_phrases,
    per_cell,
    picked,
    runs_phrase,
    the_line,
)
from propreg.study.figures.parts import Figure, Level, Panel, Series, number
from propreg.study.spec.experiment import Experiment, load_experiment
from propreg.study.spec.paper import paper_gain, paper_number
from propreg.study.tables.rows import signed
from propreg.study.tables.text import Listing

METHODS = ("preg-reference", "preg-paper", "label_smoothing", "confidence_penalty-paper", "laplacian-mean")
"""The paper's definitions; the table has the other forms too."""
MODELS = ("gcn", "gat", "mlp")
BASELINES = METHODS[2:]
FINDING = (
    "The official-code form of P-reg is significantly better than the plain model on six of seven datasets for GCN and "
    "GAT and on all for MLP. It is ahead of the three other regularizers everywhere but for GAT on PubMed, as in the "
    "paper, though significantly so on fewer than five datasets for each model."
)
Chosen = dict[tuple[str, str, str], Picked | None]
Gains = dict[tuple[str, str, str], Difference]
"""By model, dataset and method."""


def table1_gains(results: Results) -> Figure:
    """The figure, from recorded runs."""
    experiment = load_experiment("table1")
    datasets = experiment.datasets
    chosen: Chosen = {
        (m, d, name): picked(results, the_line(experiment, model=m, dataset=d, method=name))
        for m in MODELS
        for d in datasets
        for name in METHODS
    }
    gains = {key: found for key, each in chosen.items() if (found := gain(results, each)) is not None}
    shown = {
        m: {method_label(name): lines_of(experiment, model=m, method=name) for name in ("plain", *METHODS)}
        for m in MODELS
    }
    return Figure(
        "table1",
        "What regularizers add to the plain model: test accuracy, random splits",
        "Difference of test accuracy to the plain model on the same splits and seeds, strength picked on validation.",
        f"Dot and bar: mean of {runs_phrase(experiment.lines[0])} and its 95 % interval; ◇: the difference of the "
        "paper's means, whose strengths seem to be picked on test.",
        "P-reg improves GCN, GAT and MLP on almost all datasets, and more than the other regularizers do.",
        FINDING,
        missing_phrases(results, {model_title(m): lines for m, lines in shown.items()}),
        tuple(_panel(experiment, results, model, datasets, gains) for model in MODELS),
        columns=len(MODELS),
        listings=_listings(datasets, gains, chosen),
    )


def _panel(experiment: Experiment, results: Results, model: str, datasets: list[str], gains: Gains) -> Panel:
    drawn = []
    for name in METHODS:
        found = [gains.get((model, d, name)) for d in datasets]
        notes = ["" if each is None else difference_phrase(each) for each in found]
        lines = lines_of(experiment, model=model, method=name)
        missing = missing_phrase(f"{model_title(model)}, {method_label(name)}", results, lines)
        drawn.append(in_rows(name, method_label(name), found, per_cell(lines[0]), notes, missing))
    nothing = all(each.empty for each in drawn)
    every = [line for name in ("plain", *METHODS) for line in lines_of(experiment, model=model, method=name)]
    return Panel(
        model_title(model),
        "points above the plain model",
        "",
        (*drawn, *(() if nothing else _papers(model, datasets))),
        (Level("plain", f"plain {model_title(model)}", 0.0, axis="x"),),
        y_names=tuple(map(dataset_title, datasets)),
        empty=missing_phrase(model_title(model), results, every) if nothing else "",
    )


def _papers(model: str, datasets: list[str]) -> list[Series]:
    """The paper's differences, one series for each method so that each is beside ours."""
    out = []
    for name in METHODS:
        if name == "preg-paper":
            continue  # the paper has one P-reg, which its code computed in the reference preset
        gains = [paper_gain("table1", model, name, d) for d in datasets]
        found = [None if each is None else number(each) for each in gains]
        rows = tuple(map(float, range(len(datasets))))
        out.append(Series(f"paper:{name}", f"paper, {method_label(name)}", tuple(found), rows, kind="points"))
    return out


def _listings(datasets: list[str], gains: Gains, chosen: Chosen) -> tuple[Listing, ...]:
    methods = []
    for model, name in ((model, name) for model in MODELS for name in METHODS):
        mine = [gains[model, d, name] for d in datasets if (model, d, name) in gains]
        if mine:
            means = sorted(each.mean for each in mine)
            counts = [str(sum(each.verdict == word for each in mine)) for word in ("better", "worse")]
            label = f"{model_title(model)} + {method_label(name)}"
            methods.append((label, f"{signed(means[0])} to {signed(means[-1])}", *counts, str(len(mine))))
    ahead = [row for model in MODELS if (row := _ahead(model, datasets, chosen)) is not None]
    return (
        Listing(
            "Against the plain model: points from the lowest to the highest dataset, and on how many it is significant",
            ("", "points", "better", "worse", "of"),
            tuple(methods),
        ),
        Listing(
            f"{method_label(METHODS[0])} ahead of all {len(BASELINES)} baselines, in number of datasets",
            ("", "ahead", "significantly", "of", "the paper differs on"),
            tuple(ahead),
        ),
    )


def _ahead(model: str, datasets: list[str], chosen: Chosen) -> tuple[str, ...] | None:
    """On how many datasets P-reg beats every baseline, and where the paper's means do not agree."""
    won, significant = {}, 0
    for d in datasets:
        mine, others = chosen[model, d, METHODS[0]], [chosen[model, d, name] for name in BASELINES]
        apart = [paired(mine.test, other.test) for other in others if mine is not None and other is not None]
        if len(apart) == len(BASELINES):
            won[d] = all(each.mean > 0 for each in apart)
            significant += all(each.verdict == "better" for each in apart)
    if not won:
        return None
    differs = ", ".join(dataset_title(d) for d, mine in won.items() if mine != _paper_ahead(model, d)) or "–"
    return model_title(model), str(sum(won.values())), str(significant), str(len(won)), differs


def _paper_ahead(model: str, dataset: str) -> bool:
    means = [paper_number("table1", model, name, dataset) for name in (METHODS[0], *BASELINES)]
    known = [found[0] for found in means if found is not None]
    return known[0] > max(known[1:])
