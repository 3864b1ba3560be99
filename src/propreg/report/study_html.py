"""The study's page: every table and figure of the paper from recorded runs."""

import tomllib
from collections import Counter
from functools import cache
from importlib import resources
from pathlib import Path

from propreg.report.grids import Remembered
from propreg.report.names import clean
from propreg.report.overview import add_up, help_words, hold_words, matrices, tallies
from propreg.report.page import render
from propreg.report.payload import packed, script_json
from propreg.report.pictures import pictures
from propreg.report.study import Section, collect
from propreg.report.wide import SIGNS, choices, widen
from propreg.study.experiment import study_names
from propreg.study.files import record_files
from propreg.study.forks import fork_findings
from propreg.study.merging import made_by
from propreg.study.render import NOTES
from propreg.study.results import Results, load_results
from propreg.study.tsne_record import TsneRecord, find_tsne

SCRIPTS = (
    "dom.js", "sha256.js", "data.js", "sort.js", "axes.js", "looks.js", "marks.js", "chart.js", "filters.js", "list.js",
    "curve.js", "details.js", "figures.js", "study.js",
)  # fmt: skip


def study_page(path: Path) -> str:
    """The page from a store, an export, or a folder of exports.

    Raises:
        StudyError: If there is nothing to read, or it cannot be read.
    """
    return page_of(load_results(path), machines(path), find_tsne([path]))


def page_of(results: Results, made_by: list[dict[str, str]] | None = None, tsne: TsneRecord | None = None) -> str:
    """The page of these runs; ``made_by`` says on what machines, ``tsne`` is the record behind figure 3."""
    results = Remembered(results)
    study = collect(results, _in_order(study_names()))
    tables = {section.name: widen(section) for section in study.sections if not section.name.startswith("fig")}
    figures = pictures([section.name for section in study.sections], results, tsne)
    offered = choices(list(study.sections))
    tallied, squares = tallies(study), matrices(study)
    held = add_up(tallied)
    return render(
        "study.html",
        SCRIPTS,
        {
            "study": study,
            "about": {section.name: _about(section) for section in study.sections},
            "tables": tables,
            "figures": figures,
            "matrices": squares,
            "helped": [(each, help_words(each)) for each in squares if each.known],
            "findings": {"ablation": fork_findings(results)},
            "tallies": tallied,
            "signs": SIGNS,
            "held": held,
            "hold_words": hold_words(held),
            "choices": offered,
            "notes": NOTES,
            "made_by": made_by or [],
            "figure_json": script_json(figures),
            "runs": packed(
                {"lines": study.lines, "grids": study.grids, "names": {k: dict(v) for k, v in offered.items()}}
            ),
        },
    )


def machines(path: Path) -> list[dict[str, str]]:
    """Where these runs were trained, as far as that was noted; one line per kind, with its runs."""
    found: Counter[tuple[str, str, str]] = Counter()
    for note in (note for file in record_files(path) for note in made_by(file)):
        runs = note.get("runs", 0)
        device, torch, version = (clean(str(note.get(name, "not said"))) for name in ("device", "torch", "propreg"))
        found[device, torch, version] += runs if type(runs) is int else 0
    return [
        {"device": device, "torch": torch, "propreg": version, "runs": f"{runs:,}"}
        for (device, torch, version), runs in found.items()
    ]


def _in_order(names: list[str]) -> list[str]:
    """As in the paper, which is the order of ``sections.toml``; what is not there comes last."""
    known = list(_texts())
    return sorted(names, key=lambda name: known.index(name) if name in known else len(known))


def _about(section: Section) -> dict[str, str]:
    """Words for a section; one that has none is known by its title."""
    known = _texts().get(section.name, {})
    title = section.experiment.title
    words = (
        {"short": title.split(":")[0], "ask": "", "about": "", "found": "", "reading": ""} | known | {"title": title}
    )
    strengths = [len(place.line.cells) for place in section.places if len(place.line.cells) > 1]
    ends = {"most": str(max(strengths, default=0)), "least": str(min(strengths, default=0))}
    for name, value in ends.items():
        words["reading"] = words["reading"].replace(f"{{{name}}}", value)
    return words


@cache
def _texts() -> dict[str, dict[str, str]]:
    text = resources.files("propreg.report").joinpath("sections.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)
