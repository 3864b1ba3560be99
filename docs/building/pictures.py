"""All pictures of the site, made when it is built: figures of the study from records, and the pages' own.

``python -m building.pictures`` (from docs/) makes them without building the site.
"""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from figures import equal_rows, fractional_depth, mu_curves, one_node, strong_mu
from propreg.study.figures.build import figure_data
from propreg.study.figures.parts import Figure
from propreg.study.figures.save import save_figure
from propreg.study.results import load_results

if TYPE_CHECKING:
    from sphinx.application import Sphinx

HERE = Path(__file__).parents[1]
MADE, RESULTS = "_made", HERE.parent / "results"
RECORDED = ("fig-training-nodes", "fig-mask", "fig-depth")


def setup(app: "Sphinx") -> dict[str, bool]:
    """Make them before the first page is read."""
    app.connect("builder-inited", lambda app: make_all(Path(app.srcdir) / MADE))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def make_all(folder: Path) -> None:
    """Write every picture into a folder."""
    folder.mkdir(exist_ok=True)
    results = load_results(RESULTS)
    for name in RECORDED:
        save_figure(without_empty(figure_data(name, results)), folder / f"{name}.svg")
    mu_curves.make(folder, RESULTS)
    for own in (one_node, equal_rows, strong_mu, fractional_depth):
        own.make(folder)


def without_empty(figure: Figure) -> Figure:
    """Only panels with something to see, where there are any: what is missing is said under the picture."""
    shown = tuple(panel for panel in figure.panels if not panel.empty)
    return replace(figure, panels=shown, columns=min(figure.columns, len(shown))) if shown else figure


if __name__ == "__main__":
    make_all(HERE / MADE)
