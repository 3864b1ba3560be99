"""The study's page: every table and figure of the paper from recorded runs."""

import tomllib
from collections import Counter
from collections.abc import Iterable
from dataclasses import is_dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from propreg.names import dataset_title
from propreg.report.overview import add_up, matrices, tallies
from propreg.report.page import packed, render, script_json
from propreg.report.study import CachedResults, Section, Study, collect
from propreg.report.text import clean
from propreg.report.wide import choices, widen
from propreg.store.export import record_files
from propreg.store.provenance import made_by
from propreg.store.results import Results, load_results
from propreg.study.figures.build import figure_data, figure_names
from propreg.study.figures.parts import Figure
from propreg.study.figures.tsne_record import TsneRecord, find_tsne
from propreg.study.spec.experiment import load_experiment, study_names
from propreg.study.tables import ablation, costs, together
from propreg.study.tables.costs import Costs, find_costs
from propreg.study.tables.pivot import SIGNS
from propreg.study.tables.rows import scale_of
from propreg.study.tables.text import NOTES

SCRIPTS = (
    "dom.js", "contents.js", "sha256.js", "data.js", "sort.js", "axes.js", "looks.js", "marks.js", "chart.js",
    "filters.js", "list.js",
    "curve.js", "details.js", "figures.js", "study.js",
)  # fmt: skip


KEY = ("table1", "fig-strength", "fig-training-nodes", "fig-depth")
"""The sections whose findings stand on the first screen, after what P-reg adds."""


def study_page(path: Path) -> str:
    """The page from a store, an export, or a folder of exports.

    Raises:
        StudyError: If there is nothing to read, or it cannot be read.
    """
    return page_of(load_results(path), machines(path), find_tsne([path]), find_costs([path]))


def page_of(
    results: Results,
    made_by: list[dict[str, str]] | None = None,
    tsne: TsneRecord | None = None,
    measured: Costs | None = None,
) -> str:
    """The page of these runs; ``made_by`` lists the machines, ``tsne`` is the record behind figure 3."""
    results = CachedResults(results)
    study = collect(results, _in_order(study_names()))
    tables = {section.name: widen(section) for section in study.sections if not section.name.startswith("fig")}
    figures = pictures([section.name for section in study.sections], results, tsne)
    offered = choices(list(study.sections))
    tallied, experiments = tallies(study), [section.experiment for section in study.sections]
    return render(
        "study.html",
        SCRIPTS,
        {
            "study": study,
            "about": {section.name: _about(section) for section in study.sections},
            "tables": tables,
            "scores": {section.name: _scores(section) for section in study.sections},
            "figures": figures,
            "matrices": matrices(study),
            "listings": {
                each.name: ablation.listings(each.experiment, each.experiment.lines, results)
                + together.listings(each.experiment, [row for line in each.lines for row in line.rows])
                for each in study.sections
            },
            "below": {mine.name: costs.listings(mine, mine.lines, results, measured) for mine in experiments},
            "tallies": tallied,
            "findings": _findings(study, figures, results),
            "signs": SIGNS,
            "held": add_up(tallied),
            "choices": offered,
            "notes": NOTES,
            "made_by": made_by or [],
            "figure_json": script_json(figures),
            "runs": packed(
                {"lines": study.lines, "grids": study.grids, "names": {k: dict(v) for k, v in offered.items()}}
            ),
        },
    )


def _findings(study: Study, figures: dict[str, list[dict[str, Any]]], results: Results) -> list[tuple[str, str, str]]:
    """Section, title and sentence of what the complete parts of the record show."""
    found = [("table1", figure_data("overview", results).finding)]
    found += [(name, figures[name][0]["finding"]) for name in KEY if name in figures]
    about = {section.name: _about(section) for section in study.sections}
    return [(name, about[name]["short"], finding) for name, finding in found if finding and name in about]


def pictures(names: Iterable[str], results: Results, tsne: TsneRecord | None = None) -> dict[str, list[dict[str, Any]]]:
    """The figures of these experiments as JSON; several if there is one for each dataset."""
    found = {}
    for name in names:
        if name not in figure_names():
            continue
        if name == "fig-depth":
            datasets = load_experiment(name).datasets
            made = [(dataset_title(each), figure_data(name, results, dataset=each)) for each in datasets]
        else:
            made = [("", figure_data(name, results, tsne=tsne) if name == "fig-tsne" else figure_data(name, results))]
        found[name] = [packed_figure(figure, label, tsne) for label, figure in made]
    return found


def packed_figure(figure: Figure, label: str, tsne: TsneRecord | None) -> dict[str, Any]:
    """A figure as JSON; coordinates with six digits, clouds with the numbers of their nodes."""
    value: dict[str, Any] = _short(figure)
    value["label"] = label
    value["drawn"] = any(not panel["empty"] for panel in value["panels"])
    for series in (each for panel in value["panels"] for each in panel["series"] if each["kind"] == "cloud"):
        of = int(series["key"].removeprefix("class-"))
        series["nodes"] = [node for node, each in enumerate(tsne.labels if tsne else ()) if each == of]
    return value


def _short(value: Any) -> Any:
    """As ``as_dict``, but without its deep copies: a cloud has thousands of points."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, tuple):
        return [_short(each) for each in value]
    if is_dataclass(value):
        return {name: _short(each) for name, each in vars(value).items()}
    return value


def machines(path: Path) -> list[dict[str, str]]:
    """The machines that trained these runs, as far as their provenance is recorded, each with its number of runs."""
    found: Counter[tuple[str, str, str]] = Counter()
    for note in (note for file in record_files(path) for note in made_by(file)):
        runs = note.get("runs", 0)
        device, torch, version = (clean(str(note.get(name, "not recorded"))) for name in ("device", "torch", "propreg"))
        found[device, torch, version] += runs if type(runs) is int else 0
    return [
        {"device": device, "torch": torch, "propreg": version, "runs": f"{runs:,}"}
        for (device, torch, version), runs in found.items()
    ]


def _in_order(names: list[str]) -> list[str]:
    """As in the paper, which is the order of ``sections.toml``; unknown names come last."""
    known = list(_texts())
    return sorted(names, key=lambda name: known.index(name) if name in known else len(known))


def _scores(section: Section) -> str:
    """What the numbers of a table are, at the start of a sentence."""
    titles = list(dict.fromkeys(scale_of(each.line.dataset).title for each in section.lines))
    if titles == [scale_of("").title]:
        return "Accuracy in percent"
    text = " or ".join(titles)
    return text[0].upper() + text[1:]


def _about(section: Section) -> dict[str, str]:
    """The text of a section; one that has none is known by its title."""
    title = section.experiment.title
    texts = {"short": title.split(":")[0], "ask": "", "about": "", "finding": "", "reading": "", "title": title}
    texts |= _texts().get(section.name, {})
    sizes = [len(each.line.cells) for each in section.lines if len(each.line.cells) > 1]
    for name, size in (("most", max(sizes, default=0)), ("least", min(sizes, default=0))):
        texts["reading"] = texts["reading"].replace(f"{{{name}}}", str(size))
    return texts


@cache
def _texts() -> dict[str, dict[str, str]]:
    text = resources.files("propreg.report").joinpath("sections.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)
