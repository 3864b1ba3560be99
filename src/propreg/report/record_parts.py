"""The parts of a record: trainings, the map, models, the verdict, each checked field by field."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, get_args

import numpy as np

from propreg.fitting.verdict import JUDGING, Judging, Kind, Pair, Verdict
from propreg.metrics import METRICS, Metric
from propreg.report.record_fields import MOST, field_of, list_of, number_of, text_of, wrong
from propreg.statistics import Difference, Summary

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


def verdict_of(value: Any, mus: tuple[float, ...], scale: float) -> Verdict:
    """The recorded verdict."""
    if not isinstance(value, Mapping) or value.get("kind") not in get_args(Kind):
        raise wrong("verdict", f"have a kind: {', '.join(get_args(Kind))}")
    kind, found = value["kind"], value.get("pair")
    sentence = text_of("verdict", value.get("sentence"), NOTE)
    return Verdict(kind, sentence, None if found is None else pair_of(found, mus, scale))


def pair_of(found: Any, mus: tuple[float, ...], scale: float) -> Pair:
    """The numbers of a comparison."""
    if not isinstance(found, Mapping) or found.get("mu") not in mus:
        raise wrong("verdict", "compare one of the mus")
    parts = {"plain": Summary, "other": Summary, "difference": Difference}
    made = {name: scaled_of(found.get(name), part, scale) for name, part in parts.items()}
    return Pair(found["mu"], **made, units=int(number_of("verdict", found.get("units"), 1.0)))


def metrics_of(value: Any, mus: tuple[float, ...]) -> tuple[tuple[Metric, Pair], ...]:
    """The metrics that this version knows, with their numbers."""
    if not isinstance(value, Mapping):
        raise wrong("metrics", "be an object")
    return tuple((metric, pair_of(value[name], mus, 1.0)) for name, metric in METRICS.items() if name in value)


def scaled_of(value: Any, part: type, scale: float) -> Any:
    """A summary or difference of scores, fractions in per cent."""
    if not isinstance(value, Mapping):
        raise wrong("verdict", "hold objects")
    numbers = {each.name: number_of("verdict", value.get(each.name), -1e300) for each in fields(part)}
    shares = {name: n if name in ("p_value", "won") else scale * n for name, n in numbers.items()}
    return part(**shares if part is Difference else shares | {"runs": int(numbers["runs"])})


def models_of(value: Any, scale: float) -> tuple[ModelRow, ...]:
    """The rows of several models, the best first."""
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
                None if test is None else scaled_of(test, Summary, scale),
                None if gain is None else scaled_of(gain, Difference, scale),
                0 if gain is None else int(number_of("models", gain.get("units"), 1.0)),
            )
        )
    return tuple(rows)


def judging_of(value: Any) -> Judging:
    """What the numbers are."""
    if not isinstance(value, Mapping) or value.get("part") not in ("test", "validation"):
        raise wrong("judging", "name the score and its part, test or validation")
    return Judging(
        text_of("judging", value.get("score")),
        value["part"],
        sign=-1 if value.get("sign") == -1 else 1,
        fraction=value.get("fraction") is not False,
        nested=value.get("nested") is True,
        where="on these graphs" if value.get("where") == "on these graphs" else JUDGING.where,
    )


def graph_of(value: Any) -> dict[str, float | None]:
    """The numbers of the graph, None where unknown."""
    if not isinstance(value, Mapping):
        raise wrong("graph", "be an object")
    names = ("graphs", "nodes", "edges", "features", "classes", "homophily", "isolated")
    return {name: None if value.get(name) is None else number_of(f"graph.{name}", value[name], 0.0) for name in names}


def agreement_of(value: Any) -> dict[str, float | None]:
    """The shares of edges that join one class."""
    if not isinstance(value, Mapping):
        raise wrong("agreement", "be an object")
    names = [name for name in ("labels", "plain", "chosen") if value.get(name) is not None]
    shares = {name: number_of("agreement", value[name], 0.0) for name in names}
    if any(share > 1 for share in shares.values()):
        raise wrong("agreement", "lie between 0 and 1")
    return {name: shares.get(name) for name in ("labels", "plain", "chosen")}


def map_of(value: Any, classes: int) -> NodeMap | None:
    """The map of the nodes."""
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


def target_of(value: Any, mus: tuple[float, ...], scale: float) -> Target:
    """One target."""
    if not isinstance(value, Mapping):
        raise wrong("targets", "hold objects")
    known = {name: value.get(name) for name in ("share", "spread", "pair")}
    share, spread = (None if known[n] is None else number_of("targets", known[n], 0.0) for n in ("share", "spread"))
    pair = None if known["pair"] is None else pair_of(known["pair"], mus, scale)
    labels = int(number_of("targets", value.get("labels"), 0.0))
    return Target(text_of("targets", value.get("name")), labels, share, spread, pair)


def preview_of(value: Any) -> Preview | None:
    """A look at the predictions."""
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise wrong("preview", "be an object, or null")
    graphs, targets = (
        tuple(text_of("preview", each) for each in list_of(value, name, MOST["runs"])) for name in ("graph", "targets")
    )
    given, predicted = (rows_of(value, name, len(graphs), len(targets)) for name in ("given", "predicted"))
    return Preview(text_of("preview", value.get("split")), graphs, targets, given, predicted)


def rows_of(value: Mapping[str, Any], name: str, rows: int, columns: int) -> tuple[tuple[str, ...], ...]:
    """Rows of text."""
    found = list_of(value, name, MOST["runs"])
    if len(found) != rows or any(not isinstance(row, list | tuple) or len(row) != columns for row in found):
        raise wrong("preview", "have a value for each graph and target")
    return tuple(tuple(text_of("preview", each) if each else "" for each in row) for row in found)


def histories_of(value: Any) -> dict[str, tuple[History, ...]]:
    """The recorded trainings."""
    if not isinstance(value, Mapping):
        raise wrong("histories", "be an object")
    found = {}
    for which in ("plain", "chosen"):
        runs = value.get(which, [])
        if not isinstance(runs, list | tuple) or len(runs) > MOST["runs"]:
            raise wrong("histories", f"hold at most {MOST['runs']} runs each")
        found[which] = tuple(map(history_of, runs))
    return found


def history_of(value: Any) -> History:
    """One training."""
    if not isinstance(value, Mapping):
        raise wrong("histories", "hold objects")
    epoch, loss, val, test = (curve_of(value.get(name)) for name in ("epoch", "loss", "val", "test"))
    if not len(loss) == len(val) == len(test):
        raise wrong("histories", "have as many losses as accuracies")
    if len(epoch) != len(loss) or None in epoch:
        raise wrong("histories", "have an epoch for each loss")
    return History(tuple(int(each or 0) for each in epoch), loss, val, test)


def curve_of(value: Any) -> tuple[float | None, ...]:
    """A curve; what is not finite is unknown."""
    if not isinstance(value, list | tuple) or len(value) > 100_000:
        raise wrong("histories", "hold lists")
    # A file may spell out a loss that is NaN or infinite: it counts as unknown, like null.
    return tuple(
        float(v) if isinstance(v, int | float) and not isinstance(v, bool) and math.isfinite(v) else None for v in value
    )


def confusion_of(value: Any, classes: int) -> dict[str, tuple[tuple[int, ...], ...]] | None:
    """The tables of counts."""
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
