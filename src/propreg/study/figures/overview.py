"""The picture for a README: GCN with and without P-reg on each dataset."""

from propreg.names import dataset_title
from propreg.statistics import summarize
from propreg.store.results import Results
from propreg.study.figures.curves import (
    difference_phrase,
    gain,
    in_rows,
    missing_phrases,
    per_cell,
    picked,
    runs_phrase,
    test_runs,
    the_line,
)
from propreg.study.figures.parts import Figure, Panel
from propreg.study.spec.experiment import load_experiment
from propreg.study.tables.rows import decimals
from propreg.study.tables.text import Listing

METHOD, MODEL = "preg-paper", "gcn"
FINDING = "P-reg adds 0.3 to 2.6 points to a GCN, significantly on six of seven datasets."


def overview(results: Results) -> Figure:
    """The figure, from recorded runs."""
    experiment = load_experiment("table1")
    datasets = list(dict.fromkeys(line.dataset for line in experiment.lines))
    lines = {
        (name, d): the_line(experiment, dataset=d, model=MODEL, method=name)
        for name in ("plain", METHOD)
        for d in datasets
    }
    first, of = lines["plain", datasets[0]], per_cell(lines["plain", datasets[0]])
    before = [test_runs(results, lines["plain", d], lines["plain", d].cells[0]) for d in datasets]
    chosen = [picked(results, lines[METHOD, d]) for d in datasets]
    after = [None if each is None else each.test for each in chosen]
    gains = [gain(results, each) for each in chosen]
    notes = ["" if each is None else decimals(each.mean, 1, sign=True) for each in gains]
    means = [[None if each is None else summarize(each) for each in runs] for runs in (before, after)]
    drawn = (in_rows("plain", "GCN", means[0], of), in_rows(METHOD, "GCN + P-reg", means[1], of, notes))
    missing = missing_phrases(
        results,
        {each.label: {dataset_title(d): [lines[each.key, d]] for d in datasets} for each in drawn},
    )
    rows = [
        (dataset_title(d), difference_phrase(each), each.verdict)
        for d, each in zip(datasets, gains, strict=True)
        if each is not None
    ]
    head = ("", "points (95 % interval)", "verdict")
    panel = Panel(
        "",
        "test accuracy in %",
        "",
        drawn,
        y_names=tuple(map(dataset_title, datasets)),
        joined=True,
        empty="\n".join(missing) if all(each.empty for each in drawn) else "",
    )
    return Figure(
        "overview",
        "GCN without and with P-reg",
        "Test accuracy of a 2-layer GCN; μ picked on validation, P-reg as the paper writes it.",
        f"Dot and bar: mean of {runs_phrase(first, 'random splits')} and its 95 % interval; number: the paired gain in "
        "points.",
        "",
        FINDING,
        missing,
        (panel,),
        listings=(Listing("P-reg minus plain", head, tuple(rows)),) if rows else (),
    )
