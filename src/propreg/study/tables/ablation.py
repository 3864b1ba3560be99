"""What each choice of the ablation does, against P-reg in the paper form and on the same splits and seeds.

A change of the formula is compared with the paper form itself; a change of the model or of its training by the plain
model and by what P-reg adds to it. μ is picked on validation on both sides, from the strengths that both have if one
grid contains the other: a side with more to pick from would look better for that alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from propreg.names import DATASETS
from propreg.statistics import Difference, Runs, Verdict, paired
from propreg.store.results import Results
from propreg.study.spec.experiment import Experiment, load_experiment
from propreg.study.spec.part import Line
from propreg.study.tables.rows import pick, signed
from propreg.study.tables.text import Listing

PRESET, PLAIN = "preg-paper", "plain"
CHANGES = {
    "preg-sym": "symmetric averaging",
    "preg-loops": "self-loops",
    "preg-sym_loops": "symmetric averaging with self-loops",
    "preg-two_passes": "a second pass",
    "preg-reference": "official-code form (all three)",
    "preg-detach_self": "no gradient through Z",
    "preg-detach_neighbors": "no gradient through ÂZ",
    "preg-paper_squared_error": "squared error",
    "preg-paper_kl": "KL divergence",
    "preg-annealed": "annealing",
    "preg-threshold_0_1": "threshold 0.1",
    "preg-threshold_0_5": "threshold 0.5",
}
SETTINGS = {
    ("gcn", "strict stopping"): "GCN, stopping rule of the paper's text",
    ("gcn", "raw features"): "GCN, features not divided by their row's sum",
    ("gcn", "weight decay on the first layer"): "GCN, weight decay on the first layer only",
    ("mlp-16", ""): "MLP, 16 units without dropout, not 64 with it",
    ("gat-8-heads", ""): "GAT, 8 averaged output heads and no input dropout, not 1 with it",
}
# A setting is compared with the model of this name, which has no variant.
BASES = {setting: setting[0].partition("-")[0] for setting in SETTINGS}


@dataclass(frozen=True)
class Effect:
    """A paired difference in points on one dataset; ``on_test`` is the same with the best μ on test on both sides."""

    dataset: str
    apart: Difference
    on_test: float

    @property
    def verdict(self) -> Verdict:
        """That of the difference."""
        return self.apart.verdict


@dataclass(frozen=True)
class Setting:
    """What a change of model or training does to the plain model, and to P-reg's gain: ``gain`` instead of ``of``."""

    plain: Effect
    change: Effect
    gain: float
    of: float


@dataclass(frozen=True)
class _Side:
    """Test accuracies with the μ picked on validation, and with the best on test."""

    picked: Runs
    best: Runs

    def minus(self, other: "_Side") -> "_Side":
        return _Side(self.picked - other.picked, self.best - other.best)


def notes(lines: Sequence[Line]) -> list[str]:
    """What to know of these lines of one table, beside the notes of all tables."""
    sizes = (sum(cell.strength not in line.beyond for cell in line.cells) for line in lines)
    counts = sorted({size for size in sizes if size > 1})
    if len(counts) < 2:
        return []
    return [f"Grids have {counts[0]} to {counts[-1]} strengths: a row with fewer may be behind for that reason alone."]


def listings(experiment: Experiment, lines: Sequence[Line], results: Results) -> list[Listing]:
    """Each choice of the whole ablation, as far as it is recorded; none for other tables."""
    if experiment.name != "ablation" or len(lines) < len(experiment.lines):
        return []
    changed = {CHANGES[name]: changes(results, name) for name in CHANGES}
    set_up = {SETTINGS[which]: setting(results, *which) for which in SETTINGS}
    found = (
        Listing(
            "Changes of the formula, GCN: points against P-reg (paper form)",
            ("change", "points", "best on test", "better on", "worse on", "datasets"),
            tuple(_change(name, effects) for name, effects in changed.items() if effects),
        ),
        Listing(
            "Changes of the model or its training: points of the plain model, and what P-reg adds",
            ("change", "plain", "better on", "worse on", "P-reg adds", "instead of", "more on", "less on", "datasets"),
            tuple(_set_up(name, each) for name, each in set_up.items() if each),
        ),
    )
    return [each for each in found if each.rows]


def _change(name: str, effects: Sequence[Effect]) -> tuple[str, ...]:
    mean, best = fmean(each.apart.mean for each in effects), fmean(each.on_test for each in effects)
    return (name, signed(mean), signed(best), where(effects, "better"), where(effects, "worse"), str(len(effects)))


def _set_up(name: str, found: Sequence[Setting]) -> tuple[str, ...]:
    plain, change = [each.plain for each in found], [each.change for each in found]
    mean, gain, of = fmean(x.apart.mean for x in plain), fmean(x.gain for x in found), fmean(x.of for x in found)
    return (
        *(name, signed(mean), where(plain, "better"), where(plain, "worse")),
        *(signed(gain), signed(of), where(change, "better"), where(change, "worse"), str(len(found))),
    )


def where(effects: Sequence[Effect], verdict: Verdict) -> str:
    """The datasets with this verdict."""
    named = [DATASETS[each.dataset] for each in effects if each.verdict == verdict]
    return "all" if len(named) == len(DATASETS) else ", ".join(named) or "–"


def changes(results: Results, method: str) -> list[Effect]:
    """A change of the formula minus the paper form, GCN, on the datasets where both are recorded."""
    found = []
    for dataset in DATASETS:
        mine, preset = (_line("gcn", "", name, dataset) for name in (method, PRESET))
        if mine is None or preset is None:
            continue
        one, other = _side(results, mine, preset), _side(results, preset, mine)
        if one is not None and other is not None:
            found.append(_effect(mine, one, other))
    return found


def setting(results: Results, model: str, variant: str) -> list[Setting]:
    """A change of the model or of its training, on the datasets where all four lines are recorded."""
    found = []
    for dataset in DATASETS:
        of = [_line(model, variant, name, dataset) for name in (PRESET, PLAIN)]
        of += [_line(BASES[model, variant], "", name, dataset) for name in (PRESET, PLAIN)]
        lines = [line for line in of if line is not None]
        if len(lines) < len(of):
            continue
        sides = [_side(results, line, lines[(i + 2) % 4]) for i, line in enumerate(lines)]
        known = [side for side in sides if side is not None]
        if len(known) < len(sides):
            continue
        preg, plain, base_preg, base_plain = known
        gain, base = preg.minus(plain), base_preg.minus(base_plain)
        mean = float(gain.picked.mean()), float(base.picked.mean())
        found.append(Setting(_effect(lines[0], plain, base_plain), _effect(lines[0], gain, base), *mean))
    return found


def _line(model: str, variant: str, method: str, dataset: str) -> Line | None:
    wanted = (model, variant, method, dataset)
    lines = load_experiment("ablation").lines
    return next((x for x in lines if (x.model, x.variant, x.method.name, x.dataset) == wanted), None)


def _side(results: Results, line: Line, other: Line) -> _Side | None:
    """A line, at the strengths that the other has too; None if a run is missing."""
    theirs = {cell.strength for cell in other.cells}
    cells = [cell for cell in line.cells if cell.strength in theirs]
    if len(cells) < min(len(line.cells), len(theirs)):  # neither grid contains the other: each picks from its own
        cells = [*line.cells]
    found = [results.accuracies(cell, line.splits, line.seeds) for cell in cells]
    runs = [each for each in found if each is not None]
    if len(runs) < len(found):
        return None
    picked, best = pick(float(each.val.mean()) for each in runs), pick(float(each.test.mean()) for each in runs)
    return _Side(runs[picked].test, runs[best].test)


def _effect(line: Line, one: _Side, other: _Side) -> Effect:
    return Effect(line.dataset, paired(one.picked, other.picked), float((one.best - other.best).mean()))
