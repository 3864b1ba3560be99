"""What each choice of the ablation does, against the paper preset and on the same splits and seeds.

A change of the formula is compared with the preset itself, a change of the model or of its training by the plain model
and by what P-reg adds to it. μ is picked on validation on both sides, from the strengths that both were trained with
where one of them has all of the other's: a side with more to pick from would look better for that alone.
"""

from dataclasses import dataclass

from propreg.statistics import Difference, Runs, paired
from propreg.study.experiment import Line, load_experiment
from propreg.study.figures.words import DATASETS
from propreg.study.results import Results
from propreg.study.table import pick
from propreg.study.telling import Told, told

PRESET, PLAIN = "preg-paper", "plain"
# A model and a variant of its training, and the model it is compared with, which has no variant.
BASES = {
    ("gcn", "strict stopping"): "gcn",
    ("gcn", "raw features"): "gcn",
    ("gcn", "weight decay on the first layer"): "gcn",
    ("mlp-16", ""): "mlp",
    ("gat-8-heads", ""): "gat",
}


@dataclass(frozen=True)
class Effect:
    """A paired difference in points on one dataset; ``on_test`` the same where both sides have the best μ on test."""

    dataset: str
    apart: Difference
    told: Told
    on_test: float


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

    def less(self, other: "_Side") -> "_Side":
        return _Side(self.picked - other.picked, self.best - other.best)


def changes(results: Results, method: str) -> list[Effect]:
    """A change of the formula less the preset, GCN, on the datasets where both are recorded."""
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
        there = [side for side in sides if side is not None]
        if len(there) < len(sides):
            continue
        preg, plain, base_preg, base_plain = there
        gain, base = preg.less(plain), base_preg.less(base_plain)
        mean = float(gain.picked.mean()), float(base.picked.mean())
        found.append(Setting(_effect(lines[0], plain, base_plain), _effect(lines[0], gain, base), *mean))
    return found


def _line(model: str, variant: str, method: str, dataset: str) -> Line | None:
    wanted = (model, variant, method, dataset)
    lines = load_experiment("ablation").lines
    return next((x for x in lines if (x.model, x.variant, x.method.name, x.dataset) == wanted), None)


def _side(results: Results, line: Line, other: Line) -> _Side | None:
    """A line, at the strengths that the other has too; None where a run is missing."""
    theirs = {cell.strength for cell in other.cells}
    cells = [cell for cell in line.cells if cell.strength in theirs]
    if len(cells) < min(len(line.cells), len(theirs)):  # neither has all of the other's: each picks from its own
        cells = [*line.cells]
    found = [results.accuracies(cell, line.splits, line.seeds) for cell in cells]
    runs = [each for each in found if each is not None]
    if len(runs) < len(found):
        return None
    picked, best = pick(float(each.val.mean()) for each in runs), pick(float(each.test.mean()) for each in runs)
    return _Side(runs[picked].test, runs[best].test)


def _effect(line: Line, one: _Side, other: _Side) -> Effect:
    apart = paired(one.picked, other.picked)
    return Effect(line.dataset, apart, told(apart), float((one.best - other.best).mean()))
