"""What a training of Table 2's methods costs beside its accuracy: settings to tune, seconds and memory.

The settings are counted in the registry. Times and memory are measured by ``benchmarks/costs.py``, per epoch; a
training takes that times the epochs of the recorded runs.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from propreg.engine.models import MODELS
from propreg.engine.regularizers import REGULARIZERS
from propreg.engine.spec import Model
from propreg.names import dataset_title, method_title, model_title
from propreg.store.errors import StudyError
from propreg.store.results import Results
from propreg.study.spec.experiment import Experiment, load_experiment
from propreg.study.spec.part import Line
from propreg.study.tables.text import Listing

FILE = Path("benchmarks") / "costs-h200.json"
"""The measurements, beside the record."""
COMMAND = f"python benchmarks/costs.py --save results/{FILE}"
BASELINES, NAME = "table-standard-gcn-gat", "table2"
EPOCH, EPOCH_IN_BATCH = "epoch alone", "epoch in a batch, per run"
PEAK, PEAK_IN_BATCH = "peak memory alone", "peak memory of another run in a batch"
TITLE = "What a training costs, and how many settings there are to tune beyond those of a plain GCN."


@dataclass(frozen=True)
class Costs:
    """Measured costs by case and metric, see :func:`case_of`, and the machine in words."""

    machine: str
    values: dict[tuple[str, str], float]


def compared() -> list[Line]:
    """The lines that are measured: GCN and GAT of the public splits, and Table 2, plain and with P-reg (paper form)."""
    lines = [*load_experiment(BASELINES).lines, *load_experiment(NAME).lines]
    return [line for line in lines if line.method.name in ("plain", "preg-paper")]


def case_of(line: Line) -> str:
    """The name of a line in the record of the benchmark.

    Example:
        >>> case_of(compared()[0])
        'gcn plain cora'
    """
    return f"{line.model} {line.method.method} {line.dataset}"


def settings_to_tune(model: str, method: str = "plain") -> int:
    """How many settings a model with a regularizer has beyond those of a plain GCN.

    A GCN has width, depth, dropout, learning rate and weight decay; a regularizer adds its strength.

    Example:
        >>> settings_to_tune("gcn"), settings_to_tune("gcn", "preg"), settings_to_tune("grand")
        (0, 1, 6)
    """
    entry = MODELS[model]
    own = {each.name for each in fields(entry.kind)} - {each.name for each in fields(Model)}
    return len(entry.settings) + len(own) + bool(REGULARIZERS[method].grid)


def find_costs(paths: Iterable[Path]) -> Costs | None:
    """The measurements beside one of these records; None if there are none.

    Raises:
        StudyError: If they cannot be read.
    """
    for path in paths:
        file = (path if path.is_dir() else path.parent) / FILE
        if file.is_file():
            return _read(file)
    return None


def _read(file: Path) -> Costs:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        values = {(str(each["case"]), str(each["metric"])): float(each["value"]) for each in found["records"]}
        return Costs(str(found["machine"]), values)
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise StudyError(f"{file} cannot be read as the record of a benchmark: {COMMAND} writes it.") from error


def listings(experiment: Experiment, lines: Sequence[Line], results: Results, costs: Costs | None) -> list[Listing]:
    """The costs of Table 2's lines below those of GCN and GAT, until they are measured a row per model.

    Other tables have none.
    """
    if experiment.name != NAME:
        return []
    datasets = tuple(dict.fromkeys(line.dataset for line in lines))
    chosen = {(line.model, line.method.method) for line in lines}
    mine = [x for x in compared() if x.dataset in datasets]
    mine = [x for x in mine if x.model in ("gcn", "gat") or (x.model, x.method.method) in chosen]
    by_name: dict[tuple[str, str], dict[str, Line]] = {}
    for line in mine:
        method = "plain" if costs is None else line.method.method  # a regularizer's row would differ by one
        by_name.setdefault((line.model, method), {})[line.dataset] = line
    shown = datasets if costs is not None else ()
    head = ["", "to tune", *(f"{dataset_title(name)}, {unit}" for name in shown for unit in ("s", "MB"))]
    rows = []
    for (model, method), found in by_name.items():
        title = model_title(model) + (f" + {method_title(method)}" if method != "plain" else "")
        cells = [cell for name in shown for cell in _cells(found.get(name), results, costs)]
        rows.append((title, str(settings_to_tune(model, method)), *cells))
    known = [i for i in range(len(head)) if any(row[i] != "–" for row in rows)]  # what is not measured has no column
    head, rows = [head[i] for i in known], [tuple(row[i] for i in known) for row in rows]
    return [Listing(_about(costs, head), tuple(head), tuple(rows))]


def _about(costs: Costs | None, head: Sequence[str]) -> str:
    """What the columns are and where they come from, or that they are not measured."""
    if costs is None:
        missing = f"Time and memory are not measured yet: {COMMAND} measures them on a GPU."
        return f"{TITLE} P-reg adds one to each. {missing}"
    memory = "; MB: peak memory of a training" if any(name.endswith("MB") for name in head) else ""
    return (
        f"{TITLE} s: seconds per epoch times the mean number of epochs of the recorded runs{memory}; in parentheses, "
        f"per run if 80 runs (10 seeds at 8 strengths) train as one program. {costs.machine}."
    )


def _cells(line: Line | None, results: Results, costs: Costs | None) -> tuple[str, str]:
    """Seconds and megabytes of a training, alone and in a batch."""
    if line is None or costs is None:
        return "–", "–"
    case = case_of(line)
    epochs = mean_epochs(line, results)
    each = [costs.values.get((case, metric)) for metric in (EPOCH, EPOCH_IN_BATCH)]
    seconds = [None if epochs is None or ms is None else epochs * ms / 1000 for ms in each]
    return _pair(seconds), _pair([costs.values.get((case, metric)) for metric in (PEAK, PEAK_IN_BATCH)])


def mean_epochs(line: Line, results: Results) -> float | None:
    """The mean number of epochs of a line's recorded runs; None if there are none."""
    found = [results.outcome(run.cell, run.split, run.seed) for run in line.runs()]
    epochs = [outcome.epochs for outcome in found if outcome is not None]
    return sum(epochs) / len(epochs) if epochs else None


def _pair(values: Sequence[float | None]) -> str:
    alone, together = ("–" if value is None else f"{float(f'{value:.2g}'):g}" for value in values)
    return alone if together == "–" else f"{alone} ({together})"
