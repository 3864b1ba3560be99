"""The page and the picture of a fit in Python: those of ``propreg run``, from the same record."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from propreg.fitting.graphs.result import GraphFitResult
from propreg.fitting.result import FitResult
from propreg.report.run_html import run_page
from propreg.report.run_numbers import numbers_of
from propreg.report.run_pictures import run_pictures, without_formulas
from propreg.report.run_record import read_run
from propreg.running.compare import record_of
from propreg.running.graphs import graph_record
from propreg.study.figures.drawing.save import save_figure, sheet_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Sheet

    from propreg.fitting.comparison import Comparison


def page_of(result: "Comparison") -> str:
    """The HTML."""
    return run_page(_record_of(result))


def picture_of(result: "Comparison", path: str | os.PathLike[str] | None = None) -> "Sheet":
    """The score against μ, and in a file if a path is given."""
    run = without_formulas(read_run(_record_of(result)))
    figure = run_pictures(run, numbers_of(run))["accuracy-against-mu"]
    if path is not None:
        save_figure(figure, Path(path))
    return sheet_of(figure)


def _record_of(result: "Comparison") -> dict[str, Any]:
    """Of nodes, or of whole graphs."""
    if isinstance(result, GraphFitResult):
        return graph_record(result, "graphs")
    assert isinstance(result, FitResult)
    return record_of(result)
