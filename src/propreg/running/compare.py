"""The comparison: train through :func:`propreg.fit`, judge, record."""

import math
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from propreg import __version__
from propreg.data.graph import Graph
from propreg.fitting.by_class import confusion_of
from propreg.fitting.explain import caveats, facts_of, reasons
from propreg.fitting.fit import Watch as WatchResult
from propreg.fitting.fit import fit
from propreg.fitting.leaderboard import Leaderboard, both_directions
from propreg.fitting.result import FitResult
from propreg.fitting.splits import judgeable
from propreg.fitting.verdict import Verdict, judge
from propreg.running.map import agreement, map_of
from propreg.running.plan import Plan
from propreg.running.record import FORMAT, VERSION

if TYPE_CHECKING:
    from propreg.fitting.graphs.result import GraphFitResult

Watch = Callable[[Callable[[], Mapping[str, Any]]], object]
"""Called after each finished training with a function that makes the record of those so far."""
PACKAGES = ("torch", "torch_geometric", "numpy")
POINTS, RUNS = 200, 3  # of the histories
MOST_CLASSES = 100  # of the confusion: its size is their square, and nobody reads a larger one


@dataclass(frozen=True)
class Comparison:
    """The fit, the verdict, and the record that the page is made of."""

    plan: Plan
    result: FitResult
    verdict: Verdict
    reasons: tuple[str, ...]
    record: dict[str, Any]
    board: Leaderboard | None = None

    @property
    def kept(self) -> tuple[Path, ...]:
        """The folders that hold the finished trainings."""
        results = [self.result] if self.board is None else self.board.results.values()
        return tuple(result.kept for result in results if result.kept is not None)

    def runs(self) -> str:
        """One line per training."""
        return to_csv(self.result)

    def predictions(self) -> str:
        """One line per node."""
        return self.result.predictions()


def compare_models(
    plans: Sequence[Plan],
    *,
    progress: Literal["lines"] | bool | None = None,
    resume: Path | None = None,
    watch: Watch | None = None,
) -> Comparison:
    """Compare each model with its plain form, and all of them; the comparison is that of the best on validation."""
    if len(plans) == 1:
        return compare(plans[0], progress=progress, resume=resume, watch=watch)
    found: dict[str, Comparison] = {}
    for number, plan in enumerate(plans, 1):
        note = f"This is model {number} of {len(plans)}. All are compared when the last has trained."
        mine = None if watch is None else partial(_watch_with_note, watch, note)
        try:
            found[plan.model] = compare(plan, progress=progress, resume=resume, watch=mine)
        except KeyboardInterrupt:
            if not found:
                raise
            break
        if not found[plan.model].result.finished:
            break
    whole = len(found) == len(plans) and all(each.result.finished for each in found.values())
    board = Leaderboard({name: each.result for name, each in found.items()})
    if whole and (seeing := board.seeing()) is not None and (both := both_directions(seeing)) is not None:
        plan = next(plan for plan in plans if board.results[plan.model] is seeing)
        board = replace(board, undirected=_fit(plan, both, 0.0, progress=progress, resume=None))
    best = found[board.best]
    record = {**with_leaderboard(best.record, board), "finished": whole}
    return replace(best, board=board, record=record, result=replace(best.result, finished=whole))


def _watch_with_note(watch: Watch, note: str, so_far: Callable[[], Mapping[str, Any]]) -> None:
    def noted() -> Mapping[str, Any]:
        record = so_far()
        return {**record, "notes": [*record["notes"], note]}

    watch(noted)


def compare(
    plan: Plan,
    *,
    progress: Literal["lines"] | bool | None = None,
    resume: Path | None = None,
    watch: Watch | None = None,
) -> Comparison:
    """Train the plain model and the regularized ones, and compare them.

    Args:
        plan: What is trained.
        progress, resume: As of :func:`propreg.fit`.
        watch: Called after each finished training, to show those so far.

    Raises:
        KeyboardInterrupt: If it was interrupted before anything could be compared; else what is finished is returned.
    """
    start = time.perf_counter()
    source = plan.source

    def recorded(result: FitResult, *, training: bool = False) -> dict[str, Any]:
        found = record_of(result, source.name, source.notes, training=training)
        return {**found, "settings": {**found["settings"], **source.options}}

    def seen(so_far: Callable[[], FitResult]) -> None:
        if watch is not None:
            watch(lambda: recorded(so_far(), training=True))

    result = _fit(plan, source.graph, plan.mus, progress=progress, resume=resume, watch=None if watch is None else seen)
    verdict = judge(result)
    why = reasons(result.facts, result, verdict) if result.facts else []
    record = recorded(replace(result, seconds=time.perf_counter() - start))
    return Comparison(plan, result, verdict, tuple(why), record)


def record_of(
    result: FitResult, name: str = "", notes: Sequence[str] = (), *, training: bool = False
) -> dict[str, Any]:
    """The record of a fit, of :func:`propreg.fit` or of a run; of several models, of the best on validation.

    Args:
        result: The fit.
        name: The graph's name, if it is not its own.
        notes: What else to know.
        training: Whether the trainings that are not finished go on.
    """
    graph, verdict = result.graph, judge(result)
    if graph is None:
        raise ValueError("the result has no graph: it was not made by fit.")
    facts = result.facts or replace(facts_of(graph, result.splits), homophily=None)
    why = reasons(result.facts, result, verdict) if result.facts else []
    known = caveats(result, result.settings["max_epochs"], result.val.size, training=training)
    scaled = [result.scaling.sentence] if result.scaling.sentence else []
    epochs: NDArray[Any] = np.full(result.val.shape, None, object)
    for run in result.runs:
        if not run.failed:
            place = result.mus.index(run.replica.strength), list(result.splits).index(run.replica.split)
            epochs[(*place, run.replica.seed)] = run.epochs
    record = make_record(
        result,
        name or graph.name or "graph",
        verdict,
        graph={
            "nodes": graph.num_nodes,
            "edges": facts.edges,
            "features": graph.num_features,
            "classes": graph.num_classes,
            "homophily": facts.homophily,
            "isolated": facts.isolated,
        },
        model=result.model_name,
        epochs=epochs.tolist(),
        device=result.device,
        settings=dict(result.settings),
        classes=list(graph.class_names) or [str(c) for c in range(graph.num_classes)],
        notes=[verdict.sentence, *why, *known, *scaled, *([result.batches] if result.batches else []), *notes],
        histories=_histories(result),
        confusion=_confusion(graph, result),
        agreement=agreement(graph, result) if result.predicted else None,
        map=map_of(graph, result) if result.predicted else None,
        metrics={metric: asdict(pair) for metric, pair in result.metrics().items()},
    )
    record |= {"training": True} if training else {}
    return record if result.leaderboard is None else with_leaderboard(record, result.leaderboard)


def with_leaderboard(record: Mapping[str, Any], board: Leaderboard) -> dict[str, Any]:
    """The record of the best of several models, with the scores of all."""
    models = []
    for row in board.rows():
        gain = None if row.gain is None else asdict(row.gain.difference) | {"units": row.gain.units}
        test, val = (asdict(row.test) if row.test.runs else None), row.validation
        models.append({"title": row.title, "validation": None if math.isnan(val) else val, "test": test, "gain": gain})
    finished = all(result.finished for result in board.results.values())
    notes = [*record["notes"], *board.findings()]
    names = dict.fromkeys(result.model_name for result in board.results.values())
    settings = {**record["settings"], "models": ",".join(names)}
    whole = finished and record["finished"]
    return {**record, "settings": settings, "notes": notes, "finished": whole, "models": models}


def _fit(
    plan: Plan,
    graph: Graph,
    mu: float | Sequence[float],
    *,
    progress: Literal["lines"] | bool | None,
    resume: Path | None,
    watch: WatchResult | None = None,
) -> FitResult:
    return fit(
        graph,
        plan.spec,
        mu,
        method=plan.method,
        preset=plan.preset,
        scale=plan.scale,
        metric=plan.metric,
        select=plan.select,
        splits=plan.source.splits if plan.source.test is None else len(plan.source.splits),
        test=plan.source.test,
        seeds=plan.seeds,
        lr=plan.lr,
        weight_decay=plan.weight_decay,
        dropout=plan.dropout,
        patience=plan.patience,
        max_epochs=plan.max_epochs,
        batch=plan.batch,
        device=plan.device,
        progress=progress,
        resume=resume,
        watch=watch,
    )


def make_record(
    result: "FitResult | GraphFitResult",
    name: str,
    verdict: Verdict,
    *,
    graph: dict[str, Any],
    model: str,
    epochs: list[Any],
    device: str,
    settings: dict[str, Any],
    classes: list[str],
    notes: list[str],
    histories: dict[str, Any],
    confusion: dict[str, Any] | None,
    **parts: Any,
) -> dict[str, Any]:
    """The record of a fit on nodes or on whole graphs; ``parts`` are the fields that only one of them has."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "propreg": __version__,
        "dataset": name,
        "graph": graph,
        "model": model,
        "method": result.method,
        "preset": result.preset,
        "mus": list(result.mus),
        "splits": list(result.splits),
        "seeds": result.val.shape[2],
        "val": numbers(result.val),
        "test": numbers(result.test),
        "epochs": epochs,
        "mu": result.mu,
        "finished": result.finished,
        "device": device,
        "seconds": round(result.seconds, 2),
        "settings": settings,
        "classes": classes,
        "notes": notes,
        "verdict": asdict(verdict),
        "judging": asdict(result.judging),
        "histories": histories,
        "confusion": confusion,
        **parts,
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "versions": {"python": platform.python_version()} | {name: version(name) for name in PACKAGES},
    }


def to_csv(result: FitResult) -> str:
    """One line per training, scores in per cent."""
    lines = ["mu,split,seed,validation,test,best_epoch,epochs,failed_at"]
    names = list(result.splits)
    for run in result.runs:
        r = run.replica
        place = result.mus.index(r.strength), names.index(r.split), r.seed
        scores = "," if run.failed else f"{100 * result.val[place]:.4f},{100 * result.test[place]:.4f}"
        failed = "" if run.failed_at is None else run.failed_at
        lines.append(f"{r.strength:g},{r.split},{r.seed},{scores},{run.epoch},{run.epochs},{failed}")
    return "\n".join(lines) + "\n"


def numbers(values: NDArray[np.float64]) -> Any:
    """Lists with None for NaN."""
    found = values.astype(object)
    found[np.isnan(values)] = None
    return found.tolist()


def _histories(result: FitResult) -> dict[str, list[dict[str, list[Any]]]]:
    runs = {(r.replica.strength, r.replica.split, r.replica.seed): r.history for r in result.runs if not r.failed}
    if result.task != "classes":  # the engine counts no right answers: their curves are of the loss alone
        runs = {at: each | dict.fromkeys(("val", "test"), [math.nan] * len(each["loss"])) for at, each in runs.items()}
    return histories_of(result, runs)


def histories_of(
    result: "FitResult | GraphFitResult", runs: Mapping[tuple[float, str, int], Mapping[str, Any]]
) -> dict[str, list[dict[str, list[Any]]]]:
    """The first runs that both plain and chosen have: one per split, then further seeds.

    Args:
        result: The fit.
        runs: The losses and scores of each run that has not failed, by strength, split and seed.
    """
    places = [(split, seed) for seed in range(result.val.shape[2]) for split in result.splits]
    shared = [at for at in places if (0.0, *at) in runs and (result.mu, *at) in runs][:RUNS]
    both = {"plain": 0.0, "chosen": result.mu}
    return {which: [thinned(runs[mu, *at]) for at in shared] for which, mu in both.items()}


def thinned(history: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Loss and scores of some epochs, the first and the last among them."""
    count = len(history["loss"])
    kept = np.unique(np.linspace(0, count - 1, min(count, POINTS)).round().astype(int))
    found: dict[str, list[Any]] = {"epoch": (kept + 1).tolist()}
    for key in ("loss", "val", "test"):
        values = np.asarray(history[key], np.float64)[kept]
        found[key] = [round(v, 6) if math.isfinite(v) else None for v in values.tolist()]
    return found


def _confusion(graph: Graph, result: FitResult) -> dict[str, Any] | None:
    if not result.predicted:
        return None
    plain, chosen = result.predicted[0.0], result.predicted[result.mu]
    both = (plain[..., 0] >= 0) & (chosen[..., 0] >= 0)
    if not both.any() or graph.num_classes > MOST_CLASSES:
        return None
    splits = [judgeable(split) for split in result.splits.values()]
    return {
        name: confusion_of(graph.y, np.where(both[..., None], predicted, -1), splits, graph.num_classes).tolist()
        for name, predicted in (("plain", plain), ("chosen", chosen))
    }
