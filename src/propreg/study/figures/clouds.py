"""Figure 3: t-SNE of outputs on CiteSeer, from the record of one run per method, with numbers beside it."""

import numpy as np

from propreg.statistics import Runs, summarise
from propreg.study.experiment import Experiment, load_experiment
from propreg.study.figures import words
from propreg.study.figures.measured import lacking, lines_of, measures, said, test_runs, the_line
from propreg.study.figures.parts import Figure, Panel, Series
from propreg.study.render import decimals
from propreg.study.results import Results
from propreg.study.tsne_record import Cloud, TsneRecord

MADE_BY = "propreg tsne -o FOLDER/tsne.json.gz makes it, in the folder of the runs"
LABELS = {"silhouette": "silhouette", "scale-free": "ω / mean ‖z‖", "omega": "ω", "accuracy": "test accuracy"}
DIGITS = {"silhouette": 2, "scale-free": 2, "omega": 2, "accuracy": 1}
HEAD = ("", "silhouette", "ω / mean\n‖z‖", "ω", "accuracy\nin %")
Numbers = dict[str, dict[str, Runs]]
"""By method and quantity, [1, seeds]."""


def clouds(results: Results, record: TsneRecord | None) -> Figure:
    """The figure: pictures from the record, ω and accuracy from the runs where all are recorded."""
    experiment = load_experiment("fig-tsne")
    methods = [line.method.name for line in experiment.lines]
    numbers, from_runs = _numbers(experiment, results, record, methods)
    strength = next(line.cells[0].strength for line in experiment.lines if line.method.method != "plain")
    missing = [] if record else [f"the record of outputs is not there: {MADE_BY}"]
    if not record and not from_runs:
        missing += [lacking(words.method(name), results, lines_of(experiment, method=name)) for name in methods]
    source = "the recorded runs (silhouettes: the trainings behind the pictures)" if from_runs else "those trainings"
    return Figure(
        "fig-tsne",
        experiment.title,
        f"t-SNE of the outputs Z of a GCN on CiteSeer, plain and with μ = {strength:g}; a dot is a node, its colour "
        "the true class; one training each (split 0, seed 0, reported epoch).",
        f"Numbers: mean and 95 % interval over {len(experiment.lines[0].seeds)} seeds of that split, from {source}. "
        "The silhouette (by true class, higher is better separated) and ω / mean ‖z‖ (lower is more condensed) do not "
        "change when all outputs grow; ω does.",
        "with P-reg the outputs are more condensed within each class and the classes more clearly separated than with "
        "the plain GCN or the Laplacian.",
        said(_found(methods, numbers)),
        said(missing),
        (*(_picture(record, name) for name in methods), _table(methods, numbers)),
        columns=3,
    )


def _numbers(
    experiment: Experiment, results: Results, record: TsneRecord | None, methods: list[str]
) -> tuple[Numbers, bool]:
    """All numbers from one source, and whether that is the runs; silhouettes are in the record only."""
    found: Numbers = {}
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
    return "GCN" if method == "plain" else f"GCN + {words.method(method)}"


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


def _table(methods: list[str], numbers: Numbers) -> Panel:
    if not numbers:
        return Panel("over all seeds", "", "", empty="no numbers recorded")
    rows = [
        (words.method(m).replace(" (", "\n("), *(_cell(numbers.get(m, {}).get(name), name) for name in LABELS))
        for m in methods
    ]
    return Panel("over all seeds", "", "", table=(HEAD, *rows))


def _cell(runs: Runs | None, name: str) -> str:
    if runs is None:
        return "–"
    found = summarise(runs)
    mean, low, high = (decimals(value, DIGITS[name]) for value in (found.mean, found.low, found.high))
    return f"{mean}\n{low}–{high}"


def _sentence(text: str) -> str:
    """With a capital in front, but for ω, which is a name."""
    return text if text.startswith("ω") else text[:1].upper() + text[1:]


def _found(methods: list[str], numbers: Numbers) -> list[str]:
    out = []
    for name, best in (("silhouette", max), ("scale-free", min), ("omega", min)):
        known = {each: float(numbers[each][name].mean()) for each in methods if name in numbers.get(each, {})}
        if not {"plain", "preg-reference"} <= set(known):
            continue
        first = best(known, key=lambda method: known[method])
        values = words.listed([f"{_label(method)} {decimals(value, DIGITS[name])}" for method, value in known.items()])
        if name == "omega":
            out.append(f"ω itself follows the outputs' scale: {values}.")
            continue
        word = "highest" if best is max else "smallest"
        agrees = words.agrees(first.startswith("preg"))
        out.append(f"{_sentence(LABELS[name])}: {values}; {word} with {_label(first)}, {agrees}.")
    known = {each: float(numbers[each]["accuracy"].mean()) for each in methods if "accuracy" in numbers.get(each, {})}
    if known:
        values = words.listed([f"{_label(method)} {words.percent(value)}" for method, value in known.items()])
        out.append(f"Test accuracy: {values}.")
    return out
