"""Figure 3: t-SNE of outputs on CiteSeer, from the record of one run per method, with numbers beside it."""

import numpy as np

from propreg.statistics import Runs, summarize
from propreg.store.results import Results
from propreg.study.figures.curves import lines_of, measures, method_label, missing_phrase, test_runs, the_line
from propreg.study.figures.parts import Figure, Panel, Series
from propreg.study.figures.tsne_record import Cloud, TsneRecord
from propreg.study.spec.experiment import Experiment, load_experiment
from propreg.study.tables.rows import decimals
from propreg.study.tables.text import Listing

MADE_BY = "propreg tsne -o FOLDER/tsne.json.gz makes it, in the folder of the runs"
FINDING = (
    "Both forms of P-reg have the highest silhouette and the smallest ω / mean ‖z‖, as the paper says; ω itself "
    "follows the length of the outputs."
)
LABELS = {"silhouette": "silhouette", "scale-free": "ω / mean ‖z‖", "omega": "ω", "accuracy": "test accuracy"}
DIGITS = {"silhouette": 2, "scale-free": 2, "omega": 2, "accuracy": 1}
HEAD = ("", "silhouette", "ω / mean\n‖z‖", "ω", "accuracy\nin %")
Measured = dict[str, dict[str, Runs]]
"""By method and quantity, [1, seeds]."""


def tsne(results: Results, record: TsneRecord | None) -> Figure:
    """The figure: pictures from the record, ω and accuracy from the runs if all are recorded."""
    experiment = load_experiment("fig-tsne")
    methods = [line.method.name for line in experiment.lines]
    numbers, from_runs = _numbers(experiment, results, record, methods)
    strength = next(line.cells[0].strength for line in experiment.lines if line.method.method != "plain")
    missing = [] if record else [f"the record of outputs is missing: {MADE_BY}"]
    if not record and not from_runs:
        missing += [missing_phrase(method_label(name), results, lines_of(experiment, method=name)) for name in methods]
    source = "the recorded runs (silhouettes: the trainings behind the pictures)" if from_runs else "these trainings"
    return Figure(
        "fig-tsne",
        experiment.title,
        f"t-SNE of the outputs Z of a GCN on CiteSeer, plain and with μ = {strength:g}; a dot is a node, its color "
        "the true class; one training each (split 0, seed 0, reported epoch).",
        f"Numbers: mean and 95 % interval over {len(experiment.lines[0].seeds)} seeds of that split, from {source}. "
        "The silhouette (by true class, higher is better separated) and ω / mean ‖z‖ (lower is more condensed) do not "
        "change when all outputs grow; ω does.",
        "with P-reg the outputs are more condensed within each class and the classes more clearly separated than with "
        "the plain GCN or the Laplacian.",
        FINDING,
        tuple(text for text in missing if text),
        (*(_picture(record, name) for name in methods), _table(methods, numbers)),
        columns=3,
        listings=_listings(methods, numbers),
    )


def _numbers(
    experiment: Experiment, results: Results, record: TsneRecord | None, methods: list[str]
) -> tuple[Measured, bool]:
    """All numbers from one source, and whether the source is the runs; silhouettes are in the record only."""
    found: Measured = {}
    for name in methods:
        line = the_line(experiment, method=name)
        accuracy = test_runs(results, line, line.cells[0])
        omega, length = (measures(results, line, line.cells[0], each) for each in ("omega", "length"))
        if accuracy is not None and omega is not None and length is not None:
            found[name] = {"scale-free": np.asarray(omega / length), "omega": omega, "accuracy": accuracy}
    from_runs = len(found) == len(methods)
    for name in methods:
        cloud = _cloud(record, name)
        if cloud is not None:
            mine = {each: cloud.over_seeds(each) for each in LABELS}
            found[name] = mine | (found[name] if from_runs else {})
    return found, from_runs


def _cloud(record: TsneRecord | None, method: str) -> Cloud | None:
    return None if record is None else next((each for each in record.clouds if each.method == method), None)


def _label(method: str) -> str:
    return "GCN" if method == "plain" else f"GCN + {method_label(method)}"


def _picture(record: TsneRecord | None, method: str) -> Panel:
    cloud = _cloud(record, method)
    if record is None or cloud is None:
        return Panel(_label(method), "", "", empty=f"no outputs recorded:\n{MADE_BY}")
    drawn = []
    for label in sorted(set(record.labels)):
        mine = [place for place, each in zip(cloud.xy, record.labels, strict=True) if each == label]
        xs, ys = tuple(x for x, _ in mine), tuple(y for _, y in mine)
        drawn.append(Series(f"class-{label}", f"class {label}", xs, ys, kind="cloud"))
    notes = [
        f"{LABELS[name]} {decimals(cloud.runs[0].value(name), DIGITS[name])}" for name in ("silhouette", "scale-free")
    ]
    return Panel(_label(method), "", "", tuple(drawn), notes=("this run: " + ", ".join(notes),))


def _table(methods: list[str], numbers: Measured) -> Panel:
    if not numbers:
        return Panel("over all seeds", "", "", empty="no numbers recorded")
    rows = [
        (method_label(m).replace(" (", "\n("), *(_cell(numbers.get(m, {}).get(name), name) for name in LABELS))
        for m in methods
    ]
    return Panel("over all seeds", "", "", table=(HEAD, *rows))


def _listings(methods: list[str], numbers: Measured) -> tuple[Listing, ...]:
    """The same table in lines of text."""
    head = tuple(name.replace("\n", " ") for name in HEAD)
    cells = {m: [_cell(numbers.get(m, {}).get(name), name).partition("\n") for name in LABELS] for m in methods}
    rows = tuple((_label(m), *(f"{mean} ({ends})" if ends else mean for mean, _, ends in cells[m])) for m in methods)
    return (Listing("Mean (95 % interval) over all seeds", head, rows),) if numbers else ()


def _cell(runs: Runs | None, name: str) -> str:
    if runs is None:
        return "–"
    found = summarize(runs)
    mean, low, high = (decimals(value, DIGITS[name]) for value in (found.mean, found.low, found.high))
    return f"{mean}\n{low}–{high}"
