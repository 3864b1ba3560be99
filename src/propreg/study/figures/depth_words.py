"""What the numbers of figure 4 say of the paper's claims, in sentences."""

import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from propreg.statistics import Difference, Runs, paired
from propreg.study.figures import words
from propreg.study.figures.equivalent import Reading
from propreg.study.figures.measured import Place
from propreg.study.telling import told

NAMES = {"omega": "ω", "scale-free": "scale-free ω"}
DEPTHS = 3  # GCNs of 2, 3 and 4 layers
UNTOLD = "so that the paper's claim can be neither confirmed nor denied"


def found_for(
    dataset: str,
    levels: Mapping[str, Mapping[int, Runs]],
    places: Mapping[str, Mapping[str, Sequence[Place]]],
    readings: Mapping[str, Reading],
) -> list[str]:
    """The sentences of one dataset; none where nothing is recorded."""
    name = words.dataset(dataset)
    out = [_with_depth(name, what, levels[what]) for what in NAMES]
    for method, reading in readings.items():
        out += [_with_strength(name, method, what, places[what][method]) for what in NAMES]
        out.append(_accuracy(name, method, places["accuracy"][method], reading))
    return [sentence for sentence in out if sentence]


def _with_depth(name: str, what: str, levels: Mapping[int, Runs]) -> str:
    if len(levels) < 2:
        return ""
    layers = sorted(levels)
    falls, rises = _steps([levels[each] for each in layers])
    steps = len(layers) - 1
    numbers = words.listed([f"{float(levels[each].mean()):.3g} with {each}" for each in layers])
    if steps in (falls, rises):
        verb = f"{'falls' if falls else 'rises'} with more layers ({numbers})"
    else:
        verb = f"falls in {falls} and rises in {rises} of {steps} steps to more layers ({numbers})"
    agrees = words.agrees(falls == steps, len(levels) == DEPTHS)
    return f"{name}: {NAMES[what]} {verb}, {agrees if rises or falls == steps else UNTOLD}."


def _steps(runs: Sequence[Runs]) -> tuple[int, int]:
    """How many steps surely fall and how many surely rise."""
    apart = [paired(after, before) for before, after in itertools.pairwise(runs)]
    signs = [told(each) for each in apart]
    return signs.count("worse"), signs.count("better")


def _with_strength(name: str, method: str, what: str, places: Sequence[Place]) -> str:
    known = [(place.x, place.values) for place in places if place.values is not None]
    if len(known) < 2:
        return ""
    runs = [each for _, each in known]
    (falls, rises), steps = _steps(runs), len(runs) - 1
    whole = told(paired(runs[-1], runs[0]))
    if whole == "worse":  # less, which ω should be
        so = "as the paper says of the whole, not of every step" if rises else words.agrees(True)
    else:
        so = words.agrees(False) if whole == "better" else UNTOLD
    ends = [f"{float(each.mean()):.3g} at μ = {x:g}" for x, each in (known[0], known[-1])]
    return (
        f"{name}, {words.method(method)}: {NAMES[what]} goes from {ends[0]} to {ends[1]}, falling in {falls} and "
        f"rising in {rises} of {steps} steps, {so}."
    )


def _accuracy(name: str, method: str, places: Sequence[Place], reading: Reading) -> str:
    known = [(place.x, place.values) for place in places if place.values is not None]
    if len(known) < 2 or len(known) < len(places):
        return ""
    means = [float(runs.mean()) for _, runs in known]
    best, last = int(np.argmax(np.round(means, 9))), len(known) - 1
    mu, runs = known[best]
    rise, fall = paired(runs, known[0][1]), paired(known[-1][1], runs)
    text = (
        f"{name}, {words.method(method)}: accuracy {_shape(rise, fall, best, last)}; "
        f"it is best at μ = {mu:g} with {words.percent(means[best])}"
    )
    if best:
        text += f", {words.points(rise)} to the plain model"
    if best < last:
        text += f", and {words.points(fall)} from there to μ = {known[-1][0]:g}"
    worth = dict(zip(reading.strengths, reading.depths, strict=True)).get(mu)
    if worth is not None:
        text += f"; by scale-free ω that is a {worth:.1f}-layer GCN, {words.agrees(2 < worth < 3)}"
    elif reading.why:
        text += f"; the depth it is worth: {reading.why}"
    return text + "."


def _shape(rise: Difference, fall: Difference, best: int, last: int) -> str:
    """What accuracy does with μ up to its best and after: it rises or falls where that can be told."""
    rises, falls = best > 0 and told(rise) == "better", best < last and told(fall) == "worse"
    if rises and falls:
        return f"rises and then falls with μ, {words.agrees(True)}"
    if rises and best == last:
        return f"rises with μ, {words.agrees(False)}"
    if rises:
        return "rises with μ, and whether it falls after its best cannot be told"
    if falls and best == 0:
        return f"falls with μ, {words.agrees(False)}"
    if falls:
        return "falls with large μ, and whether it rises before cannot be told"
    return "neither surely rises nor surely falls with μ"
