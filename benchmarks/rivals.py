"""The engine against what a good user would write: ``torch.func.vmap``, and JAX's ``vmap`` + ``scan`` + ``jit``.

All train a GCN with P-reg in the paper form (one pass, dropout between the layers, Adam, an evaluation of all nodes and
the best validation epoch so far), many runs on ten splits as one program. The rivals may use what a small graph allows:
Â and ÂX as dense matrices; JAX's sparse program gathers edges and stored features and adds up segments. On a GPU the
epoch of torch is a CUDA graph, and JAX multiplies in TF32, its default. Run by ``engine.py --rivals``.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from common import Record, seconds_per_epoch
from propreg.data.graph import Graph, SparseFeatures, Split

RUNS = (1, 4, 16, 64, 256, 1024)
HIDDEN, DROPOUT, RATE, DECAY, STRENGTH = 64, 0.5, 0.01, 5e-4, 0.5
BETAS, TINY = (0.9, 0.999), 1e-8
LONGEST = 2.0  # seconds of an epoch after which a rival gets no larger batch
Array = NDArray[np.float32]


@dataclass(frozen=True)
class Task:
    """The graph as arrays: both propagations as sorted edges, the features, the classes, the masks [splits, N]."""

    x: SparseFeatures
    y: NDArray[np.int64]
    classes: int
    gcn: tuple[NDArray[np.int64], NDArray[np.int64], Array]
    mean: tuple[NDArray[np.int64], NDArray[np.int64], Array]
    linked: Array
    train: Array
    val: Array
    test: Array

    @classmethod
    def of(cls, graph: Graph, splits: dict[str, Split]) -> "Task":
        """The arrays of a graph with sparse features and no edge weights."""
        assert isinstance(graph.x, SparseFeatures)
        source, target = graph.edge_index
        nodes = np.arange(graph.num_nodes)
        loops = np.concatenate([source, nodes]), np.concatenate([target, nodes])
        degree = np.bincount(loops[1], minlength=len(nodes)).astype(np.float32)
        neighbors = np.bincount(target, minlength=len(nodes)).astype(np.float32)
        masks = [np.stack([getattr(split, part) for split in splits.values()]).astype(np.float32) for part in _PARTS]
        return cls(
            graph.x,
            graph.y,
            graph.num_classes,
            _by_target(*loops, 1 / np.sqrt(degree[loops[0]] * degree[loops[1]])),
            _by_target(source, target, 1 / neighbors[target]),
            (neighbors > 0).astype(np.float32),
            *masks,
        )

    def dense(self, which: str) -> Array:
        """A propagation as a matrix."""
        source, target, weight = getattr(self, which)
        matrix = np.zeros((len(self.y), len(self.y)), np.float32)
        np.add.at(matrix, (target, source), weight)
        return matrix

    def weights(self, runs: int) -> dict[str, Array]:
        """Initial weights, Glorot's, a slab for each run."""
        draw, found = np.random.default_rng(0), {}
        for i, (fan_in, fan_out) in enumerate(((self.x.shape[1], HIDDEN), (HIDDEN, self.classes))):
            bound = (6 / (fan_in + fan_out)) ** 0.5
            found[f"w{i}"] = draw.uniform(-bound, bound, (runs, fan_in, fan_out)).astype(np.float32)
            found[f"b{i}"] = np.zeros((runs, fan_out), np.float32)
        return found


_PARTS = ("train", "val", "test")


def _by_target(source: Any, target: Any, weight: Any) -> tuple[Any, Any, Array]:
    order = np.lexsort((source, target))
    return source[order], target[order], weight[order].astype(np.float32)


# ---- torch.func.vmap


def torch_loss(task: dict[str, Tensor], p: dict[str, Tensor], train: Tensor, dropout: float = DROPOUT) -> Tensor:
    """The loss of one run."""
    h = F.dropout((task["ax"] @ p["w0"] + p["b0"]).relu(), dropout)
    z = task["gcn"] @ (h @ p["w1"]) + p["b1"]
    log = z.log_softmax(-1)
    fit = -(log.gather(1, task["y"][:, None])[:, 0] * train).sum() / train.sum()
    apart = -(log.softmax(-1) * (task["mean"] @ z).log_softmax(-1)).sum(-1)
    return fit + STRENGTH * (apart * task["linked"]).sum() / task["linked"].numel()


def torch_task(task: Task, device: str) -> dict[str, Tensor]:
    """The matrices of :func:`torch_loss`."""
    gcn = task.dense("gcn")
    arrays = {"gcn": gcn, "ax": gcn @ task.x.to_dense(), "mean": task.dense("mean"), "linked": task.linked, "y": task.y}
    return {name: torch.from_numpy(array).to(device) for name, array in arrays.items()}


def torch_vmap(task: Task, device: str, runs: int) -> Callable[[], object]:
    """One epoch of a batch of runs; on a GPU as a CUDA graph."""
    at = torch_task(task, device)
    p = {name: torch.from_numpy(w).to(device) for name, w in task.weights(runs).items()}
    moments = [{name: torch.zeros_like(w) for name, w in p.items()} for _ in range(2)]
    number = torch.zeros((), device=device)
    split = np.arange(runs) % len(task.train)
    train, val, test = (torch.from_numpy(getattr(task, part)[split]).to(device) for part in _PARTS)
    best = [torch.full((runs,), -1.0, device=device), torch.zeros(runs, device=device)]

    def loss(each: dict[str, Tensor], mask: Tensor) -> Tensor:
        return torch_loss(at, each, mask)

    def logits(each: dict[str, Tensor]) -> Tensor:
        return at["gcn"] @ ((at["ax"] @ each["w0"] + each["b0"]).relu() @ each["w1"]) + each["b1"]

    slopes = torch.func.vmap(torch.func.grad(loss), randomness="different")
    outputs = torch.func.vmap(logits)

    def epoch() -> None:
        number.add_(1)
        found = slopes(p, train)
        for name, w in p.items():
            g = found[name] + DECAY * w
            m, v = moments[0][name], moments[1][name]
            m.lerp_(g, 1 - BETAS[0])
            v.lerp_(g * g, 1 - BETAS[1])
            step = RATE * (m / (1 - BETAS[0] ** number)) / ((v / (1 - BETAS[1] ** number)).sqrt() + TINY)
            w.sub_(step)
        right = (outputs(p).argmax(-1) == at["y"]).float()
        now, then = (right * val).sum(-1), (right * test).sum(-1)
        better = now > best[0]
        best[0].copy_(torch.where(better, now, best[0]))
        best[1].copy_(torch.where(better, then, best[1]))

    return _captured(epoch) if device == "cuda" else epoch


def _captured(epoch: Callable[[], None]) -> Callable[[], object]:
    """The epoch as a CUDA graph, which has no launches to wait for."""
    side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            epoch()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        epoch()
    return graph.replay


# ---- JAX


def has_jax() -> bool:
    """Whether JAX is installed; it then takes memory as it needs it, beside torch."""
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    try:
        import jax  # noqa: F401
    except ImportError:
        return False
    return True


def jax_loss(task: Task, *, sparse: bool) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The loss of one run, of its weights, a mask and a key (None: no dropout), and its logits."""
    import jax
    import jax.numpy as jnp

    nodes, linked, y = len(task.y), jnp.asarray(task.linked), jnp.asarray(task.y)
    if sparse:
        rows = jnp.asarray(np.repeat(np.arange(nodes), np.diff(task.x.indptr)))
        columns, values = jnp.asarray(task.x.indices), jnp.asarray(task.x.filled())[:, None]
        edges = {which: tuple(jnp.asarray(part) for part in getattr(task, which)) for which in ("gcn", "mean")}

        def spread(which: str, h: Any) -> Any:
            source, target, weight = edges[which]
            return jax.ops.segment_sum(h[source] * weight[:, None], target, nodes, indices_are_sorted=True)

        def first(w: Any) -> Any:
            return spread("gcn", jax.ops.segment_sum(w[columns] * values, rows, nodes, indices_are_sorted=True))

    else:
        matrices = {which: jnp.asarray(task.dense(which)) for which in ("gcn", "mean")}
        ax = jnp.asarray(task.dense("gcn") @ task.x.to_dense())

        def spread(which: str, h: Any) -> Any:
            return matrices[which] @ h

        def first(w: Any) -> Any:
            return ax @ w

    def logits(p: Any, key: Any = None) -> Any:
        h = jax.nn.relu(first(p["w0"]) + p["b0"])
        if key is not None:
            h = h * jax.random.bernoulli(key, 1 - DROPOUT, h.shape) / (1 - DROPOUT)
        return spread("gcn", h @ p["w1"]) + p["b1"]

    def loss(p: Any, train: Any, key: Any) -> Any:
        z = logits(p, key)
        log = jax.nn.log_softmax(z)
        fit = -jnp.sum(jnp.take_along_axis(log, y[:, None], 1)[:, 0] * train) / jnp.sum(train)
        apart = -jnp.sum(jnp.exp(log) * jax.nn.log_softmax(spread("mean", z)), -1)
        return fit + STRENGTH * jnp.sum(apart * linked) / nodes

    return loss, logits


def jax_scan(task: Task, runs: int, epochs: int, *, sparse: bool) -> Callable[[], object]:
    """So many epochs of a batch of runs as one program."""
    import jax
    import jax.numpy as jnp

    loss, logits = jax_loss(task, sparse=sparse)
    y = jnp.asarray(task.y)
    split = np.arange(runs) % len(task.train)
    masks = {part: jnp.asarray(getattr(task, part)[split]) for part in _PARTS}
    tree = jax.tree_util.tree_map

    def one(state: Any, mask: Any) -> Any:
        p, m, v, number, key, val, test = state
        key, mine = jax.random.split(key)
        g = tree(lambda g, w: g + DECAY * w, jax.grad(loss)(p, mask["train"], mine), p)
        number = number + 1
        m = tree(lambda m, g: BETAS[0] * m + (1 - BETAS[0]) * g, m, g)
        v = tree(lambda v, g: BETAS[1] * v + (1 - BETAS[1]) * g * g, v, g)
        scale = 1 - BETAS[0] ** number, 1 - BETAS[1] ** number
        p = tree(lambda w, m, v: w - RATE * (m / scale[0]) / (jnp.sqrt(v / scale[1]) + TINY), p, m, v)
        right = (jnp.argmax(logits(p), -1) == y).astype(jnp.float32)
        now, then = jnp.sum(right * mask["val"]), jnp.sum(right * mask["test"])
        better = now > val
        return p, m, v, number, key, jnp.where(better, now, val), jnp.where(better, then, test)

    batch = jax.vmap(one)
    program = jax.jit(lambda state: jax.lax.scan(lambda s, _: (batch(s, masks), None), state, None, length=epochs)[0])
    p = {name: jnp.asarray(w) for name, w in task.weights(runs).items()}
    nothing = tree(jnp.zeros_like, p)
    keys = jax.random.split(jax.random.PRNGKey(0), runs)
    state = [(p, nothing, nothing, jnp.zeros(runs), keys, -jnp.ones(runs), jnp.zeros(runs))]

    def epochs_more() -> object:
        state[0] = jax.block_until_ready(program(state[0]))
        return state[0]

    return epochs_more


# ---- the comparison


def compare(
    case: str, task: Task, engine: Callable[[int], Callable[[], object]], device: str, quick: bool
) -> Iterator[Record]:
    """Microseconds per run and epoch of each, and how many times the engine's that is, as they are measured.

    Args:
        case: What to call it.
        task: The graph.
        engine: One epoch of the engine with so many runs.
        device: Where; JAX takes its own default, a GPU if it sees one.
        quick: Few epochs and small batches.
    """
    epochs, sizes = (5, RUNS[:3]) if quick else (50 if device == "cuda" else 10, RUNS)

    def by_epoch(make: Callable[[int], Callable[[], object]]) -> Callable[[int], float]:
        return lambda runs: seconds_per_epoch(make(runs), device, epochs)

    def by_program(*, sparse: bool) -> Callable[[int], float]:
        def took(runs: int) -> float:
            program = jax_scan(task, runs, epochs, sparse=sparse)
            program()  # compiles
            start = time.perf_counter()
            program()
            return (time.perf_counter() - start) / epochs

        return took

    rivals = {"torch.func.vmap": by_epoch(lambda runs: torch_vmap(task, device, runs))}
    if has_jax():
        rivals |= {"JAX, dense": by_program(sparse=False), "JAX, sparse": by_program(sparse=True)}
    else:
        print("JAX is not installed: only torch.func.vmap is compared.", file=sys.stderr)
    mine = {runs: seconds_per_epoch(engine(runs), device, epochs) for runs in sizes}
    yield from (Record(case, device, f"engine, per run of {n}", 1e6 * took / n, "µs") for n, took in mine.items())
    for name, measured in rivals.items():
        for runs in sizes:
            try:
                took = measured(runs)
            except Exception as error:  # torch and JAX have exceptions of their own for memory that has run out
                print(f"{name}, {runs} runs: {type(error).__name__}: {str(error)[:200]}", file=sys.stderr)
                break
            finally:
                if device == "cuda":
                    torch.cuda.empty_cache()
            each = 1e6 * took / runs
            yield Record(case, device, f"{name}, per run of {runs}", each, "µs", "engine", took / mine[runs])
            if took > LONGEST:
                break
