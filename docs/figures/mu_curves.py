"""How accuracy changes with μ on every dataset, from the recorded runs of Table 1."""

from typing import TYPE_CHECKING

from building.record import MODELS, OFFICIAL_FORM, Curve, curves
from figures.drawing import drawn, new_sheet
from propreg.names import DATASETS
from propreg.store.results import Results
from propreg.study.figures.drawing.style import BLUE, DASHED, GRAY, GREEN, MIXED, VERMILION

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Sheet

TITLE = "Change of test accuracy with μ"
LOOKS = {"gcn": (BLUE, "-"), "gat": (VERMILION, DASHED), "mlp": (GREEN, MIXED)}
LOWEST = -8.0  # points: below, all that matters is that it is far below


def data(results: Results) -> dict[str, list[Curve]]:
    """The complete curves, by dataset."""
    found: dict[str, list[Curve]] = {name: [] for name in DATASETS}
    for each in curves("table1", OFFICIAL_FORM, results):
        found[each.line.dataset].append(each)
    return found


def draw(found: dict[str, list[Curve]]) -> "Sheet":
    """A panel for each dataset, and how to read them in the last place."""
    sheet = new_sheet(7.4, 3.6)
    grid = sheet.subplots(2, 4, sharex=True)
    places = list(grid.flat)
    for axes, (name, mine) in zip(places, found.items(), strict=False):
        for each in mine:
            _line(axes, each)
        axes.axhline(0, color=GRAY, linewidth=0.8)
        axes.set(title=DATASETS[name], xlim=(0, 1.03), xticks=(0, 0.5, 1), xticklabels=("0", "0.5", "1"))
        axes.set_ylim(bottom=max(axes.get_ylim()[0], LOWEST))
        if not mine:
            axes.text(0.5, 0.5, "not recorded", ha="center", va="center", transform=axes.transAxes, color=GRAY)
    for axes in grid[:, 0]:
        axes.set_ylabel("points")
    for axes in (*grid[1, :3], grid[0, 3]):
        axes.set_xlabel("strength μ")
        axes.tick_params(labelbottom=True)
    places[-1].axis("off")
    labeled = {line.get_label(): line for axes in places for line in axes.get_lines() if line.get_gid()}
    places[-1].legend(labeled.values(), labeled.keys(), loc="center left", title="○  picked on validation")
    return sheet


def _line(axes: "Axes", found: Curve) -> None:
    color, dash = LOOKS[found.line.model]
    x = [0.0, *(point.mu for point in found.points)]
    y = [0.0, *(point.difference.mean for point in found.points)]
    low = [0.0, *(point.difference.low for point in found.points)]
    high = [0.0, *(point.difference.high for point in found.points)]
    axes.plot(x, y, color=color, linestyle=dash, label=MODELS[found.line.model], gid=found.line.model)
    axes.fill_between(x, low, high, color=color, alpha=0.15, linewidth=0)
    best = found.picked
    axes.plot([best.mu], [best.difference.mean], "o", color=color, markerfacecolor="white", markersize=5)


def picture(results: Results) -> bytes:
    """``mu_curves.svg``."""
    found = data(results)
    return drawn(lambda: draw(found), TITLE)
