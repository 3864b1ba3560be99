"""A small graph to explore: what an MLP with P-reg predicts for each node as μ grows.

``python -m figures.explore`` (from docs/) trains the models again, a few seconds, and writes ``explore.json`` beside
this file. The site draws it with a slider (``_static/explore.js``), and ``explore.svg`` shows four of its strengths.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from figures.drawing import drawn, new_sheet
from propreg.study.figures.drawing.style import BLACK, BLUE, GRAY, GREEN, ORANGE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Sheet

TITLE = "What an MLP predicts for each node of a small graph, as μ grows"
RECORD = Path(__file__).with_suffix(".json")
STRENGTHS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2, 1.5, 2.0, 3.0)
SHOWN = (0.0, 0.5, 0.9, 2.0)
COLORS = (BLUE, ORANGE, GREEN)
CLASSES, PER_CLASS, LABELED, WORDS, EPOCHS = 3, 20, 5, 60, 100


@dataclass(frozen=True)
class Explored:
    """The graph, where its nodes are drawn, and the probabilities [strengths, nodes, classes] in percent."""

    places: list[list[float]]
    edges: list[list[int]]
    classes: list[int]
    labeled: list[int]
    strengths: list[float]
    percent: list[list[list[int]]]

    def accuracy(self, strength: float) -> float:
        """The share of nodes without a label whose most probable class is theirs."""
        predicted = np.array(self.percent[self.strengths.index(strength)]).argmax(1)
        rest = [node for node in range(len(self.classes)) if node not in self.labeled]
        return float((predicted[rest] == np.array(self.classes)[rest]).mean())


def train() -> Explored:
    """One MLP for each strength, from the same weights: three groups, noisy words, five labels for each class."""
    import torch
    from torch import nn
    from torch.nn.functional import cross_entropy

    import propreg

    generator = np.random.Generator(np.random.PCG64(0))
    y = np.repeat(np.arange(CLASSES), PER_CLASS)
    upper = np.triu(generator.random((len(y), len(y))) < np.where(y[:, None] == y, 0.25, 0.015), 1)
    own = np.arange(WORDS) % CLASSES == y[:, None]
    words = (generator.random(own.shape) < np.where(own, 0.4, 0.2)).astype(np.float32)
    x = torch.from_numpy(words / words.sum(1, keepdims=True).clip(1) * WORDS**0.5 / CLASSES)
    labeled = np.concatenate([np.flatnonzero(y == c)[:LABELED] for c in range(CLASSES)])
    edge_index, targets = torch.from_numpy(np.stack((upper | upper.T).nonzero())), torch.from_numpy(y)
    percent = []
    for mu in STRENGTHS:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(WORDS, 16), nn.ReLU(), nn.Linear(16, CLASSES))
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-3)
        for _ in range(EPOCHS):
            optimizer.zero_grad()
            z = model(x)
            loss = cross_entropy(z[labeled], targets[labeled]) + mu * propreg.preg(z, edge_index)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        with torch.no_grad():
            percent.append((100 * model(x).softmax(-1)).round().int().tolist())
    edges = np.stack(upper.nonzero(), 1)
    places = [[round(float(a), 3) for a in row] for row in spring(len(y), edges, generator)]
    return Explored(places, edges.tolist(), y.tolist(), labeled.tolist(), list(STRENGTHS), percent)


def spring(nodes: int, edges: NDArray[np.int64], generator: np.random.Generator) -> NDArray[np.float64]:
    """Places within [-1, 1]: edges pull their ends together, and all nodes push each other away."""
    places, ideal = generator.uniform(-1, 1, (nodes, 2)), nodes**-0.5
    joined = np.zeros((nodes, nodes))
    joined[edges[:, 0], edges[:, 1]] = joined[edges[:, 1], edges[:, 0]] = 1
    for step in np.linspace(0.2, 0.005, 400):
        apart = places[:, None] - places
        length = np.maximum(np.linalg.norm(apart, axis=2), 0.01)
        force = ((ideal / length) ** 2 - joined * length / ideal)[..., None] * apart
        move = force.sum(1)
        places = places + step * move / np.maximum(np.linalg.norm(move, axis=1, keepdims=True), 1e-9)
    places -= (places.max(0) + places.min(0)) / 2
    return np.asarray(places / np.abs(places).max(0))


def data() -> Explored:
    """The recorded outputs."""
    return Explored(**json.loads(RECORD.read_text(encoding="utf-8")))


def draw(found: Explored) -> "Sheet":
    """The graph at four strengths: the color is the predicted class, paler where it is less probable."""
    sheet = new_sheet(7.4, 2.3)
    for axes, mu in zip(sheet.subplots(1, len(SHOWN)), SHOWN, strict=True):
        _graph(axes, found, mu)
    return sheet


def _graph(axes: "Axes", found: Explored, mu: float) -> None:
    from matplotlib.collections import LineCollection
    from matplotlib.colors import to_rgba

    p = np.array(found.percent[found.strengths.index(mu)]) / 100
    ends = np.array(found.places)[np.array(found.edges)]
    axes.add_collection(LineCollection(list(ends), colors=GRAY, alpha=0.35, linewidths=0.5, zorder=1))
    colors = [to_rgba(COLORS[row.argmax()], alpha=max(0.15, (row.max() - 1 / 3) * 1.5)) for row in p]
    wide = [1.4 if node in found.labeled else 0.0 for node in range(len(p))]
    x, y = np.array(found.places).T
    axes.scatter(x, y, s=34, color="white", zorder=2)
    axes.scatter(x, y, s=34, color=colors, edgecolors=BLACK, linewidths=wide, zorder=3)
    axes.set_title(f"μ = {mu:g}: {found.accuracy(mu):.0%} right")
    axes.set(xlim=(-1.15, 1.15), ylim=(-1.15, 1.15))
    axes.axis("off")


def picture() -> bytes:
    """``explore.svg``."""
    found = data()
    return drawn(lambda: draw(found), TITLE)


if __name__ == "__main__":
    RECORD.write_text(json.dumps(asdict(train()), separators=(",", ":")) + "\n", encoding="utf-8")
