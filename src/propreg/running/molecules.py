"""``propreg run --molecules``: a table of SMILES, the plain model beside P-reg, in a folder of results."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from propreg.data.graph_list import GraphList, Parts
from propreg.data.own.graph_list import check_kind
from propreg.devices import find_device
from propreg.fitting.graphs.fit import fit_graphs
from propreg.fitting.graphs.model import GraphModel
from propreg.fitting.graphs.result import GraphFitResult
from propreg.fitting.verdict import Verdict, judge
from propreg.molecules.table import Table, read_table
from propreg.running.graphs import graph_record, scored

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
    resume: Path | None = None
    reasons: tuple[str, ...] = ()

    @property
    def kept(self) -> tuple[Path, ...]:
        """The folders that hold the finished trainings."""
        return () if self.resume is None else (self.resume / FOLDER,)

    def runs(self) -> str:
        """One line per training."""
        return runs_csv(self.result)

    def predictions(self) -> str:
        """Each molecule with its targets, as given and as predicted."""
        split = self.result.splits[self.result.best_run[1]]
        table = self.plan.table
        return predictions_csv(table, self.result.model, self.plan.graphs, table.lines, split)


def plan_molecules(
    path: Path,
    smiles_column: str,
    targets: Sequence[str],
    splits: int | None = None,
    **settings: Any,
) -> MoleculePlan:
    """Read the table and check all of it before anything is trained.

    Args:
        path: A CSV file.
        smiles_column, targets: Its columns.
        splits: The number of random splits by scaffold; None: OGB's scaffold split.
        settings: Of :func:`propreg.fit_graphs`.
    """
    table = read_table(path, smiles_column, targets)
    graphs = check_kind(table.graphs(), "auto")
    groups = None if splits is None else table.scaffolds()
    parts = {"scaffold": table.scaffold_split()} if splits is None else splits
    device = str(find_device(settings.pop("device", "auto")))
    given = {name: value for name, value in settings.items() if value is not None}
    return MoleculePlan(path.stem, path, table, graphs, parts, groups, smiles_column, {**given, "device": device})


def compare_molecules(
    plan: MoleculePlan, *, progress: Literal["lines"] | bool | None = None, resume: Path | None = None
) -> MoleculeComparison:
    """Train, judge and record."""
    settings = dict(plan.settings)
    result = fit_graphs(
        plan.graphs,
        settings.pop("model"),
        splits=plan.splits,
        groups=plan.groups,
        progress=progress,
        resume=None if resume is None else resume / FOLDER,
        **settings,
    )
    verdict = judge(result)
    targets = ", ".join(plan.table.targets)
    source = {"molecules": plan.path.name, "smiles_column": plan.smiles_column, "target": targets}
    return MoleculeComparison(plan, result, verdict, graph_record(result, plan.name, verdict, source=source), resume)


def runs_csv(result: GraphFitResult) -> str:
    """One line per training; accuracy and ROC-AUC in per cent."""
    scale = 100 if result.judging.fraction else 1
    lines = ["mu,split,seed,validation,test,best_epoch,epochs"]
    for (mu, name, seed), run in sorted(result.runs.items()):
        best = run.epoch - 1
        scores = "," if run.failed else f"{scale * run.val[best]:.4f},{scale * run.test[best]:.4f}"
        lines.append(f"{mu:g},{name},{seed},{scores},{run.epoch},{len(run.val)}")
    return "\n".join(lines) + "\n"


def predictions_csv(
    table: Table, model: GraphModel, graphs: GraphList, lines: Sequence[int], parts: Parts | None = None
) -> str:
    """Each molecule with its prediction for each target; of questions that is the probability of a 1.

    Args:
        table: All rows.
        model: The trained model.
        graphs: Those of the rows that can be read.
        lines: The line of each graph; other rows have no prediction.
        parts: If they were trained on: their split, which is shown beside the targets as given.
    """
    values = scored(model, graphs)
    if model.kind == "classification":  # of a saved model of classes: one of them, and its probability
        head, rows = ["predicted", "probability"], [[str(row.argmax()), f"{row.max():.6g}"] for row in values]
    else:
        what = "probability" if model.kind == "binary classification" else "predicted"
        head, rows = [f"{what} {name}" for name in model.tasks], [[f"{v:.6g}" for v in row] for row in values]
    found, nothing = dict(zip(lines, rows, strict=True)), [""] * len(head)
    part_of = {int(i): part for part, chosen in (parts or {}).items() for i in chosen}
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["line", "smiles", *(["split", *table.targets] if parts is not None else []), *head])
    for i, (line, smiles) in enumerate(zip(table.lines, table.smiles, strict=True)):
        given = ["" if np.isnan(value) else f"{value:g}" for value in table.y[i]]
        known = [part_of.get(i, ""), *given] if parts is not None else []
        writer.writerow([line, smiles, *known, *found.get(line, nothing)])
    return out.getvalue()
