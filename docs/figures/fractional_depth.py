"""Is a μ worth a fraction of a layer? The spread of each class's outputs on the digits: deeper GCNs against P-reg.

``python -m figures.fractional_depth`` (from docs/) trains the runs again, some minutes on two cores, and writes
``fractional_depth.json`` beside this file, from which the picture is drawn.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from figures.drawing import drawn, new_sheet
from propreg.statistics import Summary, summarize
from propreg.study.figures.drawing.style import BLUE, GREEN, look

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Sheet

TITLE = "Spread of the outputs within a class: deeper GCNs, and P-reg"
RECORD = Path(__file__).with_suffix(".json")
PHIS = {"cross_entropy": ("cross entropy", BLUE, "o-"), "squared_error": ("squared error", GREEN, "s--")}
LAYERS, STRENGTHS, SPLITS, EPOCHS = (2, 3, 4), (0.1, 0.2, 0.5, 1.0, 2.0, 5.0), 10, 100


@dataclass(frozen=True)
class Run:
    """One training on the digits: ω and the mean length of the outputs, at the reported epoch, and test accuracy."""

    phi: str
    layers: int
    mu: float
    split: int
    omega: float
    length: float
    test: float


def train(layers: Sequence[int], strengths: Sequence[float], splits: int, epochs: int) -> list[Run]:
    """Plain GCNs of so many layers, and P-reg as the paper writes it, with either φ, on the one of two."""
    import torch

    import propreg
    from propreg.data.graph import SparseFeatures
    from propreg.engine import Method, Model, Options, Problem, Protocol, Replica, train_all
    from propreg.engine.models.network import no_dropout
    from propreg.running.plan import load_source

    source = load_source("digits", splits=splits)
    x = source.graph.x
    assert isinstance(x, SparseFeatures)
    assert x.values is not None
    graph = replace(source.graph, x=replace(x, values=x.values / np.float32(16)))  # pixels from 0 to 16 become 0 to 1
    problem, y = Problem(graph, source.splits, torch.device("cpu")), torch.from_numpy(graph.y)
    plans = [*(("", depth, (0.0,)) for depth in layers), *((phi, 2, tuple(strengths)) for phi in PHIS)]
    found = []
    for phi, depth, mus in plans:
        model = Model("gcn", layers=depth)
        network = problem.network(model)
        replicas = [Replica(0, str(split), mu, lr=0.05) for mu in mus for split in range(splits)]
        method = Method("preg", phi=phi) if phi else Method()
        options, protocol = Options(keep_weights=True), Protocol(max_epochs=epochs)
        for place, result in train_all(problem, model, method, replicas, protocol, options):
            with torch.no_grad():
                weights = {name: torch.as_tensor(w).unsqueeze(0) for name, w in result.weights.items()}
                z = network.finish(weights, network.begin(weights), no_dropout)[0]
            omega, length = propreg.intra_class_distance(z, y).item(), z.norm(dim=1).mean().item()
            mine = replicas[place]
            numbers = (round(each, 6) for each in (omega, length, result.test))
            found.append(Run(phi, depth, mine.strength, int(mine.split), *numbers))
    return sorted(found, key=lambda run: (run.phi, run.layers, run.mu, run.split))


def data() -> list[Run]:
    """The recorded runs."""
    return [Run(**each) for each in json.loads(RECORD.read_text(encoding="utf-8"))]


def spread(runs: Sequence[Run], layers: int = 2, mu: float = 0.0, phi: str = "", *, scaled: bool = True) -> Summary:
    """Mean and interval over splits of ω over the outputs' mean length, or of ω itself."""
    mine = [run for run in runs if (run.phi, run.layers, run.mu) == (phi, layers, mu)]
    return summarize(np.array([[run.omega / run.length if scaled else run.omega] for run in mine]))


def depths(phi: str) -> dict[float, float]:
    """The number of layers that each μ is worth, read between the 2- and the 3-layer GCN on the scale-free spread."""
    runs = data()
    two, three = (spread(runs, layers).mean for layers in (2, 3))
    return {mu: 2 + (two - spread(runs, 2, mu, phi).mean) / (two - three) for mu in STRENGTHS}


def draw(runs: Sequence[Run]) -> "Sheet":
    """The scale-free spread on the left, ω itself on the right."""
    sheet = new_sheet(7.2, 2.9)
    left, right = sheet.subplots(1, 2)
    _panel(left, runs, True, "spread, scale-free (ω over mean length)")
    _panel(right, runs, False, "spread ω itself")
    sheet.legend(*left.get_legend_handles_labels(), loc="outside upper left", ncols=3)
    return sheet


def _panel(axes: "Axes", runs: Sequence[Run], scaled: bool, title: str) -> None:
    for layers in LAYERS:
        level, mine = spread(runs, layers, scaled=scaled), look(f"depth-{layers}")
        axes.axhline(level.mean, color=mine.color, linestyle=mine.dash, label=f"plain, {layers} layers", linewidth=1)
    for phi, (name, color, line) in PHIS.items():
        found = [spread(runs, 2, mu, phi, scaled=scaled) for mu in STRENGTHS]
        low, high = [each.low for each in found], [each.high for each in found]
        axes.plot(STRENGTHS, [each.mean for each in found], line, color=color, label=f"2 layers + P-reg, {name}")
        axes.fill_between(STRENGTHS, low, high, color=color, alpha=0.15, linewidth=0)
    axes.set(
        title=title, xscale="log", xlabel="strength μ", xticks=STRENGTHS, xticklabels=[f"{m:g}" for m in STRENGTHS]
    )
    axes.minorticks_off()


def picture() -> bytes:
    """``fractional_depth.svg``."""
    runs = data()
    return drawn(lambda: draw(runs), TITLE)


if __name__ == "__main__":
    made = [asdict(run) for run in train(LAYERS, STRENGTHS, SPLITS, EPOCHS)]
    RECORD.write_text("[\n" + ",\n".join(json.dumps(run) for run in made) + "\n]\n", encoding="utf-8")
