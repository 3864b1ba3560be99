"""The record of a fit on whole graphs: what ``propreg run`` writes as ``run.json``, with a table of the targets."""

from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from propreg.console import counted
from propreg.data.graph_list import KINDS
from propreg.devices import device_title
from propreg.fitting.graphs.model import GraphModel
from propreg.fitting.graphs.result import GraphFitResult
from propreg.fitting.verdict import Verdict, best_above_zero, judge, pair
from propreg.molecules.train import MoleculeResult
from propreg.running.compare import histories_of, make_record, numbers

SHOWN, COLUMNS = 12, 6  # graphs and targets of the preview


def graph_record(
    result: GraphFitResult,
    name: str,
    verdict: Verdict | None = None,
    source: dict[str, str] | None = None,
) -> dict[str, Any]:
    """The record, which the page is made of.

    Args:
        result: The fit.
        name: What to call the graphs.
        verdict: Of the fit, if it is known.
        source: Settings of where the graphs come from.
    """
    verdict, graphs, shape = verdict or judge(result), result.graphs, result.val.shape
    splits, protocol, spec = list(result.splits), result.protocol, result.model.architecture
    epochs = np.full(shape, np.nan)
    for (mu, split, seed), run in result.runs.items():
        epochs[result.mus.index(mu), splits.index(split), seed] = len(run.val)
    unlabeled, targets = int(np.isnan(graphs.y).all(1).sum()), len(result.model.tasks)
    what = counted(unlabeled, "molecule" if graphs.coded else "graph")
    about = [f"{result.judging.score} is the mean over {targets} targets."] * (targets > 1)
    about += [f"{what} without a label: predicted, but not trained on."] * (unlabeled > 0)
    task = next(short for short, kind in KINDS.items() if kind == graphs.kind)
    settings: dict[str, Any] = {"task": task}
    settings |= {name: getattr(spec, name) for name in ("hidden", "layers", "virtual_node")}
    settings |= {name: getattr(protocol, name) for name in ("lr", "dropout", "batch_size")}
    return make_record(
        result,
        name,
        verdict,
        graph={
            "graphs": len(graphs),
            "nodes": int(graphs.num_nodes.sum()),
            "edges": int(graphs.num_edges.sum()) // (2 if graphs.coded else 1),
            "features": int(graphs.x.shape[1]),
            "classes": result.model.outputs if graphs.kind == "classification" else None,
            "homophily": None,
            "isolated": None,
        },
        model=spec.name,
        epochs=numbers(epochs),
        device=device_title(result.device),
        settings={**(source or {}), **settings, "max_epochs": protocol.epochs},
        classes=[],
        notes=[verdict.sentence, *about],
        histories=histories_of(result, {at: _scores(run) for at, run in result.runs.items() if not run.failed}),
        confusion=None,
        targets=_targets(result),
        preview=_preview(result),
    )


def _targets(result: GraphFitResult) -> list[dict[str, Any]]:
    """Each target: how many graphs have a label, its share of 1 or its spread, and the compared runs."""
    graphs, compared, found = result.graphs, result.mu or best_above_zero(result), []
    for place, name in enumerate(result.model.tasks):
        known = _known(graphs.y[:, place])
        both = None if compared is None else pair(result.for_task(place), compared)
        about = {"share": float(known.mean())} if graphs.kind == "binary classification" else {}
        about |= {"spread": float(known.std())} if graphs.kind == "regression" else {}
        about = about if known.size else {}
        found.append({"name": name, "labels": len(known), **about, "pair": None if both is None else asdict(both)})
    return found


def _preview(result: GraphFitResult) -> dict[str, Any]:
    """Test graphs of the chosen run's split, from the smallest to the largest error, with a few targets."""
    graphs, split = result.graphs, result.best_run[1]
    chosen = np.array([i for i in result.splits[split]["test"] if not np.isnan(graphs.y[i]).all()], np.int64)
    values, y = scored(result.model, graphs), graphs.y.astype(np.float64)
    if graphs.kind == "classification":
        texts = [[f"{row.argmax()} ({row.max():.0%})"] for row in values]
    else:
        form = ".4g" if graphs.kind == "regression" else ".2f"
        texts = [[f"{value:{form}}" for value in row[:COLUMNS]] for row in values]
    if graphs.kind == "classification":
        errors = 1 - np.take_along_axis(values, np.nan_to_num(y).astype(np.int64), 1)
    else:
        scale = [float(_known(column).std() or 1) if _known(column).size else 1 for column in y.T]
        errors = np.abs(values - y) / (scale if graphs.kind == "regression" else 1)
    order = chosen[np.argsort(np.nanmean(errors[chosen], axis=1), kind="stable")]
    shown = order[np.unique(np.linspace(0, len(order) - 1, min(len(order), SHOWN)).round().astype(int))]
    return {
        "split": split,
        "graph": [graphs.names[i] if graphs.names else str(i) for i in shown],
        "targets": list(result.model.tasks[:COLUMNS]),
        "given": [["" if np.isnan(v) else f"{v:g}" for v in graphs.y[i, :COLUMNS]] for i in shown],
        "predicted": [texts[i] for i in shown],
    }


def _known(y: NDArray[Any]) -> NDArray[np.float64]:
    return np.asarray(y[~np.isnan(y)], np.float64)


def scored(model: GraphModel, graphs: Any) -> NDArray[np.float64]:
    """What a model predicts for each graph: a probability for each class or question, or numbers."""
    found = model.predict(graphs) if model.kind == "regression" else model.predict_proba(graphs)
    return np.asarray(found, np.float64)


def _scores(run: MoleculeResult) -> dict[str, Any]:
    return {"loss": np.full(len(run.val), np.nan), "val": run.val, "test": run.test}
