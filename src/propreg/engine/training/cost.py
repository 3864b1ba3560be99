"""What a training takes, before it begins: memory, and the time of an epoch, from the numbers of graph and model.

An epoch of a GCN, an MLP, a GAT or APPNP touches so many numbers, see :func:`counts`. Its time is the sum of these
counts, each times a constant of the device. ``benchmarks/cost_model.py`` measures 37 points on a core: the constants
are those with the smallest largest error over them, 9 % in time and 20 % in memory for a GCN and an MLP, 9 % and 6 %
for a GAT, 11 % and 17 % for APPNP. Those of an H200 fit the four graphs that ``benchmarks/engine.py`` trains a GCN on,
and are within 14 % for 1 to 1,024 runs on Cora. All is for full batches.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from propreg.engine.spec import Method, Model, Sizes

Device = Literal["cpu", "h200"]
TIMED: Mapping[Device, tuple[str, ...]] = {"cpu": ("gcn", "mlp", "gat", "appnp"), "h200": ("gcn", "mlp")}
"""The models whose time is known."""
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
        "dropped": 11.0,
        "on steps": 0.009257,
        "step rows": 1.284,
        "scores": 12.43,
        "messages": 0.3201,
        "classes' messages": 3.135,
        "attended rows": 3.098,
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
        seconds: Of an epoch of a run, on a GPU in a batch that fills it; None for models of which it is not known.
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
    propagated = 4 * sizes.nodes * sizes.features if dense and model.name not in ("mlp", "gat", "appnp") else 0
    stored = 0 if dense else sizes.nonzeros
    base = 10_730_000
    graph = base + int(2.49 * propagated + 52.2 * stored + 63.5 * sizes.edges)
    made = 0 if model.input_dropout > 0 else 108.8  # features that are dropped are not propagated beforehand
    building = base + max(int(made * stored), int(52.2 * stored + 2.49 * propagated + 125.2 * sizes.edges))
    run = _bytes_per_run(sizes, model, method, dense=dense)
    seconds = None
    if model.name in TIMED[device]:
        prices = NANOSECONDS[device]
        counted = counts(sizes, model, method, dense=dense)
        seconds = 1e-9 * sum(prices.get(name, 0.0) * number for name, number in counted.items())
    return Cost(graph, run, building, seconds, LAUNCH[device])


def _bytes_per_run(sizes: Sizes, model: Model, method: Method, *, dense: bool) -> int:
    """What a run takes; for a GAT and APPNP as measured on a core, with what the C library has in hand."""
    passes, nodes = method.regularizer.passes(method), sizes.nodes
    dropped = sizes.nonzeros if model.input_dropout > 0 else 0
    if model.name == "gat" and not sizes.kernels:
        rows = 5.004 * sizes.classes + 4.172 * model.width * (1 + passes)
        scores = 13.88 * passes * (model.heads + model.out_heads) + 1.687 * max(model.hidden, sizes.classes)
        return int(4 * (nodes * rows + (sizes.edges + nodes) * scores + dropped * (7.23 if dense else -8.923)))
    if model.name == "appnp" and not sizes.kernels:
        rows = 2.914 * sizes.classes * model.steps * passes + 1.842 * model.width
        return int(4 * (nodes * rows + dropped * (13.53 if dense else 0)))
    # The products of sparse features are propagated, too: they, and two gradients; kernels do without.
    products = 0 if dense or sizes.kernels else int(2.78 * 4 * nodes * model.width)
    return 4 * numbers_per_run(sizes, model, method) + 20 * nodes + products


def is_dense(sizes: Sizes, device: Device) -> bool:
    """Whether the features are multiplied densely, and propagated once instead of in each epoch."""
    return sizes.nonzeros > DENSE[device] * sizes.nodes * sizes.features


def counts(sizes: Sizes, model: Model, method: Method, *, dense: bool) -> dict[str, float]:
    """What an epoch of one run touches.

    With p training passes, each layer but the first is computed 1 + 2 p times: in the evaluation, and in each pass
    forwards and backwards. Without dropout of features all share the first layer, and its only gradient is that of the
    weights: two products. A GAT and APPNP are MLPs otherwise, with attention after each layer, or steps of logits.
    """
    passes = method.regularizer.passes(method)
    term = method.name != "plain"
    times, inner, spreads = 1 + 2 * passes, model.layers - 2, model.name == "gcn"
    shared = times if model.input_dropout > 0 else 2
    first = 0 if dense and shared == 2 else shared
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
        "stored": 0 if dense else shared * sizes.nonzeros,
        "sparse": 0 if dense else shared * sizes.nonzeros * model.width,
        "dense": (shared * sizes.nodes * sizes.features * model.width if dense else 0) + products,
        "parameters": sizes.features * model.width,
        "dropped": passes * sizes.nonzeros if model.input_dropout > 0 else 0,
    } | _after_layers(sizes, model, times)


def _after_layers(sizes: Sizes, model: Model, times: int) -> dict[str, float]:
    """Steps of APPNP, each forwards and backwards as the layers are; attention of a GAT, to each node itself, too."""
    if model.name == "appnp":
        steps, edges, nodes = times * model.steps, sizes.edges, sizes.nodes
        return {
            "on steps": steps * edges * sizes.classes,
            "step rows": steps * nodes * sizes.classes,
        }
    if model.name == "gat":
        edges = times * (sizes.edges + sizes.nodes)
        return {
            "scores": edges * (model.heads + model.out_heads),
            "messages": edges * model.width,
            "classes' messages": edges * sizes.classes * model.out_heads,
            "attended rows": times * sizes.nodes * model.width,
        }
    return {}


def numbers_per_run(sizes: Sizes, model: Model, method: Method, *, keep_weights: bool = False) -> int:
    """The most numbers that an epoch of one more run has in memory: weights, gradients, two moments, activations."""
    architecture, regularizer = model.architecture, method.regularizer
    parameters = (5 if keep_weights else 4) * architecture.parameters(model, sizes)
    activations = architecture.activations(model, sizes, regularizer.passes(method))
    return parameters + activations + regularizer.memory(method, sizes)
