"""The tables worked out from the exported lines in plain Python, exact where possible, without code of the package.

It reads the export and the TOML files alone. Numbers stay fractions, so that a tie is a tie; only square roots and
Student's t are floating point.
"""

import gzip
import json
import math
import statistics
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SPEC = ROOT / "src" / "propreg" / "study" / "spec"
CLASSES = {"cora": 7, "citeseer": 6, "pubmed": 3, "cs": 15, "physics": 5, "computers": 10, "photo": 8}
LEFT_OUT = {
    "dropout": 0.5,
    "lr": 0.01,
    "patience": 200,
    "protocol": {},
    "split_kind": "official",
    "strength": 0.0,
    "weight_decay": 5e-4,
}
"""What a cell's line leaves out; of a model that is ``hidden`` 64 and ``heads`` 8."""
Line = dict[str, Any]
Score = tuple[Fraction, Fraction]
Scores = list[list[Score]]


@dataclass(frozen=True)
class Scale:
    """How a table shows a metric: its factor, decimals, direction, and margin to the paper."""

    factor: int
    digits: int
    sign: int
    margin: float


SCALES = {"accuracy": Scale(100, 2, 1, 1.0), "rmse": Scale(1, 3, -1, 0.05), "rocauc": Scale(100, 2, 1, 1.0)}
METRICS = {"ogbg-molfreesolv": "rmse", "ogbg-molesol": "rmse"}
METRICS |= {f"ogbg-mol{name}": "rocauc" for name in ("bbbp", "tox21", "hiv")}


def scale_of(dataset: str) -> Scale:
    return SCALES[METRICS.get(dataset, "accuracy")]


def read_lines() -> list[Line]:
    """The cells of the export with their runs."""
    with gzip.open(ROOT / "results" / "runs.jsonl.gz", "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file][1:-1]


def text_of(value: object) -> str:
    return json.dumps(value, sort_keys=True)


class Record:
    """Runs by the text of their cell; of a published model, whose settings no TOML file has, by its name."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self.exact: dict[str, Line] = {}
        self.published: dict[tuple[Any, ...], list[Line]] = {}
        for line in lines:
            cell = {name: value for name, value in line["cell"].items() if name != "digest"}
            assert text_of(cell) not in self.exact
            self.exact[text_of(cell)] = line
            if not cell.keys() & {"train_nodes", "unmask", "measure"}:
                kind, mu = cell.get("split_kind", "official"), cell.get("strength", 0.0)
                key = (cell["dataset"], cell["model"]["name"], kind, text_of(cell["method"]), mu)
                self.published.setdefault(key, []).append(line)

    def find(self, part: Line, dataset: str, model: str, method: Line) -> Line:
        """The line of a cell, without runs where the export has none."""
        if not part.get("published"):
            return self.exact.get(text_of(_cell(part, dataset, model, method)), {"runs": []})
        key = (dataset, model, part["split_kind"], text_of(method["settings"]), method["strength"])
        (found,) = self.published.get(key, [{"runs": []}])
        return found


def _cell(part: Line, dataset: str, model: str, method: Line) -> Line:
    preset, decay = _toml("presets")["models"][model], _toml("presets")["weight_decay"]
    usual = {"dropout": 0, "hidden": 64, "heads": 8}
    found = {
        "dataset": dataset,
        "dropout": preset["dropout"],
        "lr": part.get("lr", 0.01),
        "method": method["settings"],
        "model": {name: value for name, value in preset.items() if name != "dropout" and value != usual.get(name)},
        "protocol": {name: part[name] for name in ("max_epochs", "rule") if name in part},
        "split_kind": part.get("split_kind", "official"),
        "strength": method["strength"],
        "weight_decay": decay.get(dataset, decay["default"]),
    }
    if dataset == "citeseer" and found["split_kind"] == "official":
        found["labels"] = "authors"  # the official splits were drawn with these
    return {name: value for name, value in found.items() if value != LEFT_OUT.get(name)}


@cache
def _toml(name: str) -> Line:
    return tomllib.loads((SPEC / f"{name}.toml").read_text(encoding="utf-8"))


def scores_of(line: Line, splits: int, seeds: int) -> Scores | None:
    """(validation, test) of each split and seed on the scale of its table; None where a run is missing."""
    runs = {(row[0], row[1]): row for row in line["runs"]}
    if not all(at in runs for at in product(range(splits), range(seeds))):
        return None
    return [[_score(runs[split, seed]) for seed in range(seeds)] for split in range(splits)]


def _score(row: Sequence[Any]) -> Score:
    metric = row[10] if len(row) == 13 else "accuracy"
    val, val_of, test, test_of = row[2:6]
    if metric == "accuracy":
        return Fraction(100 * val, val_of), Fraction(100 * test, test_of)
    return SCALES[metric].factor * Fraction(str(val)), SCALES[metric].factor * Fraction(str(test))


def work_out(record: Record, name: str, only: tuple[str, str] | None = None) -> list[Line]:
    """The rows of a table in its order, of all datasets and models or one of each: numbers are not rounded."""
    experiment = _toml(f"experiments/{name}")
    return [
        row
        for part in experiment["parts"]
        for dataset in part["datasets"]
        for model in part["models"]
        if only in (None, (dataset, model))
        for method in part["methods"]
        for row in _rows(record, part, experiment["paper"], dataset, model, method)
    ]


def plain_runs(record: Record, name: str, dataset: str, model: str) -> list[list[Any]]:
    """The rows of the plain model that a table compares with: changing one changes the record."""
    plain = {"settings": {"name": "plain"}, "strength": 0.0}
    part = _toml(f"experiments/{name}")["parts"][0]
    found: list[list[Any]] = record.find(part, dataset, model, plain)["runs"]
    return [row for row in found if row[0] < part["splits"] and row[1] < part["seeds"]]


def _rows(record: Record, part: Line, paper: str, dataset: str, model: str, name: str) -> Iterator[Line]:
    method = _toml("presets")["methods"][name]
    settings = dict(method.get("settings", {"name": method["method"]}))
    if method.get("by_classes"):
        settings["phi_scale"] = float(f"{1 / CLASSES[dataset]:.12g}")
    grid = _grid(part, method, f"{dataset}/{model}")
    plain = {"settings": {"name": "plain"}, "strength": 0.0}
    asked = [plain if mu == 0 else {"settings": settings, "strength": mu} for mu in grid]
    lines = [record.find(part, dataset, model, each) for each in asked]
    splits, seeds = part["splits"], part["seeds"]
    found = [scores_of(line, splits, seeds) for line in lines]
    if method["method"] != "plain" and None not in found:  # strengths beyond the grid count once all are recorded
        others = [
            record.find(part, dataset, model, {"settings": settings, "strength": mu}) for mu in part.get("beyond", [])
        ]
        further = [scores_of(line, splits, seeds) for line in others]
        if None not in further:
            grid, lines, found = [*grid, *part.get("beyond", [])], [*lines, *others], [*found, *further]
    number = _paper(paper, model, name, method["method"], dataset)
    plain_number = _paper(paper, model, "plain", "plain", dataset)
    row = {"model": model, "dataset": dataset, "method": method["method"], "preset": method.get("preset", "")}
    row |= {"paper_mean": number and number[0], "paper_std": number and number[1], "gain_verdict": ""}
    alone = "none" if grid == [0.0] else "fixed" if len(grid) == 1 else ""
    scale, complete = scale_of(dataset), [each for each in found if each is not None]
    if len(complete) < len(found):
        have = sum(sum(run[0] < splits and run[1] < seeds for run in line["runs"]) for line in lines)
        verdict = f"incomplete: {have} of {len(lines) * splits * seeds} runs"
        yield row | {"selection": alone or "validation", "runs": have, "verdict": verdict}
        return
    base = None if alone == "none" else scores_of(record.find(part, dataset, model, plain), splits, seeds)
    for at, selection in enumerate([alone] if alone else ["validation", "test"]):
        best = max(range(len(grid)), key=lambda i: scale.sign * _mean(_all(complete[i], at)))
        yield (
            row
            | {"selection": selection, "strength": grid[best]}
            | _numbers(complete[best], base, scale, number, plain_number)
        )


def _grid(part: Line, method: Line, place: str) -> list[float]:
    """The strengths, smallest first."""
    given, presets = part.get("strengths"), _toml("presets")
    if method["method"] == "plain":
        return [0.0]
    if isinstance(given, dict):
        return [given[place]]
    return sorted(given or [*presets["grids"][method["grid"]], *presets["later"].get(method["grid"], [])])


def _paper(paper: str, model: str, name: str, family: str, dataset: str) -> Sequence[float] | None:
    rows = _toml("paper").get(paper, {}).get(model, {})
    found: Sequence[float] | None = rows.get(name, rows.get(family, {})).get(dataset)
    return found


def _all(scores: Scores, which: int) -> list[Fraction]:
    return [each[which] for split in scores for each in split]


def _mean(values: Sequence[Fraction]) -> Fraction:
    return sum(values, Fraction()) / len(values)


def _numbers(
    scores: Scores,
    base: Scores | None,
    scale: Scale,
    number: Sequence[float] | None,
    plain_number: Sequence[float] | None,
) -> Line:
    test = [[each[1] for each in split] for split in scores]
    every = _all(scores, 1)
    mean = _mean(every)
    std = math.sqrt(_mean([(each - mean) ** 2 for each in every]))
    low, high = interval([float(each) for each in units_of(test)])
    found: Line = {"runs": len(every), "mean": mean, "std": std, "low": low, "high": high}
    found["verdict"] = "" if number is None else _verdict(test, Fraction(str(number[0])), scale.margin)
    if base is not None:
        plain = [[each[1] for each in split] for split in base]
        apart = [[a - b for a, b in zip(*splits, strict=True)] for splits in zip(test, plain, strict=True)]
        differences = [each for split in apart for each in split]
        found["difference"] = _mean(differences)
        found["p_value"] = t_test(units_of(apart))
        found["won"] = Fraction(sum(scale.sign * each > 0 for each in differences), len(differences))
        if number is not None and plain_number is not None:
            gains = [[scale.sign * each for each in split] for split in apart]
            theirs = scale.sign * (Fraction(str(number[0])) - Fraction(str(plain_number[0])))
            found["gain_verdict"] = _verdict(gains, theirs, scale.margin)
    return found


def units_of(values: list[list[Fraction]]) -> list[Fraction]:
    """Means of splits, or the seeds of one split."""
    return values[0] if len(values) == 1 else [_mean(split) for split in values]


def _verdict(test: list[list[Fraction]], paper: Fraction, margin: float) -> str:
    """With s between seeds of a split, the difference d to the paper is known to within t · s · √(2 / runs)."""
    seeds, runs = len(test[0]), sum(map(len, test))
    if seeds < 2:
        return "inconclusive"
    variances = [sum((each - _mean(split)) ** 2 for each in split) / (seeds - 1) for split in test]
    d = float(_mean([each for split in test for each in split]) - paper)
    noise = t_quantile(runs - len(test)) * math.sqrt(sum(variances) / len(test)) * math.sqrt(2 / runs)
    if abs(d) + noise <= margin:
        return "reproduced"
    return "inconclusive" if abs(d) <= noise else "higher" if d > 0 else "lower"


def interval(units: Sequence[float]) -> tuple[float, float]:
    """The mean ± the t quantile · the standard error."""
    mean, error = statistics.fmean(units), _error(units)
    half = t_quantile(len(units) - 1) * error if error else 0.0
    return mean - half, mean + half


def t_test(units: Sequence[Fraction]) -> float:
    """Two-sided, of a mean of 0; of units that are all alike, the most that chance gives."""
    mean, error = _mean(units), _error([float(each) for each in units])
    if len({*units}) == 1:
        return 2 / 3 ** len(units) if mean and len(units) > 1 else 1.0
    return 1 - t_within(abs(float(mean)) / error, len(units) - 1)


def _error(units: Sequence[float]) -> float:
    return statistics.stdev(units) / math.sqrt(len(units)) if len(units) > 1 else 0.0


def t_within(t: float, degrees: int) -> float:
    """P(|T| ≤ t) by the finite series of Abramowitz and Stegun, 26.7.3 and 26.7.4."""
    angle = math.atan(t / math.sqrt(degrees))
    odd = degrees % 2
    power, series = math.cos(angle) if odd else 1.0, 0.0
    for k in range(1 + odd, degrees, 2):
        series += power
        power *= math.cos(angle) ** 2 * k / (k + 1)
    return 2 / math.pi * (angle + math.sin(angle) * series) if odd else math.sin(angle) * series


@cache
def t_quantile(degrees: int) -> float:
    """Where 95 % lie within, by halving."""
    low, high = 0.0, 100.0
    while high - low > 1e-13 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if t_within(middle, degrees) < 0.95 else (low, middle)
    return high
