"""Experiments as data: a TOML file per table or figure, in ``experiments/`` or of your own, expanded to lines and runs.

A part of an experiment is expanded by :mod:`propreg.study.spec.part`.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from pathlib import Path

from propreg.store.errors import StudyError, UsageError, unknown
from propreg.store.run import (
    Run,
)
from propreg.study.spec.own import read_names
from propreg.study.spec.part import Line, lines_of

_TABLES = ("title", "paper", "parts", "graphs", "models", "spaces")
_FILTERS = ("dataset", "model", "method", "preset", "split")
_NEXT_FILTER = re.compile(r",\s*(?=\w+=)")  # presets have commas of their own: "reference, KL"


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper; ``paper`` names its section in ``paper.toml``, where it has one."""

    name: str
    title: str
    paper: str
    lines: tuple[Line, ...]

    @property
    def datasets(self) -> list[str]:
        """The datasets of its lines, in their order."""
        return list(dict.fromkeys(line.dataset for line in self.lines))

    @property
    def models(self) -> list[str]:
        """The models of its lines, in their order."""
        return list(dict.fromkeys(line.model for line in self.lines))

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
    files = resources.files("propreg.study.spec").joinpath("experiments").iterdir()
    return sorted(file.name.removesuffix(".toml") for file in files if file.name.endswith(".toml"))


# The smoke test takes seconds; best is a search, with runs of its own; the others wait for their training.
BESIDE = (
    "best", "beyond", "controls", "digits-smoke", "label-rates", "random-splits", "table-phi-log", "table2-100-seeds",
    "ten-splits", "tuned", "wrong-edges", "wrong-labels",
)  # fmt: skip


def study_names() -> list[str]:
    """The experiments that the report and the counts of the study cover.

    Example:
        >>> "table1" in study_names(), "digits-smoke" in study_names()
        (True, False)
    """
    return [name for name in experiment_names() if name not in BESIDE]


def load_experiment(name: str) -> Experiment:
    """Read and expand an experiment: one of the package by its name, or one of your own by the path of its TOML file.

    Raises:
        StudyError: If there is none of this name; the message lists them.

    Example:
        >>> smoke = load_experiment("digits-smoke")
        >>> len(smoke.lines), len(list(smoke.runs()))
        (6, 200)
    """
    if not name.endswith(".toml"):
        return _packaged(name)
    try:
        text = Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise StudyError(f"{name} cannot be read: {getattr(error, 'strerror', None) or error}.") from error
    return read_experiment(name, text, Path(name).parent)


@cache
def _packaged(name: str) -> Experiment:
    """An experiment of the package, read once per process: a page needs the same ones again and again."""
    known = experiment_names()
    if name not in known:
        raise unknown("experiment", name, known)
    file = resources.files("propreg.study.spec").joinpath("experiments").joinpath(f"{name}.toml")
    return read_experiment(name, file.read_text(encoding="utf-8"))


def read_experiment(name: str, text: str, folder: Path = Path()) -> Experiment:
    """Expand the text of an experiment; ``name`` is what errors call it, and paths in it begin in ``folder``."""
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise StudyError(f"experiment {name} is not TOML: {error}.") from error
    for key in found:
        if key not in _TABLES:
            raise unknown(f"table of experiment {name}", key, _TABLES)
    lines, names = [], read_names(found, name, folder)
    for part in found.get("parts", []):
        lines += list(lines_of(part, names, found.get("spaces", {}), name))
    if not lines:
        raise StudyError(f"experiment {name} has no [[parts]]: give it at least one with datasets, models and methods.")
    return Experiment(name, str(found.get("title", name)), str(found.get("paper", "")), tuple(lines))


def select_lines(
    experiment: Experiment, only: Sequence[str] = (), seeds: Sequence[int] | None = None
) -> tuple[Line, ...]:
    """The lines that match all filters, ``dataset=cora,model=gcn`` and the like; values of one key are alternatives.

    A method is named in full, ``preg-reference``, or by its family, ``preg``; a split by its kind, ``public``.

    Raises:
        StudyError: If a filter's key or value is not known in the experiment; the message lists the known ones.

    Example:
        >>> smoke = load_experiment("digits-smoke")
        >>> lines = select_lines(smoke, ["model=gcn,method=plain,method=laplacian"])
        >>> [(line.model, line.method.name) for line in lines]
        [('gcn', 'plain'), ('gcn', 'laplacian-mean')]
    """
    wanted: dict[str, set[str]] = {}
    for pair in (part.strip() for text in only for part in _NEXT_FILTER.split(text)):
        key, equals, value = pair.partition("=")
        if not equals:
            raise UsageError(f"A filter reads key=value, for example dataset=cora, got {pair!r}.")
        if key not in _FILTERS:
            raise UsageError(str(unknown("filter", key, _FILTERS)))
        known = {_loosely(name): name for line in experiment.lines for name in _names(line, key)}
        if _loosely(value) not in known:
            _check_each(key, value, known)
            raise unknown(f"{key} in {experiment.name}", value, sorted(known.values()))
        wanted.setdefault(key, set()).add(known[_loosely(value)])
    kept = [line for line in experiment.lines if all(_names(line, key) & values for key, values in wanted.items())]
    if not kept:
        raise StudyError(f"No line of {experiment.name} matches {' and '.join(only)}.")
    if seeds is None:
        return tuple(kept)
    # A part of the seeds does not decide which strengths come beyond a grid.
    return tuple(replace(line, seeds=_subset(line, seeds, experiment.name), beyond=()) for line in kept)


def _check_each(key: str, value: str, known: Iterable[str]) -> None:
    """Refuse several values behind one key, unless they may be meant as the commas of a single one."""
    parts = [part.strip() for part in value.split(",")]
    single = any("," in name for name in known) and not all(_loosely(part) in known for part in parts)
    if len(parts) > 1 and not single:
        each = ",".join(f"{key}={part}" for part in parts if part)
        raise UsageError(f"A filter reads key=value for each value, as in {each}, got '{key}={value}'.")


def _loosely(name: str) -> str:
    """Capitals do not matter, nor do dashes for underscores, nor spaces after commas."""
    return re.sub(r",\s+", ",", name.lower().replace("-", "_"))


def _names(line: Line, key: str) -> set[str]:
    if key == "method":
        return {line.method.name, line.method.method}
    if key == "preset":
        return {line.preset}
    if key == "split":
        return {line.cells[0].split_kind}
    return {str(getattr(line, key))}


def _subset(line: Line, seeds: Sequence[int], name: str) -> tuple[int, ...]:
    for seed in seeds:
        if seed not in line.seeds:
            raise unknown(f"seed in {name}", seed, map(str, line.seeds))
    return tuple(seed for seed in line.seeds if seed in seeds)
