"""The pictures of the pages, in ``docs/figures``: figures of the study from the record, and the pages' own."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from propreg.store.results import Results
from propreg.study.figures.build import figure_data
from propreg.study.figures.drawing.save import render
from propreg.study.figures.parts import Figure

FOLDER = Path(__file__).parents[1] / "figures"
RECORDED = ("overview", "fig-training-nodes", "fig-mask", "fig-depth")


def pictures(results: Results, *, slow: bool = True) -> Iterator[tuple[str, bytes]]:
    """Every picture with its file name; ``slow`` includes the one that takes half a minute."""
    from figures import equal_rows, explore, fractional_depth, mu_curves, one_node, strong_mu

    for name in RECORDED:
        yield f"{name}.svg", render(without_empty(figure_data(name, results)), ".svg")
    yield "mu_curves.svg", mu_curves.picture(results)
    for own in (one_node, equal_rows, explore, fractional_depth, *([strong_mu] if slow else [])):
        yield f"{own.__name__.rpartition('.')[2]}.svg", own.picture()


def without_empty(figure: Figure) -> Figure:
    """Only panels with something to see, if there are any."""
    shown = tuple(panel for panel in figure.panels if not panel.empty)
    return replace(figure, panels=shown, columns=min(figure.columns, len(shown))) if shown else figure
