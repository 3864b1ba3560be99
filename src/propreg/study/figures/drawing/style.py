"""How figures look: colors that color-blind readers can distinguish (Okabe and Ito), marks, dashes and sizes."""

from dataclasses import dataclass
from typing import Any

BLACK, GRAY, PALE = "#222222", "#6b6b6b", "#e8e8e8"
ORANGE, SKY, GREEN, BLUE = "#e69f00", "#56b4e9", "#009e73", "#0072b2"
VERMILION, PURPLE = "#d55e00", "#cc79a7"
SOLID, DASHED, DOTTED, MIXED, LONG = "-", (0, (4, 1.6)), (0, (1, 1.6)), (0, (5, 1.5, 1, 1.5)), (0, (8, 2))
SMALL = 6.8  # points, of words inside a panel
Dash = str | tuple[int, tuple[float, ...]]


@dataclass(frozen=True)
class Look:
    """A color, and a mark and a dash that distinguish the same series without it."""

    color: str
    mark: str
    dash: Dash = SOLID
    hollow: bool = False


LOOKS = {
    "plain": Look(GRAY, "o", DASHED, hollow=True),
    "preg-reference": Look(BLUE, "o"),
    "preg-paper": Look(SKY, "s", DASHED),
    "laplacian-mean": Look(VERMILION, "^"),
    "laplacian-sum": Look(ORANGE, "v", DASHED),
    "laplacian-official": Look(PURPLE, "D", MIXED),
    "label_smoothing": Look(GREEN, "P"),
    "confidence_penalty-paper": Look(ORANGE, "X"),
    "gcn": Look(BLUE, "o"),
    "gat": Look(VERMILION, "^", DASHED),
    "depth-2": Look("#777777", "$2$", DOTTED),
    "depth-3": Look("#444444", "$3$", DASHED),
    "depth-4": Look("#111111", "$4$", LONG),
    "silhouette": Look(BLUE, "o"),
    "scale-free": Look(VERMILION, "^"),
    "val": Look(VERMILION, "s", DASHED),
    "both": Look("#bdbdbd", "o"),
    "fixed": Look(BLUE, "o"),
    "broken": Look(VERMILION, "o"),
    "neither": Look(BLACK, "o"),
    "paper": Look(BLACK, "D", DOTTED),
}
CLASSES = (BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY, BLACK, "#999999", "#b8a800", "#8b5a2b")

SETTINGS: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "axes.titlesize": 8.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 5,
    "axes.labelsize": 8,
    "axes.labelcolor": BLACK,
    "axes.edgecolor": "#9a9a9a",
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": PALE,
    "grid.linewidth": 0.5,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "xtick.color": "#9a9a9a",
    "ytick.color": "#9a9a9a",
    "xtick.labelcolor": BLACK,
    "ytick.labelcolor": BLACK,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.minor.visible": False,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "legend.handlelength": 2.4,
    "legend.columnspacing": 1.4,
    "lines.linewidth": 1.4,
    "lines.markersize": 3.8,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "svg.fonttype": "path",
    "svg.hashsalt": "propreg",
    "pdf.fonttype": 42,
}
"""Matplotlib's settings, on top of its own defaults and not of the user's, so that a figure looks alike everywhere."""


def look(key: str) -> Look:
    """That of a series or level.

    Example:
        >>> look("class-1").color == ORANGE, look("paper:preg-reference").color == BLUE, look("new").mark
        (True, True, 'o')
    """
    if key.startswith("class-"):
        return Look(CLASSES[int(key.removeprefix("class-")) % len(CLASSES)], "o")
    return LOOKS.get(key.removeprefix("paper:"), Look(BLACK, "o"))
