"""The record of a run (``run.json``, version 1, see :mod:`propreg.running.record`), checked field by field.

A file may hold anything: a wrong field raises one sentence, and text is cleaned of what HTML and XML cannot hold. It is
escaped later, where it becomes a page.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from propreg.data.errors import DataError
from propreg.fitting.verdict import Judging, Pair, Verdict
from propreg.metrics import Metric
from propreg.report.record_fields import MOST, field_of, list_of, number_of, text_of, texts_of, wrong
from propreg.report.record_parts import (
    History,
    ModelRow,
    NodeMap,
    Preview,
    Target,
    agreement_of,
    confusion_of,
    graph_of,
    histories_of,
    judging_of,
    map_of,
    metrics_of,
    models_of,
    preview_of,
    target_of,
    verdict_of,
)
from propreg.statistics import Runs

NOTE = 1000  # letters of a remark that are kept


@dataclass(frozen=True)
class RunRecord:
    """A run as the page needs it: fractions in per cent, arrays [strengths, splits, seeds] with NaN for None."""

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
    metrics: tuple[tuple[Metric, Pair], ...]
    settings: dict[str, str]
    date: str
    versions: dict[str, str]
    judging: Judging
    models: tuple[ModelRow, ...] = ()
    targets: tuple[Target, ...] = ()
    preview: Preview | None = None
    training: bool = False

    @property
    def picking(self) -> Runs:
        """What strengths are compared by where the record has no verdict; it has no other scores."""
        return self.judging.sign * self.val


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
    shape, judging = (len(mus), len(splits), seeds), judging_of(field_of(record, "judging"))
    scale, least, most = (100.0, 0.0, 1.0) if judging.fraction else (1.0, -math.inf, math.inf)
    classes = tuple(text_of("classes", value) for value in list_of(record, "classes", MOST["classes"]))
    return RunRecord(
        dataset=text_of("dataset", field_of(record, "dataset")),
        graph=graph_of(field_of(record, "graph")),
        model=text_of("model", field_of(record, "model")),
        method=text_of("method", field_of(record, "method")),
        preset=text_of("preset", field_of(record, "preset")),
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
        verdict=verdict_of(field_of(record, "verdict"), mus, scale),
        histories=histories_of(field_of(record, "histories")),
        confusion=confusion_of(record.get("confusion"), len(classes)),
        agreement=agreement_of(record.get("agreement") or {}),
        map=map_of(record.get("map"), len(classes)),
        metrics=metrics_of(record.get("metrics") or {}, mus),
        settings=texts_of("settings", field_of(record, "settings")),
        date=text_of("date", field_of(record, "date")),
        versions=texts_of("versions", field_of(record, "versions")),
        judging=judging,
        models=models_of(record.get("models") or [], scale),
        targets=tuple(
            target_of(each, mus, scale) for each in list_of({"targets": [], **record}, "targets", MOST["classes"])
        ),
        preview=preview_of(record.get("preview")),
        training=record.get("training") is True,
    )


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
