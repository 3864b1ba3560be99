"""``propreg run --molecules``: a table of SMILES, the plain model beside P-reg, in a folder of results."""

import csv
import io
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from propreg import __version__
from propreg.console import counted
from propreg.data.graph_list import GraphList, of_molecules
from propreg.data.own.graph_list import check_kind
from propreg.devices import device_title, find_device
from propreg.fitting.graphs.fit import fit_graphs
from propreg.fitting.graphs.result import GraphFitResult
from propreg.fitting.verdict import Verdict, judge
from propreg.molecules.smiles import scaffolds
from propreg.molecules.table import Table, read_table
from propreg.molecules.train import MoleculeResult
from propreg.running.compare import made, numbers, thinned
from propreg.running.record import FORMAT, VERSION

RUNS = 3  # of the histories
FOLDER = "molecules"
"""The folder of finished trainings inside a run's own."""


@dataclass(frozen=True)
class MoleculePlan:
    """Everything that is going to be trained, checked."""

    name: str
    path: Path
    table: Table
    graphs: GraphList
    splits: Any
    groups: Sequence[str] | None
    smiles_column: str
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def model(self) -> str:
        """Its name in the engine."""
        return f"mol-{self.settings['model']}"

    @property
    def method(self) -> str:
        """That of all runs on molecules."""
        return "preg"


@dataclass(frozen=True)
class MoleculeComparison:
    """The fit, the verdict, and the record that the page is made of."""

    plan: MoleculePlan
    result: GraphFitResult
    verdict: Verdict
    record: dict[str, Any]
    reasons: tuple[str, ...] = ()


def plan_molecules(
    path: Path,
    smiles_column: str,
    targets: Sequence[str],
    task: str = "auto",
    splits: int | None = None,
    **settings: Any,
) -> MoleculePlan:
    """Read the table and check all of it before anything is trained.

    Args:
        path: A CSV file.
        smiles_column, targets: Its columns.
        task: See :func:`propreg.fit_graphs`.
        splits: The number of random splits by scaffold; None: OGB's scaffold split.
        settings: Of :func:`propreg.fit_graphs`.
    """
    table = read_table(path, smiles_column, targets)
    graphs = check_kind(of_molecules(table.molecules(path.stem, str(path))), _kind_of(table, task))
    groups = None if splits is None else scaffolds(table.smiles)
    parts = {"scaffold": table.scaffold_split()} if splits is None else splits
    device = str(find_device(settings.pop("device", "auto")))
    given = {name: value for name, value in settings.items() if value is not None}
    return MoleculePlan(path.stem, path, table, graphs, parts, groups, smiles_column, {**given, "device": device})


def compare_molecules(
    plan: MoleculePlan, *, progress: Literal["lines"] | bool | None = None, resume: Path | None = None
) -> MoleculeComparison:
    """Train, judge and record."""
    start = time.perf_counter()
    settings = dict(plan.settings)
    graphs = replace(plan.graphs, split={})
    kept = None if resume is None else resume / FOLDER
    result = fit_graphs(
        graphs,
        settings.pop("model"),
        splits=plan.splits,
        groups=plan.groups,
        progress=progress,
        resume=kept,
        **settings,
    )
    verdict = judge(result)
    return MoleculeComparison(plan, result, verdict, _record(plan, result, verdict, time.perf_counter() - start))


def _kind_of(table: Table, task: str) -> str:
    """The task of columns of text: 0 and 1 are answers, all else is numbers."""
    known = table.y[~np.isnan(table.y)]
    return task if task != "auto" else "binary" if np.isin(known, (0, 1)).all() else "regression"


def _record(plan: MoleculePlan, result: GraphFitResult, verdict: Verdict, seconds: float) -> dict[str, Any]:
    names, shape, graphs = list(result.splits), result.val.shape, plan.graphs
    epochs = np.full(shape, np.nan)
    for (mu, name, seed), run in result.runs.items():
        epochs[result.mus.index(mu), names.index(name), seed] = len(run.val)
    unlabeled = len(graphs) - len(plan.table.labeled)
    notes, targets = [verdict.sentence], len(plan.table.targets)
    notes += [f"{result.judging.score} is the mean over {targets} targets."] * (targets > 1)
    notes += [f"{counted(unlabeled, 'molecule')} without a label: predicted, but not trained on."] * (unlabeled > 0)
    settings = {name: value for name, value in plan.settings.items() if name not in ("model", "mu", "preset", "seeds")}
    about = {"molecules": plan.path.name, "smiles_column": plan.smiles_column, "target": ",".join(plan.table.targets)}
    return {
        "format": FORMAT,
        "version": VERSION,
        "propreg": __version__,
        "dataset": plan.name,
        "graph": {
            "graphs": len(graphs),
            "nodes": int(graphs.num_nodes.sum()),
            "edges": int(graphs.num_edges.sum()) // 2,
            "features": int(graphs.x.shape[1]),
            "classes": result.model.outputs,
            "homophily": None,
            "isolated": None,
        },
        "model": plan.model,
        "method": result.method,
        "preset": result.preset,
        "mus": list(result.mus),
        "splits": names,
        "seeds": shape[2],
        "val": numbers(result.val),
        "test": numbers(result.test),
        "epochs": numbers(epochs),
        "mu": result.mu,
        "finished": result.finished,
        "device": device_title(plan.settings["device"]),
        "seconds": round(seconds, 2),
        "settings": {**about, **{name: str(value) for name, value in settings.items()}},
        "classes": list(plan.table.targets),
        "notes": notes,
        "verdict": asdict(verdict),
        "judging": asdict(result.judging),
        "histories": _histories(result),
        "confusion": None,
        **made(),
    }


def _histories(result: GraphFitResult) -> dict[str, list[dict[str, list[Any]]]]:
    shared = [
        (name, seed)
        for seed in range(result.val.shape[2])
        for name in result.splits
        if all((mu, name, seed) in result.runs and not result.runs[mu, name, seed].failed for mu in (0.0, result.mu))
    ][:RUNS]
    return {
        which: [_history(result.runs[(mu, *place)]) for place in shared]
        for which, mu in (("plain", 0.0), ("chosen", result.mu))
    }


def _history(run: MoleculeResult) -> dict[str, list[Any]]:
    return thinned({"loss": np.full(len(run.val), np.nan), "val": run.val, "test": run.test})


def runs_csv(result: GraphFitResult) -> str:
    """One line per training; accuracy and ROC-AUC in per cent."""
    scale = 100 if result.judging.fraction else 1
    lines = ["mu,split,seed,validation,test,best_epoch,epochs"]
    for (mu, name, seed), run in sorted(result.runs.items()):
        best = run.epoch - 1
        scores = "," if run.failed else f"{scale * run.val[best]:.4f},{scale * run.test[best]:.4f}"
        lines.append(f"{mu:g},{name},{seed},{scores},{run.epoch},{len(run.val)}")
    return "\n".join(lines) + "\n"


def predictions_csv(plan: MoleculePlan, result: GraphFitResult) -> str:
    """Each molecule with its targets, as given and as predicted; answers as the probability of a 1."""
    if plan.graphs.kind == "binary classification":
        predicted, what = result.predict_proba(), "probability"
    else:
        predicted, what = result.predict().reshape(len(plan.graphs), -1), "predicted"
    part_of = {int(i): part for part, chosen in result.splits[result.best_run[1]].items() for i in chosen}
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(
        ["line", "smiles", "split", *plan.table.targets, *(f"{what} {name}" for name in plan.table.targets)]
    )
    for i, smiles in enumerate(plan.table.smiles):
        given = ["" if np.isnan(value) else f"{value:g}" for value in plan.table.y[i]]
        found = [f"{value:.6g}" for value in predicted[i]]
        writer.writerow([plan.table.lines[i], smiles, part_of.get(i, ""), *given, *found])
    return out.getvalue()
