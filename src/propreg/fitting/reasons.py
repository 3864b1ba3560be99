"""Why the regulariser may not help on a graph, in plain words."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from propreg.data.graph import Graph, Split
from propreg.data.stats import homophily, isolated
from propreg.fitting.methods import METHODS
from propreg.fitting.verdict import Verdict
from propreg.statistics import SURE

if TYPE_CHECKING:
    from propreg.fitting.result import FitResult

LOW_HOMOPHILY = 0.5  # rules of thumb, not laws: each is said with the number it was compared with
FEW_VALIDATION = 100
CEILING = 0.97
MANY_ISOLATED = 0.2


@dataclass(frozen=True)
class Facts:
    """The numbers that the remarks are about."""

    homophily: float | None
    by_chance: float
    isolated: int
    nodes: int
    validation: int
    edges: int


def facts_of(graph: Graph, splits: Mapping[str, Split]) -> Facts:
    """Count what the remarks need."""
    share = homophily(graph.edge_index, graph.y)
    known = graph.y[graph.y >= 0]
    by_class = np.bincount(known, minlength=1) / max(len(known), 1)
    return Facts(
        homophily=None if np.isnan(share) else share,
        by_chance=float((by_class**2).sum()),
        isolated=isolated(graph.edge_index, graph.num_nodes),
        nodes=graph.num_nodes,
        validation=min(int(split.val.sum()) for split in splits.values()),
        edges=linked_pairs(graph),
    )


def linked_pairs(graph: Graph) -> int:
    """How many pairs of different nodes are linked, each counted once.

    Example:
        >>> edges = np.array([[0, 1, 1], [1, 0, 1]])
        >>> linked_pairs(Graph("pair", edges, np.eye(2, dtype=np.float32), np.array([0, 1])))
        1
    """
    low, high = np.sort(graph.edge_index, axis=0)
    return len(np.unique((low * graph.num_nodes + high)[low != high]))


def reasons(facts: Facts, result: "FitResult", verdict: Verdict, option: str = "--{}") -> list[str]:
    """Why it may be that the regulariser does not help here; empty where it does. ``option``: how one asks for more."""
    if verdict.kind == "helps":
        return []
    title, said = METHODS[result.method].title, []
    if result.method in ("preg", "laplacian"):
        said += _about_edges(facts, title)
    if facts.validation < FEW_VALIDATION:
        said.append(
            f"mu was picked on {facts.validation} validation nodes a split, fewer than {FEW_VALIDATION}: one node more "
            f"or less is {100 / facts.validation:.1f} points of accuracy, so that the pick is partly chance."
        )
    if verdict.pair is not None and 2 / 2 ** (count := verdict.pair.units) > SURE:
        what = "splits" if len(result.splits) > 1 else "seeds"
        more = f"Ask for more with {option.format(what)}."
        if not result.finished:  # what it was asked for may be enough, and seeds of one split may be all there is
            what, more = "finished pairs of runs", "Let it train to its end for more."
        said.append(
            f"{count} {what} are too few to be sure: p cannot go below {2 / 2**count:.2g}. {more}"
            if count > 1
            else f"One training of each kind says little. {more}"
        )
    tested = result.test[0][~np.isnan(result.test[0])]
    if tested.size and (plain := float(tested.mean())) >= CEILING:
        said.append(
            f"The plain model is right on {100 * plain:.1f} % of the test nodes already: there is little to gain."
        )
    return said


def _about_edges(facts: Facts, title: str) -> list[str]:
    said = []
    if facts.homophily is None:
        said.append(f"No edge links two nodes of known class, so that nothing says whether {title} can help.")
    elif facts.homophily < LOW_HOMOPHILY:
        said.append(
            f"{100 * facts.homophily:.0f} % of the edges link nodes of the same class "
            f"({100 * facts.by_chance:.0f} % would be chance). "
            f"{title} pulls a node towards its neighbours, which helps where most of them are of its class: as a rule "
            f"of thumb, above {100 * LOW_HOMOPHILY:.0f} %."
        )
    if facts.isolated > MANY_ISOLATED * facts.nodes:
        said.append(f"{facts.isolated:,} of {facts.nodes:,} nodes have no neighbour: {title} says nothing about these.")
    return said
