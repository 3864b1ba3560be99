"""Experiments as data: a TOML file in ``experiments/`` per table or figure, read and expanded to lines and runs.

A *line* is what a table shows in one place, for example GCN with P-reg (reference) on Cora: a cell for each strength,
each on the same splits and seeds.
"""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import Any, get_args

from propreg.data.catalog import NODE_SETS, NodeSet
from propreg.data.catalog import find as find_dataset
from propreg.data.errors import DataError
from propreg.engine.spec import Protocol
from propreg.study.digest import dataset_digest, labels_for
from propreg.study.errors import StudyError, unknown
from propreg.study.presets import NamedMethod, named_grid, named_method, named_model, weight_decay
from propreg.study.run import Cell, Measure, Run, SplitKind, decimal

_NEEDED = ("datasets", "models", "methods", "splits", "seeds")
_KEYS = {
    "datasets", "models", "methods", "splits", "seeds", "strengths", "split_kind", "train_nodes", "unmask",
    "measure", "normalize", "rule", "weight_decay_scope", "max_epochs", "patience", "variant", "batch",
}  # fmt: skip


@dataclass(frozen=True)
class Line:
    """One model with one method on one dataset: a cell per strength, each on ``splits`` × ``seeds``."""

    dataset: str
    model: str
    method: NamedMethod
    variant: str
    cells: tuple[Cell, ...]
    splits: tuple[int, ...]
    seeds: tuple[int, ...]
    batch: int | None = None

    def runs(self) -> Iterator[Run]:
        """All runs of the line."""
        for cell in self.cells:
            for split in self.splits:
                for seed in self.seeds:
                    yield Run(cell, split, seed)

    @property
    def preset(self) -> str:
        """The table's column of that name."""
        return ", ".join(part for part in (self.method.preset, self.variant) if part)


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper; ``paper`` names its section in ``paper.toml``, where it has one."""

    name: str
    title: str
    paper: str
    lines: tuple[Line, ...]

    def runs(self) -> Iterator[Run]:
        """All runs, each once: lines may share some, as the plain model is the start of several."""
        seen = set()
        for line in self.lines:
            for run in line.runs():
                if run.key not in seen:
                    seen.add(run.key)
                    yield run


def experiment_names() -> list[str]:
    """The experiments that come with the package.

    Example:
        >>> "table1" in experiment_names()
        True
    """
    files = resources.files("propreg.study").joinpath("experiments").iterdir()
    return sorted(file.name.removesuffix(".toml") for file in files if file.name.endswith(".toml"))


def study_names() -> list[str]:
    """Those of the study: all but the one that only shows how it goes, in seconds.

    Example:
        >>> "table1" in study_names(), "digits-smoke" in study_names()
        (True, False)
    """
    return [name for name in experiment_names() if name != "digits-smoke"]


@cache
def load_experiment(name: str) -> Experiment:
    """Read and expand an experiment of the package; once, since a page asks for the same ones again and again.

    Raises:
        StudyError: If there is none of this name; the message lists them.

    Example:
        >>> smoke = load_experiment("digits-smoke")
        >>> len(smoke.lines), len(list(smoke.runs()))
        (6, 200)
    """
    known = experiment_names()
    if name not in known:
        raise unknown("experiment", name, known)
    file = resources.files("propreg.study").joinpath("experiments").joinpath(f"{name}.toml")
    return read_experiment(name, file.read_text(encoding="utf-8"))


def read_experiment(name: str, text: str) -> Experiment:
    """Expand the text of an experiment; ``name`` is what errors call it."""
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise StudyError(f"experiment {name} is not TOML: {error}.") from error
    lines = []
    for part in found.get("parts", []):
        for key in part:
            if key not in _KEYS:
                raise unknown(f"setting of experiment {name}", key, sorted(_KEYS))
        for key in _NEEDED:
            if key not in part:
                raise StudyError(f"A part of experiment {name} has no {key}: each needs {', '.join(_NEEDED)}.")
        lines += list(_lines(part))
    if not lines:
        raise StudyError(f"experiment {name} has no [[parts]]: give it at least one with datasets, models and methods.")
    return Experiment(name, str(found.get("title", name)), str(found.get("paper", "")), tuple(lines))


def _lines(part: dict[str, Any]) -> Iterator[Line]:
    kind: SplitKind = part.get("split_kind", "official")
    if kind not in get_args(SplitKind):
        raise unknown("split_kind", kind, get_args(SplitKind))
    splits, seeds = _numbers(part, "splits"), _numbers(part, "seeds")
    for dataset in part["datasets"]:
        for model in part["models"]:
            for name in part["methods"]:
                method = named_method(name)
                strengths = _strengths(part, method, f"{dataset}/{model}")
                for variant, base, ratio in _variants(part, _base(part, dataset, model, kind), method):
                    term = method.on(_node_set(dataset).classes)
                    # In one go: a cell without a term drops its ratio.
                    cells = tuple(replace(base, method=term, strength=mu, unmask=ratio) for mu in strengths)
                    yield Line(dataset, model, method, variant, cells, splits, seeds, part.get("batch"))


def _base(part: dict[str, Any], dataset: str, model: str, kind: SplitKind) -> Cell:
    """The plain cell of a line."""
    entry = _node_set(dataset)
    measure: Measure = part.get("measure", "")
    if measure not in get_args(Measure):
        raise unknown("measure", measure, get_args(Measure))
    architecture, dropout = named_model(model)
    protocol = Protocol(
        rule=part.get("rule", "official"),
        max_epochs=part.get("max_epochs", 10_000),
        weight_decay_scope=part.get("weight_decay_scope", "all"),
    )
    labels = labels_for(entry.name, kind)
    return Cell(
        entry.name,
        dataset_digest(entry.name, labels),
        labels=labels,
        split_kind=kind,
        normalize=part.get("normalize", True),
        model=architecture,
        protocol=protocol,
        weight_decay=weight_decay(entry.name),
        dropout=dropout,
        patience=part.get("patience", 200),
        measure=measure,
    )


def _variants(part: dict[str, Any], base: Cell, method: NamedMethod) -> Iterator[tuple[str, Cell, float]]:
    """The plain cell and the unmask ratio of each training size and ratio, with the words that tell them apart."""
    said = str(part.get("variant", ""))
    plain = method.method == "plain"  # has no mask: it is the same at every ratio
    for nodes in part.get("train_nodes", [None]):
        grown = base if nodes is None else replace(base, train_nodes=nodes)
        words = [said] if nodes is None else [said, f"{nodes} training nodes"]
        for ratio in [1.0] if plain else part.get("unmask", [1.0]):
            shown = [*words, f"unmask {ratio:g}"] if "unmask" in part and not plain else words
            yield ", ".join(word for word in shown if word), grown, ratio


def _strengths(part: dict[str, Any], method: NamedMethod, place: str) -> tuple[float, ...]:
    """Those of the part (numbers, grids by name, or a number per dataset/model), else the method's own grid."""
    given = part.get("strengths")
    if method.method == "plain":
        return (0.0,)
    if given is None:
        return method.grid
    if isinstance(given, dict):
        if place not in given:
            raise unknown("strength for", place, given)
        given = [given[place]]
    found: set[float] = set()
    for each in [given] if isinstance(given, str) else given:
        found |= set(named_grid(each)) if isinstance(each, str) else {decimal("strength", each)}
    return tuple(sorted(found))


def _numbers(part: dict[str, Any], key: str) -> tuple[int, ...]:
    given = part[key]
    return tuple(range(given)) if isinstance(given, int) else tuple(given)


def _node_set(name: str) -> NodeSet:
    try:
        entry = find_dataset(name)
    except DataError:
        raise unknown("dataset", name, NODE_SETS) from None
    if not isinstance(entry, NodeSet):
        raise unknown("node dataset", name, NODE_SETS)
    return entry
