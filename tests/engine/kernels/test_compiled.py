"""Every kernel of an epoch compiles for real GPUs, though none is here: the interpreter takes what a compiler refuses.

Epochs run on the CPU with each launch replaced by a compilation for the machine code of an A100 and of an H200; what
the kernels would have computed is left as it lies in memory.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from propreg.data.features import from_dense
from propreg.data.graph import Graph, Split
from propreg.engine import Method, Model, Problem, Protocol, Replica, kernels
from propreg.engine.training.epoch import Epoch
from propreg.engine.training.phases import one_phase

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not kernels.installed(), reason="Triton is not installed: there are no kernels to compile"),
    pytest.mark.skipif(kernels.interpreted(), reason="the interpreter compiles nothing"),
]

TYPES = {
    torch.float32: "*fp32",
    torch.float64: "*fp64",
    torch.float16: "*fp16",
    torch.bfloat16: "*bf16",
    torch.int16: "*i16",
    torch.int32: "*i32",
    torch.int64: "*i64",
    torch.uint8: "*u8",
}
NODES, WORDS, FREQUENT = 1100, 800, 140
Compiled = dict[str, int]


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Compiled:
    """How many variants of each kernel were compiled, for a GPU of this capability."""
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
    from triton.compiler import compile as build
    from triton.runtime.jit import JITFunction

    found: Compiled = {}
    seen: set[str] = set()

    def run(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> None:  # noqa: ARG001
        named = dict(zip(self.arg_names, args, strict=False)) | {k: v for k, v in kwargs.items() if k in self.arg_names}
        options = {k: v for k, v in kwargs.items() if k not in self.arg_names}
        constant = [p.is_constexpr for p in self.params]
        types = {
            name: "constexpr" if fixed else _type_of(named[name])
            for name, fixed in zip(self.arg_names, constant, strict=True)
        }
        fixed = {(i,): named[n] for i, n in enumerate(self.arg_names) if constant[i]}
        aligned = [isinstance(v := named[n], Tensor) and v.data_ptr() % 16 == 0 for n in self.arg_names]
        attributes = {(i,): [["tt.divisibility", 16]] for i, yes in enumerate(aligned) if yes}
        variant = str((self.__name__, types, fixed, attributes, options))
        if variant not in seen:
            seen.add(variant)
            source = ASTSource(self, types, fixed, attributes)
            made = build(source, target=GPUTarget("cuda", request.param, 32), options=options)
            assert len(made.asm["cubin"]) > 0
            found[self.__name__] = found.get(self.__name__, 0) + 1

    monkeypatch.setattr(JITFunction, "run", run)
    monkeypatch.setattr(kernels, "_reachable", lambda _: True)
    return found


def _type_of(value: object) -> str:
    return TYPES[value.dtype] if isinstance(value, Tensor) else {int: "i32", float: "fp32"}[type(value)]


def words(nodes: int = 300, rare: float = 0.001, *, even: bool = True, classes: int = 5) -> Graph:
    """A ring with chords and a hub; some features are not 0, more of the frequent ones. ``even``: they are all 1."""
    rng = np.random.default_rng(5)
    one = np.arange(nodes)
    other = np.concatenate([(one + 1) % nodes, (one * 7 + 3) % nodes, np.zeros(nodes // 2, np.int64)])
    one = np.concatenate([one, one, one[: nodes // 2]])
    there = rng.random((nodes, WORDS)) < np.where(np.arange(WORDS) < FREQUENT, 0.06, rare)
    x = there * (1.0 if even else rng.random((nodes, WORDS)))
    edges = np.unique(np.stack([np.append(one, other), np.append(other, one)]), axis=1)
    return Graph("words", edges, from_dense(x.astype(np.float32)), np.arange(nodes) % classes, None)


def epoch(graph: Graph, model: Model, method: Method, dtype: torch.dtype = torch.float32) -> None:
    """An epoch of three replicas, unrecorded: the second, since weights before the first step are not judged."""
    part = np.arange(graph.num_nodes) % 3
    problem = Problem(graph, {"a": Split(part == 0, part == 1, part == 2)}, torch.device("cpu"), dtype)
    replicas = [Replica(seed=i, split="a", strength=0.3) for i in range(3)]
    (phase,) = one_phase(problem, replicas, model=model, method=method, protocol=Protocol())
    run = Epoch(phase, problem.y)
    run(2)


GAT = Model("gat", hidden=16, input_dropout=0.6, attention_dropout=0.6)
CASES: dict[str, Callable[[], None]] = {
    "gcn": lambda: epoch(words(NODES), Model("gcn"), Method.preset("reference")),
    "narrow gcn, uneven": lambda: epoch(words(even=False), Model("gcn", hidden=16), Method.preset("paper")),
    "three layers": lambda: epoch(words(), Model("gcn", layers=3, input_dropout=0.3), Method.preset("paper")),
    "ten classes": lambda: epoch(words(classes=10), Model("gcn"), Method.preset("reference")),
    "float64": lambda: epoch(words(), Model("gcn"), Method.preset("reference"), torch.float64),
    "kl": lambda: epoch(words(), Model("gcn"), Method("preg", phi="kl", second_pass=True)),
    "laplacian": lambda: epoch(words(), Model("gcn"), Method("laplacian")),
    "dense mlp": lambda: epoch(words(rare=0.5, even=False), Model("mlp"), Method("plain")),
    "appnp": lambda: epoch(words(), Model("appnp"), Method.preset("paper")),
    "gat": lambda: epoch(words(NODES), GAT, Method.preset("reference")),
    "dense gat": lambda: epoch(words(rare=0.5, even=False), GAT, Method("plain")),
}


@pytest.mark.parametrize("compiled", [80, 90], indirect=True, ids=["A100", "H200"])
def test_an_epoch_compiles(compiled: Compiled) -> None:
    for case in CASES.values():
        case()
    wanted = {
        "_product",
        "_combine",
        "_parts",
        "forward",
        "backward_few",
        "_cross_entropies",
        "_count_correct",
        "_update",
        "_compact",
    }
    wanted |= {
        "_multiply",
        "_split",
        "_drop",
        "backward_many",
        "edge_weights",
        "weighted_sums",
        "node_scores",
        "row_totals",
    }
    assert wanted | {"row_gradients", "score_gradients"} <= compiled.keys()
