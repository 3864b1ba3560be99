"""Part of an experiment: ``dataset=cora,model=gcn`` and the like, and fewer seeds."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from propreg.study.errors import StudyError, UsageError, unknown
from propreg.study.experiment import Experiment, Line

KEYS = ("dataset", "model", "method", "preset")
_NEXT_FILTER = re.compile(r",\s*(?=\w+=)")  # presets have commas of their own: "reference, KL"


def choose(experiment: Experiment, only: Sequence[str] = (), seeds: Sequence[int] | None = None) -> tuple[Line, ...]:
    """The lines that match all filters; values of one key are alternatives.

    A method is named in full, ``preg-reference``, or by its family, ``preg``.

    Raises:
        StudyError: If a filter's key or value is not known in the experiment; the message lists the known ones.

    Example:
        >>> from propreg.study.experiment import load_experiment
        >>> smoke = load_experiment("digits-smoke")
        >>> [(line.model, line.method.name) for line in choose(smoke, ["model=gcn,method=plain,method=laplacian"])]
        [('gcn', 'plain'), ('gcn', 'laplacian-mean')]
    """
    wanted: dict[str, set[str]] = {}
    for pair in (part.strip() for text in only for part in _NEXT_FILTER.split(text)):
        key, equals, value = pair.partition("=")
        if not equals:
            raise UsageError(f"A filter reads key=value, for example dataset=cora, but {pair!r} came.")
        if key not in KEYS:
            raise UsageError(str(unknown("filter", key, KEYS)))
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
    return tuple(replace(line, seeds=_subset(line, seeds, experiment.name)) for line in kept)


def _check_each(key: str, value: str, known: Iterable[str]) -> None:
    """Refuse several values behind one key, unless they may be meant as the commas of a single one."""
    parts = [part.strip() for part in value.split(",")]
    single = any("," in name for name in known) and not all(_loosely(part) in known for part in parts)
    if len(parts) > 1 and not single:
        each = ",".join(f"{key}={part}" for part in parts if part)
        raise UsageError(f"A filter reads key=value for each value, as in {each}, but '{key}={value}' came.")


def _loosely(name: str) -> str:
    """Capitals do not matter, nor do dashes for underscores, nor spaces after commas."""
    return re.sub(r",\s+", ",", name.lower().replace("-", "_"))


def _names(line: Line, key: str) -> set[str]:
    if key == "method":
        return {line.method.name, line.method.method}
    if key == "preset":
        return {line.preset}
    return {str(getattr(line, key))}


def _subset(line: Line, seeds: Sequence[int], name: str) -> tuple[int, ...]:
    for seed in seeds:
        if seed not in line.seeds:
            raise unknown(f"seed in {name}", seed, map(str, line.seeds))
    return tuple(seed for seed in line.seeds if seed in seeds)
