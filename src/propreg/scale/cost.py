"""The size of a mini-batch of ``fit``, and the time of an epoch of them on a core, before it begins.

``benchmarks/cost_model.py`` measures a GCN on 18 graphs, from 50,000 to 200,000 nodes, on a busy machine. The constants
are those with the smallest largest error over these points: 26 % of an epoch. It is a rough estimate, and of a point
that is left out of the fit it may be half or 1.6 times what is measured.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from propreg.engine.spec import Method, Model, Sizes
from propreg.engine.training.cost import is_dense
from propreg.scale.batches import most_within
from propreg.scale.trainer import COST

NANOSECONDS = {
    "nodes": 405.9,
    "features": 0.7729,
    "stored": 59.83,
    "rows": 0.0,
    "dense": 0.0107,
    "sparse": 0.07881,
    "logits": 0.1566,
    "evaluated rows": 0.0,
    "evaluated edges": 74.1,
}
"""What each count takes, on one core of an AMD EPYC; the first three of a step are shared by all strengths."""


@dataclass(frozen=True)
class BatchCost:
    """An estimate.

    Args:
        nodes, edges: Of a batch.
        steps: Of an epoch.
        step, evaluation: Their seconds for one run; None for models of which they are not known.
    """

    nodes: float
    edges: float
    steps: int
    step: float | None
    evaluation: float | None

    def epoch(self) -> float | None:
        """The seconds of an epoch of one run."""
        if self.step is None or self.evaluation is None:
            return None
        return self.steps * self.step + self.evaluation


def estimate_batches(sizes: Sizes, model: Model, method: Method, size: int, train: int, kept: float) -> BatchCost:
    """What mini-batches take.

    Args:
        sizes: The graph's.
        model, method: What is trained.
        size: The training nodes of a batch.
        train: All training nodes.
        kept: The neighbors that a node keeps on average, of the ten that are drawn.

    Example:
        >>> papers = Sizes(111_059_956, 2 * 1_615_685_872, features=128, classes=172, nonzeros=111_059_956 * 128)
        >>> one = estimate_batches(papers, Model(), Method(), 1024, train=1_207_179, kept=10)
        >>> f"{one.nodes:,.0f} nodes, {one.edges:,.0f} edges, {one.steps:,} steps"
        '113,600 nodes, 112,634 edges, 1,179 steps'
    """
    layered = model.architecture.layered
    hops = [kept] * (layered(model).hops if layered else model.layers)

    def reach(own: int) -> tuple[list[float], float]:
        return _reached(sizes, size + own * (1 + sizes.edges / max(1, sizes.nodes)), hops)

    def work(own: int) -> tuple[float, float]:
        reached, edges = reach(own)
        return reached[-1], edges

    own = most_within(COST, work, sizes.nodes) if method.regularizer.masked else 0
    reached, edges = reach(own)
    nodes, between = reached[-1], reached[1:-1]
    steps = -(-train // size)
    if model.name != "gcn":
        return BatchCost(nodes, edges, steps, None, None)
    dense, width = is_dense(sizes, "cpu"), model.width
    stored = sizes.nonzeros * nodes / sizes.nodes
    step = {
        "nodes": nodes,
        "features": nodes * sizes.features if dense else 0,
        "stored": 0 if dense else stored,
        "rows": (nodes + sum(between)) * width,  # each layer computes what the next one reads
        "dense": nodes * sizes.features * width if dense else 0,
        "sparse": 0 if dense else stored * width,
        "logits": reached[1] * width * sizes.classes + sum(between[1:]) * width * width,
    }
    evaluation = {
        "evaluated rows": sizes.nodes * width * model.layers,
        "evaluated edges": sizes.edges * model.layers,
    }
    return BatchCost(nodes, edges, steps, _seconds(step), _seconds(evaluation))


def _reached(sizes: Sizes, roots: float, hops: Sequence[float]) -> tuple[list[float], float]:
    """The nodes of a batch within each number of hops, and its edges, which lead to any node equally likely."""
    count = sizes.nodes
    frontier = count * -math.expm1(-roots / count)
    reached, edges = [frontier], 0.0
    for kept in hops:
        drawn = frontier * kept
        frontier = (count - reached[-1]) * -math.expm1(-drawn / count)
        reached.append(reached[-1] + frontier)
        edges += drawn
    return reached, edges


def _seconds(counted: Mapping[str, float]) -> float:
    return 1e-9 * sum(NANOSECONDS[name] * number for name, number in counted.items())
