"""The numbers in the prose: ``docs/numbers.toml`` quotes each passage with the record's values in its place.

``{test[table1/gcn/cora/preg-paper/1]:.1f}`` is the mean test accuracy in per cent of that line at μ = 1. In place of μ
stands ``picked`` (on validation), ``best`` (on test) or ``published`` (with the official code); ``n=35`` at the end
selects a number of training nodes. ``plain``, ``val``, ``gain`` and ``mu`` read the same place. Everything else that a
passage may quote is in :func:`facts`.
"""

import json
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

from building.molecules import ratios, verdicts
from building.record import FORMS, OFFICIAL_FORM, RESULTS, ROOT, Curve, Point, curve, curves, published
from building.tables import benchmark, both_forms
from propreg.statistics import holm
from propreg.store.progress import count_runs
from propreg.store.results import Results
from propreg.study.figures.build import figure_data
from propreg.study.figures.parts import Panel
from propreg.study.spec.batches import cut
from propreg.study.spec.experiment import load_experiment, study_names
from propreg.study.spec.paper import paper_number
from propreg.study.spec.unfold import unfolded
from propreg.study.tables.ablation import changes
from propreg.study.tables.rows import OWN, table_rows

MOST_EPOCHS = 10_000  # of the official protocol
NUMBERS = ROOT / "docs" / "numbers.toml"


class Number(float):
    """A number as pages write it: rounded once, with a true minus sign, and zero without a sign.

    Example:
        >>> f"{Number(-0.04):+.1f} {Number(-1.25):.1f} {Number(136355):,.0f}"
        '0.0 −1.2 136,355'
    """

    def __format__(self, spec: str) -> str:
        text = format(round(float(self), 9), spec)
        return text.replace("-", "−") if float(text.replace(",", "")) else text.lstrip("+-")


class Lookup:
    """``{name[a/b]}`` in a passage calls a function with ``"a"`` and ``"b"``, ``{name}`` without an argument."""

    def __init__(self, find: Callable[..., float]) -> None:
        self._find = find

    def __getitem__(self, key: str) -> Number:
        return Number(self._find(*key.split("/")))

    def __format__(self, spec: str) -> str:
        return format(Number(self._find()), spec)


def passages() -> Iterator[tuple[Path, str]]:
    """The passages of ``numbers.toml``, each with its page."""
    for page, mine in tomllib.loads(NUMBERS.read_text(encoding="utf-8")).items():
        for passage in mine["passages"]:
            yield ROOT / page, " ".join(passage.split())


def facts(results: Results) -> dict[str, Any]:
    """Everything that a passage may quote."""
    sessions = [
        each
        for file in sorted(RESULTS.glob("*.provenance.json"))
        for each in json.loads(file.read_text(encoding="utf-8"))
    ]

    def place(read: Callable[[Point], float]) -> Callable[..., float]:
        return lambda *key: read(_point(results, *key))

    known: dict[str, Callable[..., float]] = {
        "test": place(lambda point: point.test),
        "plain": place(lambda point: point.plain),
        "val": place(lambda point: point.val),
        "gain": place(lambda point: point.gain),
        "mu": place(lambda point: point.mu),
        "own_gain": lambda model, dataset: _own_gain(results, model, dataset),
        "runs": lambda: _of_study(results)[0],
        "runs_wanted": lambda: _of_study(results)[1],
        "planned": _planned,
        "strays": lambda: len(results) - _of_study(results)[0],
        "late": lambda dataset="": _late(results, dataset),
        "hours": lambda device: hours(sessions, device),
        "minutes": lambda experiment, device: 60 * hours(_sessions_of(experiment, sessions, results), device),
        "sessions_runs": lambda: sum(each["runs"] for each in sessions),
        "traced_runs": lambda: sum(each["runs"] for each in sessions if each.get("engine") and each.get("batches")),
        "less_paper": lambda *key: fmean(_less_paper(results, *key)),
        "from_paper": lambda *key: fmean(map(abs, _less_paper(results, *key))),
        "places": lambda *key: len(_less_paper(results, *key)),
        "lowest_pick": lambda model: min(_picks(results, model)),
        "highest_pick": lambda model: max(_picks(results, model)),
        "lowest_gain": lambda method: min(c.picked.gain for c in _gcn(results, method)),
        "highest_gain": lambda method: max(c.picked.gain for c in _gcn(results, method)),
        "significant_gains": lambda method: sum(c.picked in c.helping for c in _gcn(results, method)),
        "better_cells": lambda *key: _better(results, *key),
        "gain_verdicts": lambda verdict: _gain_verdicts(results)[verdict],
        "smallest_picks": lambda model: _smallest(results, model)[0],
        "picks_of": lambda model: _smallest(results, model)[1],
        "cost_of_picking": lambda which: max(_costs(results)) if which == "most" else fmean(_costs(results)),
        "forms_apart": lambda model="": _forms_apart(results, model),
        "change": lambda method, dataset: _effects(results, method)[dataset],
        "change_most": lambda method: max(map(abs, _effects(results, method).values())),
        "annealed_smallest": lambda which: _annealed(results)[which],
        "mask_gain": lambda panel, key: _mask_gain(results, panel, key),
        "layers_at_best": lambda method: _layers_at_best(results, method),
        "squared_verdicts": lambda verdict: _squared_verdicts(results)[verdict],
        "drawn": lambda *key: _drawn(results, *key),
        "level": lambda *key: _level(results, *key),
        "benchmark": _benchmark,
        "molecule_cells": lambda form: verdicts(results, form).total(),
        "molecule_verdicts": lambda form, verdict: verdicts(results, form)[verdict],
        "form_cost": lambda form, which: (max if which == "most" else min)(ratios(form)),
        "squared_in_paper": _squared_in_paper,
        "squared_distance": lambda *key: _squared_distance(results, *key),
        "omega": _omega,
        "layers_worth": _layers_worth,
    }
    return {name: Lookup(find) for name, find in known.items()}


def _point(results: Results, experiment: str, model: str, dataset: str, method: str, *rest: str) -> Point:
    size = next((int(part.removeprefix("n=")) for part in rest if part.startswith("n=")), None)
    at = next((part for part in rest if not part.startswith("n=")), "picked")
    for line in load_experiment(experiment).lines:
        here = (line.model, line.dataset, line.method.name) == (model, dataset, method)
        asked = line.cells[0].train_nodes == size if size else not line.variant
        if here and asked and (found := curve(line, results)):
            return _at(found, at, results)
    raise KeyError(f"{experiment}/{model}/{dataset}/{method} is not recorded")


def _at(found: Curve, at: str, results: Results) -> Point:
    if at == "published":
        point = published(found, results)
    elif at in ("picked", "best"):
        point = found.picked if at == "picked" else found.best_on_test
    else:
        point = next((each for each in found.points if each.mu == float(at)), None)
    if point is None:
        raise KeyError(f"μ = {at} is not recorded")
    return point


def _own_gain(results: Results, model: str, dataset: str) -> float:
    """What P-reg adds to a method of Table 2 by its own rule, as docs/study.md shows it."""
    lines = [x for x in load_experiment("table2").lines if (x.model, x.dataset) == (model, dataset)]
    rows = table_rows(load_experiment("table2"), results, lines, OWN)
    (gain,) = [row.difference for row in rows if row.selection == "validation"]
    if gain is None:
        raise KeyError(f"table2/{model}/{dataset} is not recorded")
    return gain


def _of_study(results: Results) -> tuple[int, int]:
    """How many runs of the study are recorded, and how many it should have."""
    return count_runs((unfolded(load_experiment(name), results) for name in study_names()), results)


def _planned(experiment: str) -> int:
    return sum(len(x.cells) * len(x.splits) * len(x.seeds) for x in load_experiment(experiment).lines)


def _late(results: Results, dataset: str) -> int:
    """How many runs the official stopping rule never stopped."""
    cells = (json.loads(text) for text, _, _, out, _ in results.runs() if out.epochs >= MOST_EPOCHS)
    # GAM's rounds, of another number of epochs each, may be more together.
    late = Counter(cell["dataset"] for cell in cells if "max_epochs" not in cell.get("protocol", {}))
    return late[dataset] if dataset else late.total()


def _sessions_of(experiment: str, sessions: list[dict[str, Any]], results: Results) -> list[dict[str, Any]]:
    """The sessions that trained batches of an experiment."""
    mine = {batch.id for batch in cut(unfolded(load_experiment(experiment), results).lines)}
    return [each for each in sessions if not mine.isdisjoint(each.get("batches", ()))]


def hours(sessions: list[dict[str, Any]], device: str) -> float:
    """The time that sessions on a device took; what ran side by side counts once."""
    mine = [each for each in sessions if (each["device"].partition(": ")[2] or each["device"]) == device]
    begun = sorted((datetime.fromisoformat(each["started"]).timestamp(), each["seconds"]) for each in mine)
    taken, until = 0.0, 0.0
    for start, seconds in begun:
        taken += max(start + seconds - max(start, until), 0.0)
        until = max(until, start + seconds)
    return taken / 3600


@cache
def _less_paper(results: Results, method: str, at: str) -> list[float]:
    """Ours less the paper's accuracy of P-reg at the places of Table 1."""
    found = []
    for c in curves("table1", method, results):
        paper = paper_number("table1", c.line.model, OFFICIAL_FORM, c.line.dataset)
        if paper is not None:
            found.append(_at(c, at, results).test - paper[0])
    return found


def _picks(results: Results, model: str) -> list[float]:
    return [c.picked.mu for c in curves("table1", OFFICIAL_FORM, results) if c.line.model == model]


@cache
def _gcn(results: Results, method: str) -> list[Curve]:
    return [c for c in curves("table1", method, results) if c.line.model == "gcn"]


@cache
def _smallest(results: Results, model: str) -> tuple[int, int]:
    """How many picks, over both forms, are the smallest strength of the grid, and how many there are."""
    found = [c for method in FORMS for c in curves("table1", method, results) if c.line.model == model]
    return sum(c.picked == c.points[0] for c in found), len(found)


def _better(results: Results, method: str, together: str = "") -> int:
    """In how many cells of Table 1 the gain is significant, each by itself or all of them together."""
    gains = [c.picked.difference for c in curves("table1", method, results)]
    return sum(each.verdict == "better" for each in (holm(gains) if together else gains))


def _gain_verdicts(results: Results) -> Counter[str]:
    """The gains of P-reg in Table 1 against the paper's, in the official-code form."""
    rows = table_rows(load_experiment("table1"), results)
    return Counter(
        r.gain_verdict for r in rows if (r.method, r.preset, r.selection) == ("preg", "reference", "validation")
    )


def _costs(results: Results) -> list[float]:
    """What picking on validation costs against the best μ on test, in points."""
    return [c.best_on_test.test - c.picked.test for c in curves("table1", OFFICIAL_FORM, results)]


def _forms_apart(results: Results, model: str) -> float:
    both = both_forms("table1", results)
    return fmean(paper.picked.test - code.picked.test for at, (code, paper) in both.items() if model in ("", at[1]))


def _effects(results: Results, method: str) -> dict[str, float]:
    """What a change of the ablation does to a GCN, by dataset."""
    return {each.dataset: each.apart.mean for each in changes(results, method)}


def _annealed(results: Results) -> dict[str, float]:
    """How often annealing picks the smallest μ, with which the term arrives last."""
    found = [c for c in curves("ablation", "preg-annealed", results) if c.line.model == "gcn"]
    edge = [c.points[0].mu for c in found if c.picked == c.points[0]]
    return {"count": len(edge), "of": len(found), "mu": edge[0]}


@cache
def _panel(results: Results, figure: str, panel: str) -> Panel:
    return next(each for each in figure_data(figure, results).panels if each.title == panel)


def _drawn(results: Results, figure: str, panel: str, key: str, at: str) -> float:
    """The value that a figure shows for a series at a place."""
    series = next(each for each in _panel(results, figure, panel).series if each.key == key)
    value = dict(zip(series.x, series.y, strict=True))[float(at)]
    if value is None:
        raise KeyError(f"{figure}/{panel}/{key}/{at} is not recorded")
    return value


def _mask_gain(results: Results, panel: str, key: str) -> float:
    return _drawn(results, "fig-mask", panel, key, "1") - _drawn(results, "fig-mask", panel, key, "0")


def _level(results: Results, figure: str, panel: str, label: str) -> float:
    return next(each.value for each in _panel(results, figure, panel).levels if each.label == label)


def _layers_at_best(results: Results, method: str) -> float:
    """The depth of a plain GCN on Cora with the scale-free ω that P-reg has at its best μ, interpolated."""
    scale_free, at = "scale-free ω against μ", _point(results, "fig-depth", "gcn", "cora", method, "best").mu
    mine = _drawn(results, "fig-depth", scale_free, method, str(at))
    levels = {depth: _level(results, "fig-depth", scale_free, f"{depth} layers") for depth in (2, 3, 4)}
    depth = 2 if mine > levels[3] else 3
    return depth + (levels[depth] - mine) / (levels[depth] - levels[depth + 1])


def _benchmark(name: str, what: str) -> float:
    """A number of the benchmarks of the study."""
    _, records = benchmark(name) or ("", {})
    *_, record = records.values()
    if what == "runs":
        return float(record["metric"].split()[0])
    if what == "share":
        return float(record["metric"].split("by ")[1].removesuffix(" of the work").removesuffix("%"))
    return float(record["value"]) / {"s": 1, "min": 60}[what]


def _squared_in_paper(model: str, dataset: str = "") -> float:
    """The paper's squared error less its cross entropy: at a dataset, or the largest distance below a point."""
    found = {}
    for name in {line.dataset for line in load_experiment("table-phi").lines}:
        one = paper_number("table-phi", model, "preg-squared_error", name)
        other = paper_number("table-phi", model, OFFICIAL_FORM, name)
        if one is not None and other is not None:
            found[name] = one[0] - other[0]
    return found[dataset] if dataset else max(abs(value) for value in found.values() if abs(value) < 1)


def _squared_verdicts(results: Results) -> Counter[str]:
    rows = table_rows(load_experiment("table-phi"), results)
    return Counter(r.verdict for r in rows if (r.preset, r.selection) == ("reference, squared error", "validation"))


def _squared_distance(results: Results, model: str, preset: str) -> float:
    """The mean distance of a line of Appendix F from the paper's squared error."""
    means = defaultdict[str, dict[str, float]](dict)
    paper = {}
    for row in table_rows(load_experiment("table-phi"), results):
        if row.model == model and row.selection == "validation" and row.mean is not None:
            means[row.preset][row.dataset] = row.mean
            if row.preset == "reference, squared error":
                paper[row.dataset] = row.paper_mean or 0.0
    mine = means[f"reference, {preset}"]
    return fmean(abs(mine[name] - value) for name, value in paper.items() if name in mine)


def _omega(phi: str = "", mu: str = "0") -> float:
    """ω of the two-layer GCNs on the digits."""
    from figures import fractional_depth

    runs = fractional_depth.data()
    return fractional_depth.spread(runs, 2, float(mu), phi, scaled=False).mean


def _layers_worth(phi: str, which: str) -> float:
    """The smallest or largest number of layers that a μ is worth."""
    from figures import fractional_depth

    found = fractional_depth.depths(phi).values()
    return max(found) if which == "most" else min(found)
