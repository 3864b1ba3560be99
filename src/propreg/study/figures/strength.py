"""Figure 2c: P-reg and the forms of the Laplacian against μ, for GCN and GAT on Cora, and who is ahead."""

from propreg.names import model_title
from propreg.statistics import Difference, paired, summarize
from propreg.store.results import Results
from propreg.study.figures.curves import (
    Picked,
    Point,
    count,
    difference_phrase,
    gain,
    lines_of,
    method_label,
    missing_phrase,
    missing_phrases,
    per_cell,
    percent,
    picked,
    runs_phrase,
    series,
    strengths_phrase,
    test_runs,
    the_line,
    view_from,
)
from propreg.study.figures.parts import Figure, Level, Panel, Series, number
from propreg.study.spec.experiment import Experiment, load_experiment
from propreg.study.spec.paper import paper_number
from propreg.study.spec.presets import named_grid
from propreg.study.tables.text import Listing

PREG = ("preg-reference", "preg-paper")
LAPLACIAN = ("laplacian-mean", "laplacian-sum", "laplacian-official")
DISPUTED = 0.45
"""The μ at which a user of the official code measured the Laplacian ahead of P-reg, for GAT on Cora."""
BELOW = 4.0
"""Points below the plain model that are still shown: a Laplacian that is too strong ends at chance."""
FINDING = (
    "With μ picked on validation P-reg adds 2.6 to 2.9 points to GCN and GAT, and no form of the Laplacian makes a "
    f"significant difference. At μ = {DISPUTED:g} P-reg is 4.5 points or more ahead of every form."
)


def strength(results: Results) -> Figure:
    """The figure, from recorded runs."""
    experiment = load_experiment("fig-strength")
    models = experiment.models
    methods = ("plain", *PREG, *LAPLACIAN)
    shown = {m: {method_label(name): lines_of(experiment, model=m, method=name) for name in methods} for m in models}
    rows = [row for model in models for row in _rows(experiment, results, model)]
    head = (
        *("", "μ", "points (95 % interval)", "verdict", "worse than plain at", "P-reg ahead, own μ"),
        f"P-reg ahead, μ = {DISPUTED:g}",
    )
    title = (
        "μ picked on validation and its difference to the plain model; at how many μ of the paper's range a method is "
        f"significantly worse; {method_label(PREG[0])} minus each form of the Laplacian"
    )
    return Figure(
        "fig-strength",
        experiment.title,
        "Test accuracy on Cora against the strength μ, on the left over the range that the paper shows, on the right "
        "the Laplacian over its own range, which is logarithmic: as a mean over edges, as the paper's sum, and as "
        "2 · (mean distance)², the official code's.",
        f"Line and band: mean of {runs_phrase(experiment.lines[0])} and its 95 % interval; lines begin at the plain "
        "model (μ = 0); dotted: the paper's Table 1; ▾: lies below the axis.",
        "P-reg improves GCN and GAT, the Laplacian does not and even hurts. A user of the official code measured the "
        f"Laplacian ahead for GAT at μ = {DISPUTED:g}; the authors' own repetition agreed with the paper.",
        FINDING,
        missing_phrases(results, {model_title(m): lines for m, lines in shown.items()}),
        tuple(panel for model in models for panel in _panels(experiment, results, model)),
        columns=2,
        listings=(Listing(title, head, tuple(rows)),),
    )


def _panels(experiment: Experiment, results: Results, model: str) -> list[Panel]:
    common = set(named_grid("preg"))
    plain = the_line(experiment, model=model, method="plain")
    base = test_runs(results, plain, plain.cells[0])
    left = [_series(experiment, results, model, name, common) for name in (*PREG, *LAPLACIAN)]
    right = [_series(experiment, results, model, name, None) for name in LAPLACIAN]
    ours, paper = _levels(experiment, results, model), _paper(model)
    levels_at = [each.value for each in (*ours, *paper)]
    view = None if base is None else view_from(float(base.mean()) - BELOW, (*left, *right), levels_at)
    name = model_title(model)
    made = []
    for title, drawn, linear, levels in (
        (f"{name}: the paper's range", left, True, ours[:1] + paper),
        (f"{name}: the Laplacian's own range", right, False, ours),
    ):
        lines = [line for each in drawn for line in lines_of(experiment, model=model, method=each.key)]
        made.append(
            Panel(
                title,
                "strength μ",
                "test accuracy in %",
                tuple(drawn),
                tuple(levels),
                x_scale="linear" if linear else "log",
                x_view=(0.0, 1.0) if linear else None,
                y_view=view,
                notes=tuple(text for each in drawn if linear and (text := _below(each, view))),
                empty=missing_phrase(name, results, lines) if all(each.empty for each in drawn) else "",
            )
        )
    return made


def _series(experiment: Experiment, results: Results, model: str, method: str, only: set[float] | None) -> Series:
    line = the_line(experiment, model=model, method=method)
    cells = [cell for cell in line.cells if only is None or cell.strength in only]
    if only is not None:
        cells.insert(0, line.cells[0].plain)  # μ = 0, which a logarithmic axis does not have
    points = [Point(c.strength, test_runs(results, line, c), count(results, line, c)) for c in cells]
    if all(point.values is None for point in points[1:]):
        points = points[1:]
    label = method_label(method)
    return series(method, label, points, per_cell(line), missing_phrase(label, results, [line]))


def _levels(experiment: Experiment, results: Results, model: str) -> list[Level]:
    """The plain model, and P-reg with its μ picked on validation."""
    plain = the_line(experiment, model=model, method="plain")
    base = test_runs(results, plain, plain.cells[0])
    out = [] if base is None else [_level("plain", f"plain {model_title(model)}", Picked(0.0, base, plain))]
    for name in PREG:
        chosen = picked(results, the_line(experiment, model=model, method=name))
        if chosen is not None:
            out.append(_level(name, f"{method_label(name)}, μ {chosen.strength:g}", chosen))
    return out


def _level(key: str, label: str, chosen: Picked) -> Level:
    found = summarize(chosen.test)
    return Level(key, label, float(f"{found.mean:.9g}"), number(found.low), number(found.high))


def _paper(model: str) -> list[Level]:
    found = []
    for key, label in (
        ("plain", "paper, plain"),
        ("laplacian-mean", "paper, Laplacian"),
        ("preg-reference", "paper, P-reg"),
    ):
        value = paper_number("table1", model, key, "cora")
        if value is not None:
            found.append(Level(key, label, value[0], source="paper"))
    return found


def _below(series: Series, view: tuple[float, float] | None) -> str:
    """Where a series leaves the picture at the bottom, and its lowest value; empty if it stays."""
    known = [(x, y) for x, y in zip(series.x, series.y, strict=True) if x is not None and y is not None]
    out = [(x, y) for x, y in known if view is not None and y < view[0]]
    if not out:
        return ""
    mu, lowest = min(out, key=lambda point: point[1])
    text = f"{series.label} falls to {percent(lowest)} at μ = {mu:g}"
    return text if len(out) == 1 else f"{text} and lies below the axis (▾) at {strengths_phrase([x for x, _ in out])}"


def _rows(experiment: Experiment, results: Results, model: str) -> list[tuple[str, ...]]:
    """The numbers of each method whose grid is complete."""
    rows = []
    for method in (*PREG, *LAPLACIAN):
        mine = picked(results, the_line(experiment, model=model, method=method))
        added = gain(results, mine)
        if mine is not None and added is not None:
            label = f"{model_title(model)} + {method_label(method)}"
            ahead = ["", ""] if method in PREG else [*map(_phrase, _ahead(experiment, results, model, method, mine))]
            worse = _worse(experiment, results, model, method)
            rows.append((label, f"{mine.strength:g}", difference_phrase(added), added.verdict, worse, *ahead))
    return rows


def _phrase(found: Difference | None) -> str:
    return "" if found is None else difference_phrase(found)


def _worse(experiment: Experiment, results: Results, model: str, method: str) -> str:
    """At how many μ of the paper's range a method is significantly worse than the plain model."""
    line = the_line(experiment, model=model, method=method)
    plain = test_runs(results, line, line.cells[0].plain)
    found = [test_runs(results, line, cell) for cell in line.cells if cell.strength in set(named_grid("preg"))]
    known = [runs for runs in found if runs is not None]
    if plain is None or len(known) < len(found):
        return ""
    return f"{sum(paired(runs, plain).verdict == 'worse' for runs in known)} of {len(known)}"


def _ahead(
    experiment: Experiment, results: Results, model: str, form: str, other: Picked
) -> tuple[Difference | None, Difference | None]:
    """P-reg minus a form of the Laplacian: each at its own μ, and both at the disputed one."""
    preg, laplacian = (the_line(experiment, model=model, method=name) for name in (PREG[0], form))
    mine = picked(results, preg)
    at = [test_runs(results, x, cell) for x in (preg, laplacian) for cell in x.cells if cell.strength == DISPUTED]
    both = [runs for runs in at if runs is not None]
    return None if mine is None else paired(mine.test, other.test), paired(*both) if len(both) == 2 else None
