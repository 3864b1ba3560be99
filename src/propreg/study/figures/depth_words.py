"""What the numbers of figure 4 say of the paper's claims, in sentences."""

import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from propreg.statistics import Runs, paired
from propreg.study.figures import words
from propreg.study.figures.equivalent import Reading
from propreg.study.figures.measured import Place

NAMES = {"omega": "ω", "scale-free": "scale-free ω"}
DEPTHS = 3  # GCNs of 2, 3 and 4 layers


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
    means = {layers: float(levels[layers].mean()) for layers in sorted(levels)}
    falls = bool((np.diff(list(means.values())) < 0).all())
    said = words.listed([f"{value:.3g} with {layers}" for layers, value in means.items()])
    verb = "falls" if falls else "does not keep falling"
    return f"{name}: {NAMES[what]} {verb} with more layers ({said}), {words.agrees(falls, len(levels) == DEPTHS)}."


def _with_strength(name: str, method: str, what: str, places: Sequence[Place]) -> str:
    known = [place for place in places if place.values is not None]
    if len(known) < 2:
        return ""
    means = [float(place.values.mean()) for place in known if place.values is not None]
    falls = sum(after < before for before, after in itertools.pairwise(means))
    steps = len(means) - 1
    agrees = means[-1] < means[0] and falls >= 0.7 * steps
    return (
        f"{name}, {words.method(method)}: {NAMES[what]} goes from {means[0]:.3g} at μ = {known[0].x:g} to "
        f"{means[-1]:.3g} at μ = {known[-1].x:g}, falling in {falls} of {steps} steps, {words.agrees(agrees)}."
    )


def _accuracy(name: str, method: str, places: Sequence[Place], reading: Reading) -> str:
    known = [(place.x, place.values) for place in places if place.values is not None]
    if len(known) < 2 or len(known) < len(places):
        return ""
    means = [float(runs.mean()) for _, runs in known]
    best = int(np.argmax(np.round(means, 9)))
    mu, runs = known[best]
    shape = "falls" if not best else "rises" if best == len(known) - 1 else "rises and then falls"
    text = (
        f"{name}, {words.method(method)}: accuracy {shape} with μ, {words.agrees(0 < best < len(known) - 1)}; "
        f"it is best at μ = {mu:g} with {words.percent(means[best])}"
    )
    if best:
        text += f", {words.points(paired(runs, known[0][1]))} to the plain model"
    if best < len(known) - 1:
        text += f", and {words.points(paired(known[-1][1], runs))} from there to μ = {known[-1][0]:g}"
    worth = dict(zip(reading.strengths, reading.depths, strict=True)).get(mu)
    if worth is not None:
        text += f"; by scale-free ω that is a {worth:.1f}-layer GCN, {words.agrees(2 < worth < 3)}"
    elif reading.why:
        text += f"; the depth it is worth: {reading.why}"
    return text + "."
