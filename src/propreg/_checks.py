"""The checks that propreg's own regularizers pass, for your own regularizer."""

from collections.abc import Callable, Collection

import torch
from torch import Tensor

from propreg import _errors

Regularizer = Callable[[Tensor, Tensor], Tensor]
NODES, CLASSES = 9, 4


def check_regularizer(fn: Regularizer, *, skip: Collection[str] = (), seed: int = 0) -> list[str]:
    """Check a graph regularizer ``fn(z, edge_index) -> scalar`` and return the names of the checks it passed.

    The checks: ``scalar`` (a finite scalar that requires a gradient), ``pure`` (inputs are left alone, the same call
    gives the same value), ``odd_graphs`` (no edge, one node, loops, duplicates, directed, isolated), ``gradient`` (the
    gradient is that of the value, by finite differences), ``relabelling`` (the value does not depend on how nodes are
    numbered), ``edge_order`` (nor on how edges are listed), ``dtypes`` (float32 and bfloat16 logits give the float64
    value, to their precision) and ``large_logits`` (logits of ±80 and ±1e4 give finite values and gradients).

    Args:
        fn: The regularizer; wrap other signatures, ``lambda z, e: mine(e, z, alpha=2)``.
        skip: Names of checks that do not apply.
        seed: The seed of the random graphs and logits.

    Raises:
        AssertionError: The first check that fails, in one sentence.

    Example:
        >>> from propreg import check_regularizer, preg
        >>> check_regularizer(preg)
        ['scalar', 'pure', 'odd_graphs', 'gradient', 'relabelling', 'edge_order', 'dtypes', 'large_logits']
        >>> check_regularizer(lambda z, edge_index: z[0].sum())
        Traceback (most recent call last):
            ...
        AssertionError: relabelling: the value changes from ... to ... when nodes are numbered differently.
    """
    if not callable(fn):
        raise TypeError(f"fn must be a callable (z, edge_index) → scalar, got a {type(fn).__name__}.")
    for name in skip:
        _errors.one_of("skip", name, CHECKS)
    passed = []
    for name, check in CHECKS.items():
        if name not in skip:
            generator = torch.Generator().manual_seed(seed)
            with torch.device("cpu"):  # where the generator is
                check(fn, generator)
            passed.append(name)
    return passed


def _example(generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Logits and a graph with a loop, a duplicate, one-way edges and an isolated node."""
    z = torch.randn(NODES, CLASSES, dtype=torch.float64, generator=generator)
    edges = torch.randint(NODES - 1, (2, 12), generator=generator)
    both = torch.cat([edges, edges.flip(0), edges[:, :2], torch.tensor([[0, 1], [0, 3]])], dim=1)
    return z, both


def _plain(generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Logits and a ring, so that a failure has nothing to do with odd graphs."""
    nodes = torch.arange(NODES)
    ring = torch.stack([nodes, nodes.roll(1)])
    return torch.randn(NODES, CLASSES, dtype=torch.float64, generator=generator), torch.cat([ring, ring.flip(0)], dim=1)


def _scalar(fn: Regularizer, generator: torch.Generator) -> None:
    z, edge_index = _plain(generator)
    value = fn(z.requires_grad_().clone(), edge_index)  # a copy: editing in place is what "pure" checks
    _must(isinstance(value, Tensor), f"scalar: fn must return a tensor, got a {type(value).__name__}.")
    _must(value.dim() == 0, f"scalar: fn must return a scalar, but its shape is {tuple(value.shape)}.")
    _must(bool(value.isfinite()), f"scalar: fn returned {value.item()}.")
    _must(value.requires_grad, "scalar: no gradient flows from the value to z: is something detached?")


def _pure(fn: Regularizer, generator: torch.Generator) -> None:
    z, edge_index = _plain(generator)
    before = z.clone(), edge_index.clone()
    first = fn(z, edge_index)
    same = torch.equal(z, before[0]) and torch.equal(edge_index, before[1])
    _must(same, "pure: fn changes its inputs in place.")
    _must(torch.equal(first, fn(z, edge_index)), "pure: two calls with the same inputs give different values.")


def _odd_graphs(fn: Regularizer, generator: torch.Generator) -> None:
    z, _ = _example(generator)
    graphs = {
        "without edges": (z, torch.empty(2, 0, dtype=torch.int64)),
        "of one node": (z[:1], torch.empty(2, 0, dtype=torch.int64)),
        "of one node with a loop": (z[:1], torch.zeros(2, 1, dtype=torch.int64)),
        "with one directed edge": (z, torch.tensor([[0], [1]])),
        "with one edge four times": (z, torch.tensor([[0, 0, 1, 1], [1, 1, 0, 0]])),
        "with one class": (z[:, :1], torch.tensor([[0, 1], [1, 0]])),
    }
    for name, (logits, edge_index) in graphs.items():
        leaf = logits.clone().requires_grad_()
        value = fn(leaf, edge_index)
        _must(bool(value.isfinite()), f"odd_graphs: a graph {name} gives {value.item()}.")
        if value.requires_grad:
            (gradient,) = torch.autograd.grad(value, leaf, allow_unused=True)
            finite = gradient is None or bool(gradient.isfinite().all())
            _must(finite, f"odd_graphs: a graph {name} gives a gradient that is not finite.")


def _gradient(fn: Regularizer, generator: torch.Generator) -> None:
    z, edge_index = _example(generator)
    right = torch.autograd.gradcheck(lambda a: fn(a, edge_index), z.requires_grad_(), raise_exception=False)
    _must(right, "gradient: the gradient is not that of the value (finite differences in float64 disagree).")


def _relabelling(fn: Regularizer, generator: torch.Generator) -> None:
    z, edge_index = _example(generator)
    order = torch.randperm(NODES, generator=generator)
    _same("relabelling", fn(z, edge_index), fn(z[order], order.argsort()[edge_index]), "nodes are numbered differently")


def _edge_order(fn: Regularizer, generator: torch.Generator) -> None:
    z, edge_index = _example(generator)
    order = torch.randperm(edge_index.shape[1], generator=generator)
    _same("edge_order", fn(z, edge_index), fn(z, edge_index[:, order]), "edges are listed in another order")


def _dtypes(fn: Regularizer, generator: torch.Generator) -> None:
    z, edge_index = _example(generator)
    for dtype in (torch.float32, torch.bfloat16):
        rounded = z.to(dtype)
        exact, value = fn(rounded.double(), edge_index), fn(rounded, edge_index)
        close = torch.allclose(value.double(), exact, rtol=1e-5, atol=1e-6)
        message = f"dtypes: {dtype} logits give {value.item():.6g}, but their exact values give {exact.item():.6g}"
        _must(close, f"{message}: compute half precision in float32.")


def _large_logits(fn: Regularizer, generator: torch.Generator) -> None:
    z, edge_index = _example(generator)
    for size in (80.0, 1e4):
        large = (z.sign() * size).float().requires_grad_()
        value = fn(large, edge_index)
        (gradient,) = torch.autograd.grad(value, large)
        finite = bool(value.isfinite() & gradient.isfinite().all())
        _must(
            finite, f"large_logits: logits of ±{size:g} give a value or gradient that is not finite: use log_softmax."
        )


def _same(check: str, first: Tensor, second: Tensor, when: str) -> None:
    close = torch.allclose(first, second, rtol=1e-9, atol=1e-12)
    _must(close, f"{check}: the value changes from {first.item():.6g} to {second.item():.6g} when {when}.")


def _must(holds: bool, sentence: str) -> None:
    if not holds:
        raise AssertionError(sentence)


# In this order: each check relies on the ones before it.
CHECKS: dict[str, Callable[[Regularizer, torch.Generator], None]] = {
    "scalar": _scalar,
    "pure": _pure,
    "odd_graphs": _odd_graphs,
    "gradient": _gradient,
    "relabelling": _relabelling,
    "edge_order": _edge_order,
    "dtypes": _dtypes,
    "large_logits": _large_logits,
}
