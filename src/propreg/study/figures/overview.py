"""The picture for a README: what P-reg adds to each model on each dataset."""

from propreg.names import dataset_title, model_title
from propreg.store.results import Results
from propreg.study.figures.curves import (
    difference_phrase,
    gain,
    in_rows,
    missing_phrases,
    per_cell,
    picked,
    runs_phrase,
    the_line,
)
from propreg.study.figures.parts import Figure, Level, Panel
from propreg.study.spec.experiment import load_experiment
from propreg.study.tables.text import Listing

METHOD, MODELS = "preg-paper", ("gcn", "gat", "mlp")
FINDING = (
    "P-reg adds 0.3 to 2.6 points to a GCN, significantly on six of seven datasets, 0.3 to 2.8 to a GAT, significantly "
    "on five, and 1.6 to 7.1 to an MLP, significantly on all."
)


def overview(results: Results) -> Figure:
    """The figure, from recorded runs."""
    experiment = load_experiment("table1")
    datasets = experiment.datasets
    lines = {(m, d): the_line(experiment, dataset=d, model=m, method=METHOD) for m in MODELS for d in datasets}
    plain = {key: the_line(experiment, model=key[0], dataset=key[1], method="plain") for key in lines}
    gains = {key: gain(results, picked(results, line)) for key, line in lines.items()}
    drawn = [
        in_rows(m, model_title(m), [gains[m, d] for d in datasets], per_cell(lines[m, datasets[0]])) for m in MODELS
    ]
    missing = missing_phrases(
        results,
        {
            f"{model_title(m)}{more}": {dataset_title(d): [which[m, d]] for d in datasets}
            for m in MODELS
            for more, which in (("", plain), (" + P-reg", lines))
        },
    )
    panel = Panel(
        "",
        "points of test accuracy above the plain model",
        "",
        tuple(drawn),
        (Level("plain", "plain model", 0.0, axis="x"),),
        y_names=tuple(map(dataset_title, datasets)),
        empty="\n".join(missing) if all(each.empty for each in drawn) else "",
    )
    rows = [
        (f"{model_title(m)}, {dataset_title(d)}", difference_phrase(found), found.verdict)
        for m in MODELS
        for d in datasets
        if (found := gains[m, d]) is not None
    ]
    return Figure(
        "overview",
        "What P-reg adds",
        "Difference of test accuracy with and without P-reg (as the paper writes it) on the same splits and seeds; μ "
        "picked on validation.",
        f"Dot and bar: mean of {runs_phrase(lines[MODELS[0], datasets[0]], 'random splits')} and its 95 % interval.",
        "",
        FINDING,
        missing,
        (panel,),
        listings=(Listing("P-reg minus plain", ("", "points (95 % interval)", "verdict"), tuple(rows)),),
    )
