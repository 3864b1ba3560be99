"""Why the regularizer may not help on a graph, and what else to know about the numbers of a fit."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from propreg.data.describe import homophily, isolated, linked_pairs
from propreg.data.graph import Graph, Split
from propreg.engine.regularizers import REGULARIZERS
from propreg.engine.spec import Result
from propreg.fitting.picking import TITLES
from propreg.fitting.shift import Shift, shift_of
from propreg.fitting.verdict import Verdict
from propreg.statistics import t_quantile

if TYPE_CHECKING:
    from propreg.fitting.result import FitResult

# Rules of thumb, not laws: each is stated with the number that is compared with it.
LOW_HOMOPHILY = 0.5
FEW_VALIDATION = 100
CEILING = 0.97
MANY_ISOLATED = 0.2
MANY_IMPROVING = 0.25
FEW_UNITS = 5


@dataclass(frozen=True)
class Facts:
    """The properties of a graph that may explain a result."""

    homophily: float | None
    by_chance: float
    isolated: int
    nodes: int
    validation: int
    edges: int
    shift: Shift | None = None


def facts_of(graph: Graph, splits: Mapping[str, Split]) -> Facts:
    """Compute them."""
    share = homophily(graph.edge_index, graph.y)
    known = graph.y[graph.y >= 0]
    by_class = np.bincount(known, minlength=1) / max(len(known), 1)
    return Facts(
        homophily=None if np.isnan(share) else share,
        by_chance=float((by_class**2).sum()),
        isolated=isolated(graph.edge_index, graph.num_nodes),
        nodes=graph.num_nodes,
        validation=min(int(split.val.sum()) for split in splits.values()),
        edges=linked_pairs(graph.edge_index, graph.num_nodes),
        shift=shift_of(graph.y, list(splits.values())),
    )


def reasons(facts: Facts, result: "FitResult", verdict: Verdict, option: str = "--{}") -> list[str]:
    """Why the regularizer may not help here; empty if it does. ``option``: how a setting is written."""
    if verdict.kind == "helps":
        return []
    regularizer, found = REGULARIZERS[result.method], []
    if regularizer.uses_edges:
        found += _about_edges(facts, regularizer.title)
    if facts.validation < FEW_VALIDATION and result.judging.score == "accuracy":
        found.append(
            f"mu was picked on {facts.validation} validation nodes per split, fewer than {FEW_VALIDATION}: one node "
            f"more or less is {100 / facts.validation:.1f} points of accuracy, so the choice is partly chance."
        )
    if verdict.pair is not None and (count := verdict.pair.units) < FEW_UNITS:
        what = "splits" if len(result.splits) > 1 else "seeds"
        more = f"Use more with {option.format(what)}."
        if not result.finished:  # the whole fit may have enough, and more seeds than one split's may not exist
            what, more = "finished pairs of runs", "Let it train to the end for more."
        found.append(
            f"{count} {what} are few: a difference is significant from {t_quantile(count - 1):.1f} standard errors on, "
            f"with {FEW_UNITS} of them from {t_quantile(FEW_UNITS - 1):.1f} on. {more}"
            if count > 1
            else f"One training of each kind shows little. {more}"
        )
    tested = result.test[0][~np.isnan(result.test[0])]
    judging = result.judging
    if judging.what == "test accuracy" and tested.size and (plain := float(tested.mean())) >= CEILING:
        found.append(
            f"The plain model is already right on {100 * plain:.1f} % of the test nodes: there is little to gain."
        )
    return found


def _about_edges(facts: Facts, title: str) -> list[str]:
    found = []
    if facts.homophily is None:
        found.append(f"No edge links two nodes of known class, so nothing shows whether {title} can help.")
    elif facts.homophily < LOW_HOMOPHILY:
        found.append(
            f"{100 * facts.homophily:.0f} % of the edges link nodes of the same class "
            f"({100 * facts.by_chance:.0f} % would be chance). "
            f"{title} pulls a node toward its neighbors, which helps if most of them are of its class: as a rule "
            f"of thumb, above {100 * LOW_HOMOPHILY:.0f} %."
        )
    if facts.isolated > MANY_ISOLATED * facts.nodes:
        found.append(f"{facts.isolated:,} of {facts.nodes:,} nodes have no neighbor: {title} does not affect them.")
    return found


def caveats(result: "FitResult", max_epochs: int, planned: int, *, training: bool = False) -> list[str]:
    """What to know about the numbers, whether it helps or not; ``training``: the other trainings go on."""
    found = []
    if not result.finished and not training:
        found.append(
            f"The run was interrupted: {len(result.runs)} of {planned} trainings are finished, and strengths are "
            "compared on the splits and seeds that all of them have."
        )
    if errors := result.errors():
        found.append(f"{errors}: they do not count.")
    if failed := sum(run.failed and not run.error for run in result.runs):
        found.append(f"In {failed} of {len(result.runs)} trainings the loss became NaN or infinite: they do not count.")
    late = sum(_still_improving(run, max_epochs) for run in result.runs if not run.failed)
    if late > MANY_IMPROVING * len(result.runs):
        found.append(
            f"{late} of {len(result.runs)} trainings were still improving when they reached the limit of {max_epochs} "
            "epochs: more epochs may change the numbers (--max-epochs)."
        )
    if select := result.settings.get("select"):
        found.append(f"mu was picked by {TITLES[select]} on validation.")
    found += about_shift(result, "--select reweighted")
    bounded = REGULARIZERS[result.method].bounded
    if len(result.mus) > 2 and result.mu == result.mus[-1] and not (bounded and result.mu >= 0.9):
        more = ",".join(f"{factor * result.mu:g}" for factor in (1, 1.5, 2, 3))
        found.append(f"The largest strength tried, {result.mu:g}, was chosen: larger ones may do better (--mu {more}).")
    return found


def about_shift(result: "FitResult", option: str) -> list[str]:
    """A sentence where validation and the other labeled nodes differ in class frequencies; ``option``: what to try."""
    shift = None if result.facts is None else result.facts.shift
    if shift is None:
        return []
    names = () if result.graph is None else result.graph.class_names
    advice = "" if result.settings.get("select") == "reweighted" else f" {option} picks it for estimated frequencies."
    return [shift.sentence(names) + advice]


def _still_improving(run: Result, max_epochs: int) -> bool:
    """Whether the best validation accuracy came in the last tenth before the limit."""
    if "val" not in run.history:
        return False
    last = run.history["val"][run.before :]
    return run.epochs - run.before >= max_epochs and int(np.argmax(last)) + 1 > 0.9 * max_epochs
