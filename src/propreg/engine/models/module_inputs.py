"""What a module of the user's own is called with: some tensors of the graph, or a PyG ``Data`` of all of them."""

import hashlib
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from propreg.data.errors import DataError
from propreg.data.graph import Graph, SparseFeatures

ALONE = {
    **dict.fromkeys(("x", "features", "feat", "h"), ("x",)),
    **dict.fromkeys(("data", "batch", "graph", "g"), ("data",)),
}
"""By what people call the single argument of a forward: what it takes."""


@dataclass(frozen=True)
class Inputs:
    """The arguments of ``forward``.

    Args:
        names: Of the tensors, in order; ``("data",)`` is a ``Data`` with all of them.
        keywords: Names of further tensors that are passed by keyword.
    """

    names: tuple[str, ...] = ("x", "edge_index")
    keywords: tuple[str, ...] = ()

    @property
    def is_data(self) -> bool:
        """Whether ``forward`` takes one ``Data``."""
        return self.names == ("data",)

    def takes(self, name: str) -> bool:
        """Whether a tensor is among the arguments."""
        return self.is_data or name in (*self.names, *self.keywords)

    def arguments(self, tensors: Mapping[str, Tensor]) -> tuple[tuple[Any, ...], dict[str, Tensor]]:
        """The arguments of a call, from the tensors of a graph."""
        if self.is_data:
            from propreg.data.own.pyg import data_class

            return (data_class()(**tensors),), {}
        for name in (*self.names, *self.keywords):
            if name not in tensors:
                raise DataError(
                    f"inputs names {name!r}, but the graph has only {', '.join(map(repr, sorted(tensors)))}: put the "
                    f"tensor into the Data as data.{name}."
                )
        return tuple(tensors[name] for name in self.names), {name: tensors[name] for name in self.keywords}


def inputs_of(given: Sequence[str] | None, module: nn.Module, *, weighted: bool) -> Inputs:
    """The inputs that are asked for; without, those that ``forward`` takes by its signature.

    Edge weights reach a ``forward`` that has an argument ``edge_weight``.

    Example:
        >>> class Net(nn.Module):
        ...     def forward(self, x, edge_index, edge_weight=None):
        ...         return x
        >>> inputs_of(None, Net(), weighted=True).keywords, inputs_of(None, Net(), weighted=False).keywords
        (('edge_weight',), ())
    """
    if given is not None:
        if isinstance(given, str) or not given or not all(isinstance(name, str) for name in given):
            raise TypeError(f"inputs must be names of tensors, like ('x', 'edge_index'), got {given!r:.80}.")
        return Inputs(tuple(given))
    try:
        parameters = inspect.signature(module.forward).parameters.values()
    except (TypeError, ValueError):
        return Inputs()
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = [each.name for each in parameters if each.kind in kinds]
    if len(names) == 1 and not any(each.kind is inspect.Parameter.VAR_POSITIONAL for each in parameters):
        return Inputs(ALONE.get(names[0], Inputs().names))
    by_name = any(each.name == "edge_weight" for each in parameters)
    return Inputs(keywords=("edge_weight",) if weighted and by_name and "edge_weight" not in names[:2] else ())


def tensors_of(graph: Graph, device: torch.device, dtype: torch.dtype = torch.float32) -> dict[str, Tensor]:
    """All tensors of a graph by PyG's names, as copies: a module may write into them."""
    x = graph.x.to_dense() if isinstance(graph.x, SparseFeatures) else graph.x
    found = {
        "x": torch.from_numpy(x).to(device, dtype, copy=True),
        "edge_index": torch.from_numpy(graph.edge_index).to(device, copy=True),
    }
    if graph.edge_weight is not None:
        found["edge_weight"] = torch.from_numpy(graph.edge_weight).to(device, dtype, copy=True)
    for name, value in graph.extra.items():
        if isinstance(value, Tensor):
            found[name] = value.detach().to(device, dtype if value.is_floating_point() else value.dtype, copy=True)
    return found


def digest_of(graph: Graph) -> str:
    """The SHA-256 of a graph's further tensors; empty if it has none."""
    sha, tensors = hashlib.sha256(), {name: t for name, t in graph.extra.items() if isinstance(t, Tensor)}
    for name, t in sorted(tensors.items()):
        sha.update(f"{name} {t.dtype} {tuple(t.shape)} ".encode())
        sha.update(t.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return sha.hexdigest() if tensors else ""
