"""What a training takes, before it begins: memory, and the time of an epoch, from the numbers of graph and model.

An epoch of a stack of layers touches so many numbers, see :func:`counts`. Its time is the sum of these counts, each
times a constant of the device. ``benchmarks/cost_model.py`` measures 20 points on a core: the constants are those with
the smallest largest error over them, 9 % in time and 20 % in memory. Those of an H200 fit the four graphs that
``benchmarks/engine.py`` trains a GCN on, and are within 14 % for 1 to 1,024 runs on Cora. All is for full batches.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from propreg.engine.spec import Method, Model, Sizes

Device = Literal["cpu", "h200"]
STACKS = ("gcn", "mlp")
FRESH = 33_000_000
"""Bytes of a hidden layer beyond which the C library gives its pages back after each use, and takes new ones."""
DENSE: Mapping[Device, float] = {"cpu": 0.2, "h200": 0.05}
"""The share of non-zeros from which features are multiplied densely."""
CACHE = 50_000_000
"""Bytes that the cache of an H200 holds: the rows that edges gather are read from memory where they take more."""
LAUNCH: Mapping[Device, float] = {"cpu": 0.0, "h200": 280e-6}
"""Seconds of an epoch in which nothing is computed, however many runs there are."""
NANOSECONDS: Mapping[Device, Mapping[str, float]] = {
    "cpu": {
        "rows": 1.401,
        "fresh rows": 1.427,
        "logits": 3.696,
        "edges": 1.856,
        "stored": 0.873,
        "sparse": 0.0207,
        "dense": 0.021,
    },
    "h200": {
        "rows": 0.002475,
        "logits": 0.003093,
        "parameters": 0.009898,
        "on edges": 0.0001049,
        "far edges": 0.00114,  # not measured: a number read at 3.2 TB/s takes 0.00124, of which 0.0001 is counted
        "sparse": 0.0003703,
        "dense": 0.00001374,
    },
}
"""What each of the counts takes, on one core of an AMD EPYC and on an H200."""


@dataclass(frozen=True)
class Cost:
    """An estimate.

    Args:
        graph: Bytes of the graph's tables, which all runs share, and of what is made on the way to them, beyond the
            arrays of the graph itself.
        run: Bytes that each run of a batch adds.
        building: Bytes of the graph's tables while they are made, before a run needs any.
        seconds: Of an epoch of a run, on a GPU in a batch that fills it; None for models that are no stack of layers.
        launch: Seconds of an epoch beside them, however many runs are trained at once.
    """

    graph: int
    run: int
    building: int
    seconds: float | None
    launch: float = 0.0

    def memory(self, runs: int = 1) -> int:
        """The peak in bytes with so many runs at once."""
        return max(self.building, self.graph + runs * self.run)

    def epoch(self, runs: int = 1) -> float | None:
        """The seconds of an epoch of so many runs, one after the other on a core, together on a GPU."""
        return None if self.seconds is None else self.launch + runs * self.seconds


def estimate(sizes: Sizes, model: Model, method: Method, device: Device = "cpu") -> Cost:
    """What full-batch training takes.

    Args:
        sizes: The graph's; ``nonzeros`` counts the features that are not 0.
        model, method: What is trained.
        device: Whose constants to take: ``"cpu"``, one core, or ``"h200"``.

    Example:
        >>> cora = Sizes(nodes=2708, edges=10556, features=1433, classes=7, nonzeros=49216)
        >>> one = estimate(cora, Model("gcn"), Method.preset("paper"))
        >>> f"{1e3 * one.seconds:.1f} ms, {one.memory(4) / 1e6:.0f} MB"
        '1.6 ms, 39 MB'
    """
    dense = is_dense(sizes, device)
    model_stack = model.name in STACKS
    propagated = 4 * sizes.nodes * sizes.features if dense and model.name != "mlp" else 0
    stored = 0 if dense else sizes.nonzeros
    # The products of sparse features are propagated, too: they, and two gradients; kernels do without.
    products = 0 if dense or sizes.kernels else int(2.78 * 4 * sizes.nodes * model.width)
    base = 10_730_000
    graph = base + int(2.49 * propagated + 52.2 * stored + 63.5 * sizes.edges)
    building = base + max(int(108.8 * stored), int(52.2 * stored + 2.49 * propagated + 125.2 * sizes.edges))
    run = 4 * numbers_per_run(sizes, model, method) + 20 * sizes.nodes + products
    seconds = None
    if model_stack:
        prices = NANOSECONDS[device]
        counted = counts(sizes, model, method, dense=dense)
        seconds = 1e-9 * sum(prices.get(name, 0.0) * number for name, number in counted.items())
    return Cost(graph, run, building, seconds, LAUNCH[device])


def is_dense(sizes: Sizes, device: Device) -> bool:
    """Whether the features are multiplied densely, and propagated once instead of in each epoch."""
    return sizes.nonzeros > DENSE[device] * sizes.nodes * sizes.features


def counts(sizes: Sizes, model: Model, method: Method, *, dense: bool) -> dict[str, float]:
    """What an epoch of one run of a stack of layers touches.

    With p training passes, each layer but the first is computed 1 + 2 p times: in the evaluation, and in each pass
    forwards and backwards. The first layer comes before dropout, so that all share it, and its only gradient is that of
    the weights: two products.
    """
    passes = method.regularizer.passes(method)
    term = method.name != "plain"
    times, inner, spreads = 1 + 2 * passes, model.layers - 2, model.name != "mlp"
    first = 0 if dense else 2
    rows = sizes.nodes * model.width * times * (model.layers - 1)
    products = sizes.nodes * model.width * times * (inner * model.width + sizes.classes)
    visits = ((first + inner * times + times) if spreads else 0) + 2 * term
    columns = ((first + inner * times) * model.width + times * sizes.classes) if spreads else 0
    on_edges = sizes.edges * (columns + 2 * term * sizes.classes)
    gathered = 4 * sizes.nodes * (sizes.classes if dense and not inner else model.width)
    return {
        "rows": rows,
        "fresh rows": rows if 4 * sizes.nodes * model.width > FRESH else 0,
        "logits": sizes.nodes * sizes.classes * (times + 3 * term),
        "edges": sizes.edges * visits,
        "on edges": on_edges,
        "far edges": on_edges if gathered > CACHE else 0,
        "stored": 0 if dense else 2 * sizes.nonzeros,
        "sparse": 0 if dense else 2 * sizes.nonzeros * model.width,
        "dense": (2 * sizes.nodes * sizes.features * model.width if dense else 0) + products,
        "parameters": sizes.features * model.width,
    }


def numbers_per_run(sizes: Sizes, model: Model, method: Method, *, keep_weights: bool = False) -> int:
    """The most numbers that an epoch of one more run has in memory: weights, gradients, two moments, activations."""
    architecture, regularizer = model.architecture, method.regularizer
    parameters = (5 if keep_weights else 4) * architecture.parameters(model, sizes)
    activations = architecture.activations(model, sizes, regularizer.passes(method))
    return parameters + activations + regularizer.memory(method, sizes)
