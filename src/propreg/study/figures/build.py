"""Figures by name."""

from propreg.study.errors import UsageError, unknown
from propreg.study.figures.clouds import clouds
from propreg.study.figures.depth import depth
from propreg.study.figures.forest import forest
from propreg.study.figures.mask import mask
from propreg.study.figures.overview import overview
from propreg.study.figures.parts import Figure
from propreg.study.figures.strength import strength
from propreg.study.figures.training_nodes import training_nodes
from propreg.study.results import Results
from propreg.study.tsne_record import TsneRecord

_FROM_RUNS = {
    "table1": forest,
    "fig-training-nodes": training_nodes,
    "fig-mask": mask,
    "fig-strength": strength,
    "overview": overview,
}


def figure_names() -> list[str]:
    """The figures there are.

    Example:
        >>> figure_names()
        ['fig-depth', 'fig-mask', 'fig-strength', 'fig-training-nodes', 'fig-tsne', 'overview', 'table1']
    """
    return sorted((*_FROM_RUNS, "fig-depth", "fig-tsne"))


def figure_data(name: str, results: Results, *, dataset: str | None = None, tsne: TsneRecord | None = None) -> Figure:
    """Compute a figure from recorded runs.

    Args:
        name: One of :func:`figure_names`.
        results: The runs, see :func:`propreg.study.results.load_results`.
        dataset: For ``fig-depth``: the dataset, or ``"all"``; Cora where none is named.
        tsne: For ``fig-tsne``: the record of outputs, see :func:`propreg.study.tsne_record.read_tsne`.

    Raises:
        StudyError: If there is no figure, or no dataset in it, of this name; the message lists the known ones.
    """
    if name not in figure_names():
        raise unknown("figure", name, figure_names())
    if dataset is not None and name != "fig-depth":
        raise UsageError(f"Only fig-depth takes a dataset, but {dataset!r} came with {name}: leave it out.")
    if name == "fig-depth":
        return depth(results, dataset)
    if name == "fig-tsne":
        return clouds(results, tsne)
    return _FROM_RUNS[name](results)
