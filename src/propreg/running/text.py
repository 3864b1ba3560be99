"""The terminal output of a run, at most 80 columns wide."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from propreg.console import WIDTH, columns, counted, printable, width, wrapped
from propreg.data.graph import Graph
from propreg.devices import device_title
from propreg.engine.models import MODELS
from propreg.engine.regularizers import REGULARIZERS
from propreg.fitting.verdict import Judging, points, signed
from propreg.names import model_title
from propreg.running.compare import Comparison
from propreg.running.folder import MODEL, PREDICTIONS
from propreg.running.plan import Plan
from propreg.statistics import Summary

if TYPE_CHECKING:
    from propreg.running.molecules import MoleculeComparison, MoleculePlan


def before(plan: Plan, models: Sequence[str] = ()) -> Iterator[str]:
    """The graph, and what is going to be trained on it; ``models`` names all, if there are several."""
    from propreg.data.describe import homophily, linked_pairs

    graph = plan.source.graph
    share = homophily(graph.edge_index, graph.y)
    same = "" if math.isnan(share) else f"; {100 * share:.0f} % of the edges link nodes of the same class"
    edges = linked_pairs(graph.edge_index, graph.num_nodes)
    yield from wrapped(
        f"{printable(plan.source.name)}: {counted(graph.num_nodes, 'node')}, "
        f"{counted(edges, 'edge')}, {counted(graph.num_features, 'feature')}, "
        f"{counted(graph.num_classes, 'class', 'classes')}{same}."
    )
    splits, strengths, title = len(plan.source.splits), len(plan.mus) - 1, REGULARIZERS[plan.method].title
    what = counted(plan.runs, MODELS[plan.model].title)
    if len(models) > 1:
        what += f" and as many of {' and '.join(MODELS[name].title for name in models[1:])}"
    yield from wrapped(
        f"Training {what} on {device_title(plan.device)}: plain and "
        f"with {title} at {counted(strengths, 'strength')}, on {counted(splits, 'split')}, "
        f"{counted(plan.seeds, 'seed')} each."
    )


def table(comparison: "Comparison | MoleculeComparison") -> Iterator[str]:
    """Plain against regularized: accuracy, interval, paired difference."""
    plan, result, pair = comparison.plan, comparison.result, comparison.verdict.pair
    if pair is None:
        return
    judging = result.judging
    apart, what = pair.difference, "split" if len(result.splits) > 1 else "seed"
    write, unit = (points, " points") if judging.fraction else (signed, "")
    interval = f"{write(apart.low)} to {write(apart.high)}" if pair.units > 1 else "–"
    yield from columns(
        [
            ("", judging.what, "95 % interval", "runs"),
            (_title(plan), *_cells(pair.plain, judging)),
            (_title(plan, pair.mu, nested=judging.nested), *_cells(pair.other, judging)),
            ("difference" if judging.sign > 0 else "gain", f"{write(apart.mean)}{unit}", interval, ""),
        ]
    )
    chosen = f"Chosen on validation: mu = {result.mu:g}{'' if result.mu else ', the plain model'}."
    if pair.units == 1:
        yield from wrapped(f"One pair of runs gives neither an interval nor a test: use more with --{what}s. {chosen}")
        return
    yield from wrapped(
        f"Paired on the same {what}s: p = {apart.p_value:.2g} (t test on {counted(pair.units, what)}), better in "
        f"{100 * apart.won:.0f} % of the paired runs. {chosen}"
    )


def remarks(comparison: "Comparison | MoleculeComparison") -> Iterator[str]:
    """The verdict, then possible reasons, then notes."""
    first, *others = comparison.record["notes"]
    yield from wrapped(printable(first))
    for note in others:
        lead = "  Possible reason: " if note in comparison.reasons else "  Note: "
        yield from wrapped(lead + printable(note), "    ")


def before_molecules(plan: "MoleculePlan") -> Iterator[str]:
    """The molecules, and what is going to be trained on them."""
    graphs, answers = plan.graphs, plan.graphs.kind == "binary classification"
    yield from wrapped(
        f"{printable(plan.name)}: {counted(len(graphs), 'molecule')}, {counted(int(graphs.num_nodes.sum()), 'atom')}, "
        f"{counted(len(plan.table.targets), 'target')} {'of 0 and 1' if answers else 'to predict'}."
    )
    yield from wrapped(
        f"Training {model_title(plan.model)} on {device_title(plan.settings['device'])}, plain and with P-reg, on "
        f"{'the scaffold split' if plan.groups is None else counted(plan.splits, 'random split') + ' by scaffold'}."
    )


def predicted(graph: Graph) -> Iterator[str]:
    """How many nodes without a label have a prediction now."""
    if count := int((graph.y < 0).sum()):
        yield from wrapped(
            f"{counted(count, 'node')} without a label {'was' if count == 1 else 'were'} predicted, with all others."
        )


def written(folder: Path, left_alone: str = "", of: str = "node", load: str = "load_model") -> Iterator[str]:
    """The files of the run, whose predictions are of nodes or molecules."""
    about = {
        "index.html": "the page: open it in a browser",
        "figures": "its figures, as SVG",
        "runs.csv": "every training",
        PREDICTIONS: "each node's predicted class and its probability" if of == "node" else f"each {of}'s predictions",
        MODEL: f'the trained model: propreg.{load}("{(folder / MODEL).as_posix()}")',
        "run.json": "all numbers, for scripts",
    }
    yield from wrapped(f"{left_alone}Written to {folder}:")
    for name, what in about.items():
        if (folder / name).exists():
            yield from wrapped(f"  {name:<17} {what}", " " * (20 if width() == WIDTH else 4))


def kept(folder: Path, trainings: int, *, resumed: bool) -> Iterator[str]:
    """That an earlier run of this folder did not end; nothing if it is being resumed, or none was."""
    if trainings and not resumed:
        yield from wrapped(
            f"{folder} has {counted(trainings, 'finished training')} of an unfinished run: --resume, with the "
            "options of that run, continues it."
        )


def to_resume() -> Iterator[str]:
    """How to go on after an interruption."""
    yield from wrapped("The finished trainings are kept: the same command with --resume continues from there.")


def _title(plan: "Plan | MoleculePlan", mu: float = 0.0, *, nested: bool = False) -> str:
    """The name of a row, for example ``GCN + P-reg, mu = 0.5``."""
    plain = model_title(plan.model)
    strength = "mu per fold" if nested else f"mu = {mu:g}"
    return f"{plain} + {REGULARIZERS[plan.method].title}, {strength}" if mu else f"{plain}, plain"


def _cells(summary: Summary, judging: Judging) -> tuple[str, str, str]:
    scale, digits, unit = (100, 2, " %") if judging.fraction else (1, 4, "")
    interval = f"{scale * summary.low:.{digits}f} to {scale * summary.high:.{digits}f}" if summary.runs > 1 else "–"
    return f"{scale * summary.mean:.{digits}f}{unit}", interval, str(summary.runs)
