"""Figure 2c: P-reg and the forms of the Laplacian against μ, for GCN and GAT on Cora, and who is ahead."""

from propreg.statistics import paired, summarise
from propreg.study.experiment import Experiment, Line, load_experiment
from propreg.study.figures import words
from propreg.study.figures.measured import (
    Picked,
    Place,
    all_lacking,
    behind,
    count,
    gain,
    lacking,
    lines_of,
    per_cell,
    picked,
    said,
    series,
    test_runs,
    the_line,
    view_from,
)
from propreg.study.figures.parts import Figure, Level, Panel, Series, number
from propreg.study.paper import paper_number
from propreg.study.presets import named_grid
from propreg.study.results import Results
from propreg.study.telling import told

PREG = ("preg-reference", "preg-paper")
LAPLACIAN = ("laplacian-mean", "laplacian-sum", "laplacian-official")
DISPUTED = 0.45
"""The μ at which a user of the official code measured the Laplacian ahead of P-reg, for GAT on Cora."""
BELOW = 4.0
"""Points below the plain model that are still shown: a Laplacian that is too strong ends at chance."""


def strength(results: Results) -> Figure:
    """The figure, from recorded runs."""
    experiment = load_experiment("fig-strength")
    models = list(dict.fromkeys(line.model for line in experiment.lines))
    panels = [panel for model in models for panel in _panels(experiment, results, model)]
    methods = ("plain", *PREG, *LAPLACIAN)
    return Figure(
        "fig-strength",
        experiment.title,
        "Test accuracy on Cora against the strength μ, on the left over the range that the paper shows, on the right "
        "the Laplacian over its own range, which is logarithmic: as a mean over edges, as the paper's sum, and as "
        "2 · (mean distance)², the official code's.",
        f"Line and band: mean of {behind(experiment.lines[0])} and its 95 % interval; lines "
        "begin at the plain model (μ = 0); dotted: the paper's Table 1; ▾: lies below the axis.",
        "P-reg improves GCN and GAT, the Laplacian does not and even harms. A user of the official code measured the "
        f"Laplacian ahead for GAT at μ = {DISPUTED:g}; the authors' own repetition agreed with the paper.",
        said(sentence for model in models for sentence in _found(experiment, results, model)),
        all_lacking(
            results,
            {
                words.model(m): {words.method(name): lines_of(experiment, model=m, method=name) for name in methods}
                for m in models
            },
        ),
        tuple(panels),
        columns=2,
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
    name = words.model(model)
    made = []
    for title, drawn, scale, levels in (
        (f"{name}: the paper's range", left, "linear", ours[:1] + paper),
        (f"{name}: the Laplacian's own range", right, "log", ours),
    ):
        nothing = all(each.empty for each in drawn)
        said_so = lacking(name, results, [line for each in drawn for line in _lines(experiment, model, each.key)])
        made.append(
            Panel(
                title,
                "strength μ",
                "test accuracy in %",
                tuple(drawn),
                tuple(levels),
                x_scale="log" if scale == "log" else "linear",
                x_view=(0.0, 1.0) if scale == "linear" else None,
                y_view=view,
                notes=tuple(text for each in drawn if scale == "linear" and (text := _below(each, view))),
                empty=said_so if nothing else "",
            )
        )
    return made


def _lines(experiment: Experiment, model: str, method: str) -> list[Line]:
    return lines_of(experiment, model=model, method=method)


def _series(experiment: Experiment, results: Results, model: str, method: str, only: set[float] | None) -> Series:
    line = the_line(experiment, model=model, method=method)
    cells = [cell for cell in line.cells if only is None or cell.strength in only]
    if only is not None:
        cells.insert(0, line.cells[0].plain)  # μ = 0, which a logarithmic axis does not have
    places = [Place(c.strength, test_runs(results, line, c), count(results, line, c)) for c in cells]
    if all(place.values is None for place in places[1:]):
        places = places[1:]
    return series(method, words.method(method), places, per_cell(line), lacking(words.method(method), results, [line]))


def _levels(experiment: Experiment, results: Results, model: str) -> list[Level]:
    """The plain model, and P-reg where its μ is picked on validation."""
    plain = the_line(experiment, model=model, method="plain")
    base = test_runs(results, plain, plain.cells[0])
    out = [] if base is None else [_level("plain", f"plain {words.model(model)}", Picked(0.0, base, plain))]
    for name in PREG:
        chosen = picked(results, the_line(experiment, model=model, method=name))
        if chosen is not None:
            out.append(_level(name, f"{words.method(name)}, μ = {chosen.strength:g}", chosen))
    return out


def _level(key: str, label: str, chosen: Picked) -> Level:
    found = summarise(chosen.test)
    return Level(key, label, float(f"{found.mean:.9g}"), number(found.low), number(found.high))


def _paper(model: str) -> list[Level]:
    found = []
    for key, family, label in (
        ("plain", "plain", "paper, plain"),
        ("laplacian-mean", "laplacian", "paper, Laplacian"),
        ("preg-reference", "preg", "paper, P-reg"),
    ):
        value = paper_number("table1", model, key, family, "cora")
        if value is not None:
            found.append(Level(key, label, value[0], source="paper"))
    return found


def _found(experiment: Experiment, results: Results, model: str) -> list[str]:
    name = words.model(model)
    chosen = {each: picked(results, the_line(experiment, model=model, method=each)) for each in (*PREG, *LAPLACIAN)}
    out = []
    for method, mine in chosen.items():
        added = gain(results, mine)
        if mine is not None and added is not None:
            claimed = (told(added) == "better") == (method in PREG)
            out.append(
                f"{name} + {words.method(method)}, μ = {mine.strength:g} picked on validation: {words.points(added)} "
                f"to the plain model, {words.agrees(claimed)}."
            )
    out += [f"{name} + {text}." for panel in _panels(experiment, results, model)[:1] for text in panel.notes]
    out += [sentence for method in chosen for sentence in _harm(experiment, results, model, method)]
    for form in LAPLACIAN:
        out += _ahead(experiment, results, model, form, chosen)
    return out


def _below(series: Series, view: tuple[float, float] | None) -> str:
    """Where a series leaves the picture at the bottom, and how far it falls; empty where it stays."""
    places = [(x, y) for x, y in zip(series.x, series.y, strict=True) if x is not None and y is not None]
    out = [(x, y) for x, y in places if view is not None and y < view[0]]
    if not out:
        return ""
    lowest = min(out, key=lambda place: place[1])
    text = f"{series.label} falls to {words.percent(lowest[1])} at μ = {lowest[0]:g}"
    edge = words.strengths([x for x, _ in out])
    return text if len(out) == 1 else f"{text} and lies below the axis (▾) at {edge}"


def _harm(experiment: Experiment, results: Results, model: str, form: str) -> list[str]:
    """On which part of the paper's range a method lies below the plain model."""
    line = the_line(experiment, model=model, method=form)
    plain = test_runs(results, line, line.cells[0].plain)
    common = [cell for cell in line.cells if cell.strength in set(named_grid("preg"))]
    found = [(cell.strength, test_runs(results, line, cell)) for cell in common]
    known = [(mu, runs) for mu, runs in found if runs is not None]
    if plain is None or len(known) < len(found):
        return []
    worse = [mu for mu, runs in known if told(paired(runs, plain)) == "worse"]
    where = f" ({words.strengths(worse)})" if worse else ""
    return [
        f"{words.model(model)} + {words.method(form)} over the paper's range: surely worse than the plain model at "
        f"{len(worse)} of {len(known)} values of μ{where}."
    ]


def _ahead(
    experiment: Experiment, results: Results, model: str, form: str, chosen: dict[str, Picked | None]
) -> list[str]:
    """P-reg against a form of the Laplacian, each at its own μ, and both at the disputed one."""
    preg, lap = the_line(experiment, model=model, method=PREG[0]), the_line(experiment, model=model, method=form)
    mine, other = chosen[PREG[0]], chosen[form]
    parts = []
    if mine is not None and other is not None:
        parts.append(f"each at its own μ {words.points(paired(mine.test, other.test))}")
    at = [test_runs(results, line, cell) for line in (preg, lap) for cell in line.cells if cell.strength == DISPUTED]
    if len(at) == 2 and at[0] is not None and at[1] is not None:
        parts.append(f"both at μ = {DISPUTED:g} {words.points(paired(at[0], at[1]))}")
    label = f"{words.model(model)}: {words.method(PREG[0])} less {words.method(form)}"
    return [f"{label}: {', '.join(parts)}."] if parts else []
