"""The paper's figures as what the page draws: the study's own figure data, made small."""

from collections.abc import Iterable
from dataclasses import is_dataclass
from typing import Any

from propreg.study.experiment import load_experiment
from propreg.study.figures import words
from propreg.study.figures.build import figure_data, figure_names
from propreg.study.figures.parts import Figure
from propreg.study.results import Results
from propreg.study.tsne_record import TsneRecord


def pictures(names: Iterable[str], results: Results, tsne: TsneRecord | None = None) -> dict[str, list[dict[str, Any]]]:
    """The figures of these experiments; several where there is one for each dataset."""
    found = {}
    for name in names:
        if name not in figure_names():
            continue
        if name == "fig-depth":
            datasets = dict.fromkeys(line.dataset for line in load_experiment(name).lines)
            made = [(words.dataset(each), figure_data(name, results, dataset=each)) for each in datasets]
        else:
            made = [("", figure_data(name, results, tsne=tsne) if name == "fig-tsne" else figure_data(name, results))]
        found[name] = [_small(figure, label, tsne) for label, figure in made]
    return found


def _small(figure: Figure, label: str, tsne: TsneRecord | None) -> dict[str, Any]:
    """A figure as JSON; coordinates with six digits, clouds with the numbers of their nodes."""
    value: dict[str, Any] = _short(figure)
    value["label"] = label
    value["drawn"] = any(not panel["empty"] for panel in value["panels"])
    for series in (each for panel in value["panels"] for each in panel["series"] if each["kind"] == "cloud"):
        of = int(series["key"].removeprefix("class-"))
        series["nodes"] = [node for node, each in enumerate(tsne.labels if tsne else ()) if each == of]
    return value


def _short(value: Any) -> Any:
    """As ``as_dict``, but without its deep copies: a cloud has thousands of places."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, tuple):
        return [_short(each) for each in value]
    if is_dataclass(value):
        return {name: _short(each) for name, each in vars(value).items()}
    return value
