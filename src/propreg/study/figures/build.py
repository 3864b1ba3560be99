"""Figures by name."""

from dataclasses import replace

from propreg.store.errors import UsageError, unknown
from propreg.store.results import Results
from propreg.study.figures.depth import depth
from propreg.study.figures.mask import mask
from propreg.study.figures.overview import overview
from propreg.study.figures.parts import Figure
from propreg.study.figures.strength import strength
from propreg.study.figures.table1_gains import table1_gains
from propreg.study.figures.training_nodes import training_nodes
from propreg.study.figures.tsne import tsne as tsne_figure
from propreg.study.figures.tsne_record import TsneRecord

_FROM_RUNS = {
    "table1": table1_gains,
    "fig-training-nodes": training_nodes,
    "fig-mask": mask,
    "fig-strength": strength,
    "overview": overview,
}


def figure_names() -> list[str]:
    """The names of all figures.

    Example:
        >>> figure_names()
        ['fig-depth', 'fig-mask', 'fig-strength', 'fig-training-nodes', 'fig-tsne', 'overview', 'table1']
    """
    return sorted((*_FROM_RUNS, "fig-depth", "fig-tsne"))


def figure_data(name: str, results: Results, *, dataset: str | None = None, tsne: TsneRecord | None = None) -> Figure:
    """Compute a figure from recorded runs.

    Args:
        name: One of :func:`figure_names`.
        results: The runs, see :func:`propreg.store.results.load_results`.
        dataset: For ``fig-depth``: the dataset, or ``"all"``; Cora by default.
        tsne: For ``fig-tsne``: the record of outputs, see :func:`propreg.study.figures.tsne_record.read_tsne`.

    Raises:
        StudyError: If the figure or its dataset is unknown; the message lists the known ones.
    """
    if name not in figure_names():
        raise unknown("figure", name, figure_names())
    if dataset is not None and name != "fig-depth":
        raise UsageError(f"Only fig-depth takes a dataset, got {dataset!r} with {name}: leave it out.")
    if name == "fig-depth":
        made = depth(results, dataset)
    elif name == "fig-tsne":
        made = tsne_figure(results, tsne)
    else:
        made = _FROM_RUNS[name](results)
    # A finding is about the complete record, not about a part of it.
    finding, filled = "" if made.missing else made.finding, tuple(each for each in made.listings if each.rows)
    return replace(made, finding=finding, listings=filled)
