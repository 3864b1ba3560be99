"""The picture for a README: GCN with and without P-reg on each dataset."""

from propreg.statistics import Difference, summarise
from propreg.study.experiment import load_experiment
from propreg.study.figures import words
from propreg.study.figures.measured import all_lacking, behind, gain, lines_of, per_cell, picked, test_runs, the_line
from propreg.study.figures.parts import Figure, Panel, Series, number
from propreg.study.render import decimals
from propreg.study.results import Results
from propreg.study.telling import told

METHOD, MODEL = "preg-paper", "gcn"


def overview(results: Results) -> Figure:
    """The figure, from recorded runs."""
    experiment = load_experiment("table1")
    datasets = list(dict.fromkeys(line.dataset for line in experiment.lines))
    plains = {d: the_line(experiment, dataset=d, model=MODEL, method="plain") for d in datasets}
    before = {d: test_runs(results, line, line.cells[0]) for d, line in plains.items()}
    chosen = {d: picked(results, the_line(experiment, dataset=d, model=MODEL, method=METHOD)) for d in datasets}
    gains = {d: found for d in datasets if (found := gain(results, chosen[d])) is not None}
    ends = (
        ("plain", "GCN", before),
        (METHOD, "GCN + P-reg", {d: None if each is None else each.test for d, each in chosen.items()}),
    )
    drawn = []
    for key, label, test in ends:
        all_of = [None if runs is None else summarise(runs) for runs in (test[d] for d in datasets)]
        drawn.append(
            Series(
                key,
                label,
                tuple(None if each is None else number(each.mean) for each in all_of),
                tuple(float(i) for i in range(len(datasets))),
                x_low=tuple(None if each is None else number(each.low) for each in all_of),
                x_high=tuple(None if each is None else number(each.high) for each in all_of),
                runs=tuple(0 if each is None else each.runs for each in all_of),
                of=per_cell(plains[datasets[0]]),
                notes=tuple(_note(gains.get(d)) for d in datasets) if key == METHOD else (),
                kind="points",
            )
        )
    names = (("plain", "GCN"), (METHOD, "GCN + P-reg"))
    asked = {name: lines_of(experiment, model=MODEL, method=name) for name, _ in names}
    missing = all_lacking(
        results, {label: {words.dataset(line.dataset): [line] for line in asked[name]} for name, label in names}
    )
    nothing = all(each.empty for each in drawn)
    panel = Panel(
        "",
        "test accuracy in %",
        "",
        tuple(drawn),
        y_names=tuple(words.dataset(d) for d in datasets),
        joined=True,
        empty="\n".join(missing) if nothing else "",
    )
    return Figure(
        "overview",
        "GCN without and with P-reg",
        "Test accuracy of a 2-layer GCN; μ picked on validation, P-reg as the paper writes it.",
        f"Dot and bar: mean of {behind(plains[datasets[0]], 'random splits')} and its 95 % interval; "
        "number: the paired gain in points.",
        "",
        _found(gains),
        missing,
        (panel,),
    )


def _note(found: Difference | None) -> str:
    return "" if found is None else decimals(found.mean, 1, sign=True)


def _found(gains: dict[str, Difference]) -> tuple[str, ...]:
    if not gains:
        return ()
    means = [each.mean for each in gains.values()]
    surely = sum(told(each) == "better" for each in gains.values())
    return (
        f"P-reg changes GCN by {words.from_to(means)} points; on {surely} of {len(gains)} datasets the 95 % interval "
        "of the paired gain lies above 0 and all splits agree.",
    )
