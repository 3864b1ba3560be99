"""What μ → ∞ does: the best predictions on a small graph with two labels, for three φ.

No network stands between: the logits themselves are what is optimized, so that nothing but the loss decides. All
strengths are trained at once, each on its own copy of the graph.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor

import propreg
from figures.drawing import drawn, new_sheet
from propreg._options import PhiName
from propreg.study.figures.drawing.style import BLUE, VERMILION

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Sheet

TITLE = "What a strong P-reg does to two communities"
PHIS: dict[PhiName, str] = {"squared_error": "squared error", "kl": "KL divergence", "cross_entropy": "cross entropy"}
STRENGTHS = tuple(10.0 ** (k / 3) for k in range(-6, 13))
SIZE, STEPS, RATE = 4, 800, 0.1
DECAY = 0.01  # ½ · DECAY · ‖Z‖², without which labeled nodes would go to infinity at every μ
LABELED = {0: 0, 2 * SIZE - 1: 1}  # one node of each community


@dataclass(frozen=True)
class Strong:
    """Probability of class 0, of every node at every strength, by φ."""

    strengths: tuple[float, ...]
    probability: dict[str, list[list[float]]]


def two_communities(copies: int) -> Tensor:
    """Two cliques joined by one edge, several times over, as one graph."""
    clique = [(i, j) for i in range(SIZE) for j in range(i)]
    pairs = [*clique, *((i + SIZE, j + SIZE) for i, j in clique), (SIZE - 1, SIZE)]
    once = torch.tensor([*pairs, *((b, a) for a, b in pairs)]).t()
    return torch.cat([once + 2 * SIZE * copy for copy in range(copies)], dim=1)


def data() -> Strong:
    """Minimize cross entropy on the labels + μ · P-reg + decay, for each φ."""
    edges, nodes = two_communities(len(STRENGTHS)), 2 * SIZE
    mu = torch.tensor(STRENGTHS, dtype=torch.float64).repeat_interleave(nodes)
    labeled = torch.tensor([copy * nodes + i for copy in range(len(STRENGTHS)) for i in LABELED])
    y = torch.tensor(list(LABELED.values())).repeat(len(STRENGTHS))
    propagation = propreg.Propagation(edges, num_nodes=len(mu))
    found: dict[str, list[list[float]]] = {}
    for phi in PHIS:
        z = torch.zeros(len(mu), 2, dtype=torch.float64, requires_grad=True)
        optimizer = torch.optim.Adam([z], RATE)
        for _ in range(STEPS):
            term = propreg.preg(z, propagation, phi=phi, reduction="none") * mu
            each = F.cross_entropy(z[labeled], y, reduction="sum") / len(LABELED)
            loss = each + term.sum() / nodes + DECAY / 2 * z.square().sum()
            optimizer.zero_grad()
            torch.autograd.backward(loss)
            optimizer.step()
        found[phi] = z.detach().softmax(-1)[:, 0].reshape(len(STRENGTHS), nodes).tolist()
    return Strong(STRENGTHS, found)


def draw(strong: Strong) -> "Sheet":
    """A panel for each φ, a line for each node."""
    sheet = new_sheet(7.2, 2.5)
    grid = sheet.subplots(1, len(PHIS), sharey=True)
    for axes, (phi, name) in zip(grid, PHIS.items(), strict=True):
        for node, line in enumerate(zip(*strong.probability[phi], strict=True)):
            first = node < SIZE
            style = {"color": BLUE if first else VERMILION, "linestyle": "-" if first else (0, (4, 1.6))}
            label = ("nodes of the first community" if first else "of the second") if node in (0, SIZE) else None
            axes.plot(strong.strengths, line, label=label, **style)
        axes.set(xscale="log", ylim=(-0.03, 1.03), title=name, xlabel="strength μ")
    grid[0].set_ylabel("probability of class 0")
    sheet.legend(*grid[0].get_legend_handles_labels(), loc="outside upper left", ncols=2)
    return sheet


def picture() -> bytes:
    """``strong_mu.svg``."""
    found = data()
    return drawn(lambda: draw(found), TITLE)
