"""The tables worked out from the exported lines in plain Python, exact where possible, without code of the package.

It reads the export and the TOML files alone. Numbers stay fractions, so that a tie is a tie; only the bootstrap, whose
resamples are those of the generator that the package names, and square roots are floating point.
"""

import gzip
import json
import math
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import pairwise, product
from operator import itemgetter
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
    row = {"model": model, "dataset": dataset, "method": method["method"], "preset": method.get("preset", "")}
    row |= {"paper_mean": number and number[0], "paper_std": number and number[1]}
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
        yield row | {"selection": selection, "strength": grid[best]} | _numbers(complete[best], base, scale, number)


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


def _numbers(scores: Scores, base: Scores | None, scale: Scale, number: Sequence[float] | None) -> Line:
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
        found["p_value"] = sign_flip(units_of(apart))
        found["won"] = Fraction(sum(scale.sign * each > 0 for each in differences), len(differences))
    return found


def units_of(values: list[list[Fraction]]) -> list[Fraction]:
    """Means of splits, or the seeds of one split."""
    return values[0] if len(values) == 1 else [_mean(split) for split in values]


def sign_flip(units: Sequence[Fraction]) -> Fraction:
    """The share of all sign patterns with a sum at least as far from 0 as the observed one, in whole numbers."""
    common = math.lcm(*(each.denominator for each in units))
    whole = [int(each * common) for each in units]
    sums = [0]
    for each in whole:
        sums = [total + signed for total in sums for signed in (each, -each)]
    return Fraction(sum(abs(each) >= abs(sum(whole)) for each in sums), len(sums))


def _verdict(test: list[list[Fraction]], paper: Fraction, margin: float) -> str:
    """With s between seeds of a split, the difference d to the paper is known to within 1.96 · s · √(2 / runs)."""
    seeds, runs = len(test[0]), sum(map(len, test))
    if seeds < 2:
        return "inconclusive"
    variances = [sum((each - _mean(split)) ** 2 for each in split) / (seeds - 1) for split in test]
    d = float(_mean([each for split in test for each in split]) - paper)
    noise = 1.96 * math.sqrt(sum(variances) / len(test)) * math.sqrt(2 / runs)
    if abs(d) + noise <= margin:
        return "reproduced"
    return "inconclusive" if abs(d) <= noise else "higher" if d > 0 else "lower"


def interval(units: Sequence[float]) -> tuple[float, float]:
    """The 2.5 and 97.5 % quantiles of the means of resamples."""
    if len(units) == 1:
        return units[0], units[0]
    means = sorted(math.fsum(pick(units)) / len(units) for pick in _resamples(len(units)))
    return _quantile(means, 0.025), _quantile(means, 0.975)


def _quantile(values: list[float], share: float) -> float:
    """Linear between neighbors."""
    at = share * (len(values) - 1)
    low, high = list(pairwise(values))[int(at)]
    return low + (at - int(at)) * (high - low)


@cache
def _resamples(count: int) -> list[Callable[[Sequence[float]], tuple[float, ...]]]:
    """All of up to five units, 10,000 drawn ones of more."""
    if count <= 5:
        return [itemgetter(*each) for each in product(range(count), repeat=count)]
    drawn = philox(count, 10_000 * count)
    return [itemgetter(*(next(drawn) % count for _ in range(count))) for _ in range(10_000)]


def philox(key: int, count: int) -> Iterator[int]:
    """Philox4x64-10 (Salmon et al., 2011) with the key (key, 0) and the counters 1, 2, …"""
    mask = 2**64 - 1
    for block in range(1, -(-count // 4) + 1):
        a, b, c, d, first, second = block, 0, 0, 0, key, 0
        for _ in range(10):
            left, right = 0xD2E7470EE14C6C93 * a, 0xCA5A826395121157 * c
            a, b, c, d = right >> 64 ^ b ^ first, right & mask, left >> 64 ^ d ^ second, left & mask
            first, second = first + 0x9E3779B97F4A7C15 & mask, second + 0xBB67AE8584CAA73B & mask
        yield from (a, b, c, d)
