"""The value of the term where all nodes predict the same, against how sure they are."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

import propreg
from figures.drawing import drawn, new_sheet
from propreg._options import PhiName
from propreg.study.figures.drawing.style import BLUE, DASHED, DOTTED, GREEN, VERMILION, Dash

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Sheet

TITLE = "P-reg where all nodes agree"
LINES: dict[PhiName, tuple[str, str, Dash]] = {
    "cross_entropy": ("cross entropy = the entropy of the prediction", BLUE, "-"),
    "kl": ("KL divergence", VERMILION, DASHED),
    "squared_error": ("squared error", GREEN, DOTTED),
}
SHARES = tuple(k / 100 for k in range(1, 100))


@dataclass(frozen=True)
class Equal:
    """The value of each φ at each probability of class 0."""

    values: dict[str, list[float]]


def data() -> Equal:
    """Computed with the library, on a path of three nodes."""
    path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    rows = [torch.tensor([share, 1 - share], dtype=torch.float64).log().expand(3, 2) for share in SHARES]
    return Equal({phi: [propreg.preg(z, path, phi=phi).item() for z in rows] for phi in LINES})


def draw(equal: Equal) -> "Sheet":
    """One line for each φ."""
    sheet = new_sheet(4.4, 2.5)
    axes = sheet.subplots()
    for phi, (name, color, dash) in LINES.items():
        axes.plot(SHARES, equal.values[phi], color=color, linestyle=dash, label=name)
    axes.set(xlabel="probability of class 0, the same at all nodes", ylabel="value of the term", xlim=(0, 1))
    sheet.legend(loc="outside upper left")
    return sheet


def picture() -> bytes:
    """``equal_rows.svg``."""
    found = data()
    return drawn(lambda: draw(found), TITLE)
