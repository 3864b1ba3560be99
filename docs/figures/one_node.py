"""What the term compares at one node: its own prediction, and the average of its neighbors'."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

import propreg
from figures.drawing import drawn, new_sheet
from propreg._options import PhiName
from propreg.study.figures.drawing.style import BLACK, BLUE, GRAY, ORANGE, PALE, SKY

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Sheet

TITLE = "A node, its neighbors, and what P-reg compares"
PHIS: tuple[PhiName, ...] = ("cross_entropy", "kl", "squared_error")
# Node 0 has four neighbors: three sure of class 0, one of class 2. Itself it leans to class 1.
EDGES = torch.tensor([[1, 2, 3, 4], [0, 0, 0, 0]])
LOGITS = torch.tensor([[0.2, 0.9, 0.1], [2.4, 0.2, 0.3], [1.6, 0.3, 0.0], [2.0, -0.2, 0.4], [0.1, 0.3, 1.8]])
PLACES = ((0.0, 0.0), (-1.25, 0.7), (1.25, 0.7), (-1.25, -0.7), (1.25, -0.7))


@dataclass(frozen=True)
class Node:
    """The rows that are compared, and what each φ makes of them."""

    probabilities: list[list[float]]
    average: list[float]
    values: dict[str, float]


def data() -> Node:
    """Computed with the library."""
    propagated = propreg.Propagation(EDGES, num_nodes=5)(LOGITS)
    values: dict[str, float] = {phi: propreg.preg(LOGITS, EDGES, phi=phi, reduction="none")[0].item() for phi in PHIS}
    return Node(LOGITS.softmax(-1).tolist(), propagated.softmax(-1)[0].tolist(), values)


def draw(node: Node) -> "Sheet":
    """The graph with a small bar chart at each node, and the two rows side by side."""
    sheet = new_sheet(6.6, 2.5)
    left, right = sheet.subplots(1, 2, width_ratios=(1.25, 1))
    left.set(xlim=(-1.8, 1.8), ylim=(-1.25, 1.25), title="a node and its neighbors", aspect="equal")
    left.axis("off")
    for x, y in PLACES[1:]:
        left.annotate("", (0.33 * x, 0.33 * y), (0.72 * x, 0.72 * y), arrowprops={"arrowstyle": "->", "color": GRAY})
    for number, (x, y) in enumerate(PLACES):
        _bars(left, x, y, node.probabilities[number], BLUE if number == 0 else SKY)
    width = 0.36
    for shift, row, color, name in (
        (-width / 2, node.probabilities[0], BLUE, "P, the node's own"),
        (width / 2, node.average, ORANGE, "Q, of its neighbors' mean"),
    ):
        right.bar([c + shift for c in range(3)], row, width, color=color, label=name)
    right.set(xticks=range(3), xticklabels=[f"class {c}" for c in range(3)], ylabel="probability", ylim=(0, 1.05))
    right.set_title("what is compared at the node")
    right.legend(loc="upper right")
    return sheet


def _bars(axes: "Axes", x: float, y: float, row: list[float], color: str) -> None:
    from matplotlib.patches import Circle

    axes.add_patch(Circle((x, y), 0.42, facecolor="white", edgecolor=BLACK if color == BLUE else GRAY, zorder=2))
    for c, share in enumerate(row):
        left, bottom = x - 0.24 + 0.17 * c, y - 0.24
        axes.bar(left + 0.07, 0.5, 0.14, bottom, color=PALE, zorder=3)
        axes.bar(left + 0.07, 0.5 * share, 0.14, bottom, color=color, zorder=4)


def picture() -> bytes:
    """``one_node.svg``."""
    found = data()
    return drawn(lambda: draw(found), TITLE)
