"""P-reg on heterogeneous graphs: a term for each edge type or metapath, with its own strength."""

import math
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

from torch import Tensor, nn

from propreg import _errors
from propreg._kept import Kept
from propreg._operator import Operator, Product
from propreg._options import Detach, Options, PhiLike
from propreg._preg import regularized
from propreg._propagation import Propagation

EdgeType = tuple[str, str, str]
Metapath = tuple[EdgeType, ...]


class HeteroPReg(nn.Module):
    r"""A sum of terms of P-reg over the relations of a heterogeneous graph,

    .. math::
        \sum_r \mu_r \frac{1}{N_{t(r)}} \sum_i \phi\bigl(z^{t(r)}_i, (\hat A_r Z^{s(r)})_i\bigr) ,

    where the relation r leads from nodes of type s(r) to nodes of type t(r), and :math:`\hat A_r` averages over the
    incoming edges. A relation is an edge type of PyG's ``HeteroData``, or a metapath, edge types in a row, each
    starting where the one before ends. The operator of a metapath is the product of its edge types', an average over
    random walks; its graph, which may have millions of edges, is never built. Logits are needed only of the types at
    which relations start and end, and these must predict the same classes.

    Args:
        strengths: :math:`\mu_r` of each relation, at least 0.
        phi, detach, threshold, validate: As for :func:`propreg.preg`.

    Example:
        >>> import torch
        >>> from propreg import HeteroPReg
        >>> to_author, to_paper = ("paper", "by", "author"), ("author", "wrote", "paper")
        >>> regularizer = HeteroPReg({(to_author, to_paper): 0.5}, phi="squared_error")
        >>> edges = torch.tensor([[0, 1, 2], [0, 0, 1]])  # papers 0 and 1 by one author, paper 2 by another
        >>> z = {"paper": torch.tensor([[0.0], [2.0], [5.0]])}
        >>> regularizer(z, {to_author: edges, to_paper: edges.flip(0)})
        tensor(0.1667)
    """

    def __init__(
        self,
        strengths: Mapping[EdgeType | Metapath, float],
        *,
        phi: PhiLike = "cross_entropy",
        detach: Detach = None,
        threshold: float | None = None,
        validate: bool | None = None,
    ) -> None:
        super().__init__()
        self.options = Options(phi, "rw", False, detach, threshold, "mean", validate)
        if isinstance(phi, nn.Module):
            self.phi_module = phi
        if not strengths:
            raise ValueError("strengths is empty: give at least one edge type or metapath with its strength.")
        self.strengths = {_metapath(relation): _strength(relation, mu) for relation, mu in strengths.items()}
        self._cached = {path: Kept() for path in self.strengths}

    def forward(
        self,
        z: Mapping[str, Tensor],
        edge_index: Mapping[EdgeType, Tensor],
        edge_weight: Mapping[EdgeType, Tensor] | None = None,
        *,
        mask: Mapping[str, Tensor] | None = None,
    ) -> Tensor:
        """The sum of the terms.

        Args:
            z: Logits by node type. Under ``torch.compile`` also of the types in between, whose rows are then counted.
            edge_index: Edges by edge type, ``data.edge_index_dict``: int64 [2, E], sources above targets.
            edge_weight: One weight per edge, by edge type; edge types that are left out have none.
            mask: The nodes that count, by node type; of a type that is left out, all nodes count.
        """
        if not isinstance(z, Mapping):
            raise TypeError(f"z must map node types to logits, got {type(z).__name__}.")
        _refuse_unknown("edge_weight", edge_weight, edge_index)
        _refuse_unknown("mask", mask, {path[-1][2] for path in self.strengths})
        terms = []
        for path, mu in self.strengths.items():
            source, target = (_logits(z, name, path) for name in (path[0][0], path[-1][2]))
            rows = tuple(z[name].shape[0] if name in z else None for name in (path[0][0], *(kind[2] for kind in path)))
            operator = self._operator(path, rows, edge_index, edge_weight or {})
            counted = (mask or {}).get(path[-1][2])
            terms.append(mu * regularized(target, operator, self.options, source, counted, None))
        return sum(terms[1:], start=terms[0])

    def forget(self) -> None:
        """Let go of the graphs that are kept."""
        self._cached = {path: Kept() for path in self.strengths}

    def extra_repr(self) -> str:
        shown = ", ".join(f"{_title(path)}: {mu:g}" for path, mu in self.strengths.items())
        return f"{{{shown}}}, phi={self.options.phi!r}"

    def _operator(
        self,
        path: Metapath,
        rows: tuple[int | None, ...],
        edge_index: Mapping[EdgeType, Tensor],
        edge_weight: Mapping[EdgeType, Tensor],
    ) -> Operator:
        missing = [kind for kind in path if kind not in edge_index]
        if missing:
            raise ValueError(f"edge_index has no edges of type {missing[0]}: known are {sorted(edge_index)}.")
        edges = [edge_index[kind] for kind in path]
        weights = [edge_weight.get(kind) for kind in path]

        def make() -> Operator:
            # A node in the middle without edges changes nothing: the largest number that occurs is size enough.
            counts = [
                max(_last(edges[i - 1][1]), _last(edges[i][0])) if known is None else known
                for i, known in enumerate(rows)
            ]
            steps = [
                Propagation(e, None, w, size=size, validate=self.options.validate)
                for e, w, size in zip(edges, weights, pairwise(counts), strict=True)
            ]
            operator: Operator = steps[0]
            for step in steps[1:]:
                operator = Product(step, operator)  # dynamo knows no @ of other objects
            return operator

        return self._cached[path].find(rows, (*edges, *weights), make)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_cached": {path: Kept() for path in self.strengths}}


def _refuse_unknown(name: str, given: Mapping[Any, Tensor] | None, known: Iterable[Any]) -> None:
    """A key that nothing reads is a slip of the pen: the loss would be another one."""
    if unknown := [key for key in given or {} if key not in set(known)]:
        raise ValueError(f"{name} has no use for {unknown[0]!r}: known are {sorted(known)}.")


def _metapath(relation: object) -> Metapath:
    if not isinstance(relation, tuple) or not relation:
        raise TypeError(f"a relation is an edge type (source, name, target) or a tuple of them, got {relation!r}.")
    path = (relation,) if isinstance(relation[0], str) else relation
    for kind in path:
        if not (isinstance(kind, tuple) and len(kind) == 3 and all(isinstance(part, str) for part in kind)):
            raise TypeError(f"an edge type is (source, name, target), three words, got {kind!r}.")
    for before, after in pairwise(path):
        if before[2] != after[0]:
            raise ValueError(f"the metapath breaks: {before} ends at {before[2]!r}, {after} starts at {after[0]!r}.")
    return path


def _strength(relation: object, mu: float) -> float:
    if isinstance(mu, bool) or not isinstance(mu, (int, float)) or not (math.isfinite(mu) and mu >= 0):
        raise ValueError(f"the strength of {relation} must be a finite number of at least 0, got {mu!r}.")
    return float(mu)


def _logits(z: Mapping[str, Tensor], name: str, path: Metapath) -> Tensor:
    if name not in z:
        raise ValueError(f"z has no logits of {name!r}, an end of {_title(path)}: it has {sorted(z)}.")
    return _errors.logits(f"z[{name!r}]", z[name])


def _last(nodes: Tensor) -> int:
    return int(nodes.max()) + 1 if nodes.numel() else 0


def _title(path: Metapath) -> str:
    return path[0][0] + "".join(f" –{name}→ {target}" for _, name, target in path)
