"""The record of a run (``run.json``, version 1, see :mod:`propreg.running.record`), checked field by field.

A file may hold anything: a wrong field raises one sentence, and text is cleaned of what HTML and XML cannot hold. It is
escaped later, where it becomes a page.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, get_args

import numpy as np

from propreg.data.errors import DataError
from propreg.fitting.verdict import JUDGING, Judging, Kind, Pair, Verdict, judge
from propreg.report.record_fields import MOST, field_of, list_of, number_of, text_of, texts_of, wrong
from propreg.statistics import Difference, Runs, Summary

NOTE = 1000  # letters of a remark that are kept


@dataclass(frozen=True)
class History:
    """One training, epoch by epoch; accuracies are fractions, unknown values None."""

    epoch: tuple[int, ...]
    loss: tuple[float | None, ...]
    val: tuple[float | None, ...]
    test: tuple[float | None, ...]


@dataclass(frozen=True)
class NodeMap:
    """Test nodes of one split: places, and what became of each (:data:`propreg.running.map.STATES`)."""

    split: str
    node: tuple[str, ...]
    x: tuple[float, ...]
    y: tuple[float, ...]
    state: tuple[int, ...]
    label: tuple[int, ...]
    plain: tuple[int, ...]
    chosen: tuple[int, ...]


@dataclass(frozen=True)
class ModelRow:
    """One of several models at its chosen strength; ``units`` counts the comparisons behind the gain."""

    title: str
    validation: float | None
    test: Summary | None
    gain: Difference | None
    units: int


@dataclass(frozen=True)
class Target:
    """One target of whole graphs: how many have a label, the share of 1 or the spread of numbers, plain and chosen."""

    name: str
    labels: int
    share: float | None
    spread: float | None
    pair: Pair | None


@dataclass(frozen=True)
class Preview:
    """Test graphs of one split with their targets, given and predicted, as text."""

    split: str
    graph: tuple[str, ...]
    targets: tuple[str, ...]
    given: tuple[tuple[str, ...], ...]
    predicted: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class RunRecord:
    """A run as the page needs it: fractions in per cent, arrays [strengths, splits, seeds] with NaN for None.

    The verdict is the recorded one; a record of an older version has none, and it is computed by the same rule.
    """

    dataset: str
    graph: dict[str, float | None]
    model: str
    method: str
    preset: str
    mus: tuple[float, ...]
    splits: tuple[str, ...]
    seeds: int
    val: Runs
    test: Runs
    epochs: Runs
    mu: float
    finished: bool
    device: str
    seconds: float
    classes: tuple[str, ...]
    notes: tuple[str, ...]
    verdict: Verdict
    histories: dict[str, tuple[History, ...]]
    confusion: dict[str, tuple[tuple[int, ...], ...]] | None
    agreement: dict[str, float | None]
    map: NodeMap | None
    settings: dict[str, str]
    date: str
    versions: dict[str, str]
    judging: Judging = JUDGING
    models: tuple[ModelRow, ...] = ()
    targets: tuple[Target, ...] = ()
    preview: Preview | None = None


def read_run(record: Mapping[str, Any]) -> RunRecord:
    """Check a record.

    Raises:
        DataError: If a field is missing or is not what it should be; the sentence names it.
    """
    if record.get("format") != "propreg run" or record.get("version") != 1:
        raise DataError("This is not a record of a run of version 1: give the run.json that propreg run wrote.")
    mus = tuple(number_of("mus", value, 0.0) for value in list_of(record, "mus", MOST["mus"]))
    splits = tuple(text_of("splits", value) for value in list_of(record, "splits", MOST["splits"]))
    seeds = int(number_of("seeds", field_of(record, "seeds"), 1.0))
    mu = number_of("mu", field_of(record, "mu"), 0.0)
    if not mus or mus[0] != 0 or list(mus) != sorted(set(mus)) or mu not in mus:
        raise wrong("mus", "rise from 0 and hold the chosen mu")
    if not splits or seeds > MOST["seeds"]:
        raise wrong("splits", "name at least one split")
    shape, judging = (len(mus), len(splits), seeds), _judging(record.get("judging", {}))
    scale, least, most = (100.0, 0.0, 1.0) if judging.fraction else (1.0, -math.inf, math.inf)
    classes = tuple(text_of("classes", value) for value in list_of(record, "classes", MOST["classes"]))
    run = RunRecord(
        dataset=text_of("dataset", field_of(record, "dataset")),
        graph=_graph(field_of(record, "graph")),
        model=text_of("model", field_of(record, "model")),
        method=text_of("method", field_of(record, "method")),
        preset=text_of("preset", record.get("preset") or ""),
        mus=mus,
        splits=splits,
        seeds=seeds,
        val=scale * _runs(record, "val", shape, most, least),
        test=scale * _runs(record, "test", shape, most, least),
        epochs=_runs(record, "epochs", shape, math.inf),
        mu=mu,
        finished=field_of(record, "finished") is True,
        device=text_of("device", field_of(record, "device")),
        seconds=number_of("seconds", field_of(record, "seconds"), 0.0),
        classes=classes,
        notes=tuple(text_of("notes", value, NOTE) for value in list_of(record, "notes", MOST["notes"])),
        verdict=Verdict("inconclusive", "", None),
        histories=_histories(field_of(record, "histories")),
        confusion=_confusion(record.get("confusion"), len(classes)),
        agreement=_agreement(record.get("agreement") or {}),
        map=_map(record.get("map"), len(classes)),
        settings=texts_of("settings", record.get("settings") or {}),
        date=text_of("date", record["date"]) if record.get("date") else "",
        versions=texts_of("versions", record.get("versions") or {}),
        judging=judging,
        models=_models(record.get("models") or [], scale),
        targets=tuple(
            _target(each, mus, scale) for each in list_of({"targets": [], **record}, "targets", MOST["classes"])
        ),
        preview=_preview(record.get("preview")),
    )
    stored = record.get("verdict")
    return replace(run, verdict=judge(run, scale=1.0) if stored is None else _verdict(stored, mus, scale))


def _runs(record: Mapping[str, Any], name: str, shape: tuple[int, int, int], most: float, least: float = 0.0) -> Runs:
    try:
        found = np.array(field_of(record, name), np.float64)  # None becomes NaN
    except (TypeError, ValueError):
        raise wrong(name, "hold numbers, one for each strength, split and seed") from None
    if found.shape != shape:
        raise wrong(name, f"have a number for each strength, split and seed, {' × '.join(map(str, shape))}")
    if np.isinf(found).any() or (found < least).any() or (found > most).any():
        between = f"lie between 0 and {most:g}" if most < math.inf else "not be below 0"
        raise wrong(name, between if least == 0 else "be finite")
    return found


def _verdict(value: Any, mus: tuple[float, ...], scale: float) -> Verdict:
    if not isinstance(value, Mapping) or value.get("kind") not in get_args(Kind):
        raise wrong("verdict", f"have a kind: {', '.join(get_args(Kind))}")
    kind, found = value["kind"], value.get("pair")
    sentence = text_of("verdict", value.get("sentence"), NOTE)
    return Verdict(kind, sentence, None if found is None else _pair(found, mus, scale))


def _pair(found: Any, mus: tuple[float, ...], scale: float) -> Pair:
    if not isinstance(found, Mapping) or found.get("mu") not in mus:
        raise wrong("verdict", "compare one of the mus")
    parts = {"plain": Summary, "other": Summary, "difference": Difference}
    made = {name: _scaled(found.get(name), part, scale) for name, part in parts.items()}
    return Pair(found["mu"], **made, units=int(number_of("verdict", found.get("units"), 1.0)))


def _scaled(value: Any, part: type, scale: float) -> Any:
    """A summary or difference of scores, fractions in per cent."""
    if not isinstance(value, Mapping):
        raise wrong("verdict", "hold objects")
    numbers = {each.name: number_of("verdict", value.get(each.name), -1e300) for each in fields(part)}
    shares = {name: n if name in ("p_value", "won") else scale * n for name, n in numbers.items()}
    return part(**shares if part is Difference else shares | {"runs": int(numbers["runs"])})


def _models(value: Any, scale: float) -> tuple[ModelRow, ...]:
    if not isinstance(value, list | tuple) or len(value) > MOST["runs"]:
        raise wrong("models", f"be a list of at most {MOST['runs']}")
    rows = []
    for each in value:
        if not isinstance(each, Mapping):
            raise wrong("models", "hold objects")
        val, test, gain = (each.get(name) for name in ("validation", "test", "gain"))
        rows.append(
            ModelRow(
                text_of("models", each.get("title")),
                None if val is None else scale * number_of("models", val, -1e300),
                None if test is None else _scaled(test, Summary, scale),
                None if gain is None else _scaled(gain, Difference, scale),
                0 if gain is None else int(number_of("models", gain.get("units"), 1.0)),
            )
        )
    return tuple(rows)


def _judging(value: Any) -> Judging:
    """What the numbers are; of records of older versions test accuracy."""
    if not isinstance(value, Mapping) or value.get("part", "test") not in ("test", "validation"):
        raise wrong("judging", "name the score and its part, test or validation")
    return Judging(
        text_of("judging", value.get("score", JUDGING.score)),
        value.get("part", "test"),
        sign=-1 if value.get("sign") == -1 else 1,
        fraction=value.get("fraction") is not False,
        nested=value.get("nested") is True,
        where="on these graphs" if value.get("where") == "on these graphs" else JUDGING.where,
    )


def _graph(value: Any) -> dict[str, float | None]:
    if not isinstance(value, Mapping):
        raise wrong("graph", "be an object")
    names = ("graphs", "nodes", "edges", "features", "classes", "homophily", "isolated")
    return {name: None if value.get(name) is None else number_of(f"graph.{name}", value[name], 0.0) for name in names}


def _agreement(value: Any) -> dict[str, float | None]:
    if not isinstance(value, Mapping):
        raise wrong("agreement", "be an object")
    names = [name for name in ("labels", "plain", "chosen") if value.get(name) is not None]
    shares = {name: number_of("agreement", value[name], 0.0) for name in names}
    if any(share > 1 for share in shares.values()):
        raise wrong("agreement", "lie between 0 and 1")
    return {name: shares.get(name) for name in ("labels", "plain", "chosen")}


def _map(value: Any, classes: int) -> NodeMap | None:
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise wrong("map", "be an object, or null")
    nodes = list_of(value, "node", MOST["dots"])
    parts: dict[str, tuple[Any, ...]] = {"node": tuple(text_of("map.node", node) for node in nodes)}
    for name in ("x", "y"):
        parts[name] = tuple(number_of("map", each, -1e6) for each in list_of(value, name, MOST["dots"]))
    for name, below in {"state": 4, "label": classes, "plain": classes, "chosen": classes}.items():
        found = tuple(int(number_of("map", each, 0.0)) for each in list_of(value, name, MOST["dots"]))
        if any(each >= below for each in found):
            raise wrong("map", "name states and classes that exist")
        parts[name] = found
    if len({len(part) for part in parts.values()}) > 1:
        raise wrong("map", "have as many places as nodes")
    return NodeMap(text_of("map.split", field_of(value, "split")), **parts)


def _target(value: Any, mus: tuple[float, ...], scale: float) -> Target:
    if not isinstance(value, Mapping):
        raise wrong("targets", "hold objects")
    known = {name: value.get(name) for name in ("share", "spread", "pair")}
    share, spread = (None if known[n] is None else number_of("targets", known[n], 0.0) for n in ("share", "spread"))
    pair = None if known["pair"] is None else _pair(known["pair"], mus, scale)
    labels = int(number_of("targets", value.get("labels"), 0.0))
    return Target(text_of("targets", value.get("name")), labels, share, spread, pair)


def _preview(value: Any) -> Preview | None:
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise wrong("preview", "be an object, or null")
    graphs, targets = (
        tuple(text_of("preview", each) for each in list_of(value, name, MOST["runs"])) for name in ("graph", "targets")
    )
    given, predicted = (_rows(value, name, len(graphs), len(targets)) for name in ("given", "predicted"))
    return Preview(text_of("preview", value.get("split")), graphs, targets, given, predicted)


def _rows(value: Mapping[str, Any], name: str, rows: int, columns: int) -> tuple[tuple[str, ...], ...]:
    found = list_of(value, name, MOST["runs"])
    if len(found) != rows or any(not isinstance(row, list | tuple) or len(row) != columns for row in found):
        raise wrong("preview", "have a value for each graph and target")
    return tuple(tuple(text_of("preview", each) if each else "" for each in row) for row in found)


def _histories(value: Any) -> dict[str, tuple[History, ...]]:
    if not isinstance(value, Mapping):
        raise wrong("histories", "be an object")
    found = {}
    for which in ("plain", "chosen"):
        runs = value.get(which, [])
        if not isinstance(runs, list | tuple) or len(runs) > MOST["runs"]:
            raise wrong("histories", f"hold at most {MOST['runs']} runs each")
        found[which] = tuple(map(_history, runs))
    return found


def _history(value: Any) -> History:
    if not isinstance(value, Mapping):
        raise wrong("histories", "hold objects")
    loss, val, test = (_curve(value.get(name)) for name in ("loss", "val", "test"))
    if not len(loss) == len(val) == len(test):
        raise wrong("histories", "have as many losses as accuracies")
    epoch = _curve(value["epoch"]) if "epoch" in value else tuple(float(i + 1) for i in range(len(loss)))
    if len(epoch) != len(loss) or None in epoch:
        raise wrong("histories", "have an epoch for each loss")
    return History(tuple(int(each or 0) for each in epoch), loss, val, test)


def _curve(value: Any) -> tuple[float | None, ...]:
    if not isinstance(value, list | tuple) or len(value) > 100_000:
        raise wrong("histories", "hold lists")
    # A file may spell out a loss that is NaN or infinite: it counts as unknown, like null.
    return tuple(
        float(v) if isinstance(v, int | float) and not isinstance(v, bool) and math.isfinite(v) else None for v in value
    )


def _confusion(value: Any, classes: int) -> dict[str, tuple[tuple[int, ...], ...]] | None:
    if value is None:
        return None
    try:
        found = {which: np.array(value[which], np.int64) for which in ("plain", "chosen")}
    except (TypeError, ValueError, KeyError, OverflowError):
        raise wrong("confusion", "be null, or tables of counts named plain and chosen") from None
    for table in found.values():
        if table.shape != (classes, classes) or (table < 0).any():
            raise wrong("confusion", f"be tables of {classes} × {classes} counts, or null")
    return {which: tuple(tuple(int(n) for n in row) for row in table) for which, table in found.items()}
