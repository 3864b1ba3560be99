"""The fast product of a plain edge index inside ``torch.compile``: operators that find the matrix as they run.

A trace sees no values, so it can build no matrix. These operators are opaque to it: when the compiled program runs,
they look at the edge index that it was called with, and build the matrix of one that is new. It is compared by its
values, since a compiled program may write another one into the same memory. On a CPU only: on a GPU a comparison waits
for the device, and a CUDA graph would replay the matrix of its recording for another edge index.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from propreg import _errors, _spmm
from propreg._kept import KEPT

if TYPE_CHECKING:
    from propreg._propagation import Propagation

Options = tuple[int, int, str, bool]
kept: list[tuple[Options, "Propagation"]] = []
"""The last few graphs of compiled programs, whatever module they belong to; each has a copy of its edges."""


is_exporting: Callable[[], bool] = getattr(torch.compiler, "is_exporting", lambda: False)  # torch 2.5 has none


def usable(device: torch.device) -> bool:
    """Whether a program is compiled for a CPU; an exported one takes plain torch along, not these operators."""
    compiling = torch.compiler.is_compiling() and not _errors.transformed() and not is_exporting()
    return compiling and device.type == "cpu" and _spmm.MKL


@torch.library.custom_op("propreg::propagate", mutates_args=())
def propagate(
    x: Tensor,
    edge_index: Tensor,
    edge_weight: Tensor | None,
    sources: int,
    targets: int,
    norm: str,
    add_self_loops: bool,
    transposed: bool,
) -> Tensor:
    """Â x, or its transpose times x, for x [nodes, C]."""
    graph = _graph(edge_index, edge_weight, sources, targets, norm, add_self_loops)
    product: Tensor = graph._matrix(x.dtype).product(x, transposed)
    return product


@propagate.register_fake
def _(x: Tensor, *graph: Any) -> Tensor:
    _, _, sources, targets, _, _, transposed = graph
    return x.new_empty(sources if transposed else targets, x.shape[1])


def _keep_graph(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:  # noqa: ARG001
    _, edge_index, edge_weight, *ctx.options, ctx.transposed = inputs
    ctx.save_for_backward(edge_index, edge_weight)


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    return (propagate(grad.contiguous(), *ctx.saved_tensors, *ctx.options, not ctx.transposed), *[None] * 7)


propagate.register_autograd(_backward, setup_context=_keep_graph)


@torch.library.custom_op("propreg::reached", mutates_args=())
def reached(
    edge_index: Tensor, edge_weight: Tensor | None, sources: int, targets: int, norm: str, add_self_loops: bool
) -> Tensor:
    """Which targets an edge enters, bool [targets]."""
    found: Tensor = _graph(edge_index, edge_weight, sources, targets, norm, add_self_loops).connected()
    return found.clone()


@reached.register_fake
def _(edge_index: Tensor, edge_weight: Tensor | None, sources: int, targets: int, *_: Any) -> Tensor:  # noqa: ARG001
    return edge_index.new_empty(targets, dtype=torch.bool)


def _graph(edge_index: Tensor, edge_weight: Tensor | None, *options: Any) -> "Propagation":
    from propreg._propagation import Propagation

    for known, graph in kept:
        if known == options and _equal(graph.edge_index, edge_index) and _equal(graph.edge_weight, edge_weight):
            return graph
    weight = None if edge_weight is None else edge_weight.detach().clone()
    *size, norm, loops = options
    graph = Propagation(edge_index.clone(), None, weight, size=tuple(size), norm=norm, add_self_loops=loops)
    if _errors.lasting():
        kept[:] = [(options, graph), *kept[: KEPT - 1]]
    return graph


def _equal(a: Tensor | None, b: Tensor | None) -> bool:
    return a is b if a is None or b is None else a.dtype == b.dtype and torch.equal(a, b)
