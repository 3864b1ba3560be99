"""Â: the normalized adjacency of a graph, computed once and applied many times."""

from typing import Any, Literal

import torch
from torch import Tensor
from torch.autograd import forward_ad

from propreg import _compiled, _edges, _errors, _spmm
from propreg._operator import Operator

Norm = Literal["rw", "sym"]
Backend = Literal["auto", "csr", "gather"]
NORMS = ("rw", "sym")
BACKENDS = ("auto", "csr", "gather")


class Propagation(Operator):
    r"""The normalized adjacency :math:`\hat A` of a graph, as an operator: ``propagation(z)`` is :math:`\hat A z`.

    Edges run source → target and :math:`A_{\text{target},\text{source}}` is the sum of the weights of the edges
    from source to target, so that :math:`(\hat A Z)_i` averages over incoming edges. With
    :math:`D_{ii} = \sum_j A_{ij}`,

    .. math::
        \hat A_{rw} = D^{-1} A, \qquad \hat A_{sym} = D^{-1/2} A D^{-1/2},

    with 0 wherever a :math:`D_{ii}` is 0. The transpose is stored too, so a backward pass also costs one product.
    A Propagation is accepted wherever propreg takes an ``edge_index``. ``first @ second`` is their product, applied one
    after the other, which :func:`propreg.preg` takes, too: a metapath is a chain of products.

    Args:
        edge_index: The graph: int64 or int32 [2, E]; a sparse tensor [N, N] in COO, CSR or CSC layout, which is A
            itself (PyG's ``adj_t``); or PyG's ``EdgeIndex``.
        num_nodes: The number of nodes; required with an edge index, which does not hold it.
        edge_weight: One nonnegative weight per edge; None means 1 for every edge. Gradients flow to it.
        size: The numbers of sources and targets, (m, n), where edges lead from nodes of one kind to those of another;
            then Â is n × m, ``norm`` is ``"rw"``, and the term compares the targets' logits with the sources':
            ``preg(z_targets, propagation, source=z_sources)``.
        norm: ``"rw"`` averages over the neighbors, ``"sym"`` is the symmetric normalization of GCN.
        add_self_loops: Give each node one self-loop: a new one of weight 1, or its own with its weight; of several the
            last counts, as in PyG.
        degree: D where it is not the row sums of this graph: a subgraph keeps the degrees of the whole graph with
            ``degree=whole.degree()[nodes]``, and its Â is then the whole graph's Â restricted to these nodes. A
            self-loop counts in D like any other edge, an added one with weight 1, so take the degrees of a whole graph
            with the same ``add_self_loops``. One number per node, at least its row sum in this graph; it receives no
            gradient.
        backend: ``"csr"``, ``"gather"``, or ``"auto"``: the fastest that is correct for device and context.
        validate: See :func:`propreg.preg`.

    Shape:
        - ``propagation(x)``: x is :math:`(N)` or :math:`(N, *)`, and so is the result; with ``size`` x is
          :math:`(m, *)`, the result :math:`(n, *)`.

    Example:
        >>> import torch
        >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> propagation = Propagation(path, num_nodes=3)
        >>> propagation(torch.tensor([[0.0], [1.0], [4.0]]))
        tensor([[1.],
                [2.],
                [1.]])

        The first two nodes as a subgraph, with the degrees 1 and 2 of the whole path:

        >>> edge = torch.tensor([[0, 1], [1, 0]])
        >>> Propagation(edge, num_nodes=2, degree=propagation.degree()[:2]).to_dense()
        tensor([[0.0000, 1.0000],
                [0.5000, 0.0000]])
    """

    def __init__(
        self,
        edge_index: Tensor,
        num_nodes: int | None = None,
        edge_weight: Tensor | None = None,
        *,
        size: tuple[int, int] | None = None,
        norm: Norm = "rw",
        add_self_loops: bool = False,
        degree: Tensor | None = None,
        backend: Backend = "auto",
        validate: bool | None = None,
    ) -> None:
        _errors.one_of("norm", norm, NORMS)
        _errors.one_of("backend", backend, BACKENDS)
        if not isinstance(add_self_loops, bool):
            raise TypeError(f"add_self_loops must be True or False, got {add_self_loops!r}.")
        self.edge_index, self.edge_weight, self.size = _edges.unpack(edge_index, num_nodes, edge_weight, size)
        if self.size[0] != self.size[1] and (norm != "rw" or add_self_loops):
            raise ValueError(
                f"edges between two kinds of nodes have norm='rw' and no self-loops, got norm={norm!r}, "
                f"add_self_loops={add_self_loops}: leave them out."
            )
        _edges.check_values(self.edge_index, self.edge_weight, self.size, validate)
        self.norm: Norm = norm
        self.add_self_loops = add_self_loops
        self.backend: Backend = backend
        self._given_degree = None if degree is None else self._checked_degree(degree, validate)
        self._csr: _spmm.Csr | None = None

    @property
    def device(self) -> torch.device:
        return self.edge_index.device

    @property
    def differentiable(self) -> bool:
        weight = self.edge_weight
        if weight is None or weight.requires_grad:
            return weight is not None
        # Inside torch.func nothing is cached anyway; forward_ad.dual_level() is no transform and looks like eager mode.
        return _errors.plain() and forward_ad.unpack_dual(weight).tangent is not None  # type: ignore[no-untyped-call]

    def degree(self) -> Tensor:
        """The diagonal of D, float64 [N] (float32 on MPS): the row sums of A with its loops, or ``degree`` as given."""
        return self._degree(*self._weighted_edges()[::2])

    def build(self, dtype: torch.dtype = torch.float32) -> "Propagation":
        """Build the matrix for this dtype now rather than on first use, and return the propagation.

        Call it before ``torch.compile`` and ``torch.func`` transforms: inside them the fast product is used where the
        matrix is there, but cannot be built.
        """
        self._matrix(dtype)
        self.all_connected()
        return self

    def to(self, device: torch.device | str) -> "Propagation":
        """The same propagation on another device."""
        if torch.device(device) == self.device:
            return self
        weight = None if self.edge_weight is None else self.edge_weight.to(device)
        return self._like(self.edge_index.to(device), weight)

    def to_dense(self, dtype: torch.dtype | None = None) -> Tensor:
        """Â as a dense [targets, sources] matrix, to inspect small graphs."""
        row, col, values = self.entries(dtype or torch.get_default_dtype())
        dense = values.new_zeros(self.size[1], self.size[0])
        return dense.index_put((row, col), values, accumulate=True)

    def entries(self, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
        """Rows, columns and values of Â in COO form; a place may be listed more than once, and its values add up."""
        row, col, weight = self._weighted_edges()
        degree = self._degree(row, weight)
        if weight is None:  # 1 / inf is the 0 of a node without edges
            divisor = torch.where(degree > 0, degree if self.norm == "rw" else degree.sqrt(), torch.inf)
            values = (1 / divisor).index_select(0, row)
            return row, col, (values if self.norm == "rw" else values / divisor.index_select(0, col)).to(dtype)
        safe = torch.where(degree > 0, degree, torch.ones_like(degree))
        if self.norm == "rw":  # a division, not a product with an inverse: weights may be tiny
            values = weight / safe.index_select(0, row)
        else:
            root = safe.sqrt()
            values = weight / root.index_select(0, row) / root.index_select(0, col)
            values = torch.where((degree > 0).index_select(0, col), values, torch.zeros_like(values))
        return row, col, values.to(dtype)

    def __repr__(self) -> str:
        nodes = f"num_nodes={self.num_nodes}" if self.size[0] == self.size[1] else f"size={self.size}"
        return (
            f"Propagation({nodes}, num_edges={self.edge_index.shape[1]}, norm={self.norm!r}, "
            f"add_self_loops={self.add_self_loops}, backend={self.backend!r}, device={str(self.device)!r})"
        )

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_csr": None, "_connected": None, "_all_connected": None}

    def _like(self, edge_index: Tensor, edge_weight: Tensor | None) -> "Propagation":
        return Propagation(
            edge_index,
            None,
            edge_weight,
            size=self.size,
            norm=self.norm,
            add_self_loops=self.add_self_loops,
            degree=None if self._given_degree is None else self._given_degree.to(edge_index.device),
            backend=self.backend,
            validate=False,
        )

    def _checked_degree(self, degree: object, validate: bool | None) -> Tensor:
        if not isinstance(degree, Tensor) or degree.shape != (self.num_nodes,) or degree.is_complex():
            got = f"shape {tuple(degree.shape)}" if isinstance(degree, Tensor) else f"a {type(degree).__name__}"
            raise ValueError(f"degree must be a tensor of one number per node, shape ({self.num_nodes},), got {got}.")
        _errors.same_device("edge_index", self.edge_index, "degree", degree)
        degree = degree.detach().to(self._exact)
        if _errors.values_are_checked(validate, degree):
            row_sums = self._row_sums(*self._weighted_edges()[::2]).detach()
            bad = (~(degree >= row_sums * (1 - 1e-6)) | degree.isinf()).nonzero().flatten()
            if len(bad):
                node = int(bad[0])
                raise ValueError(
                    f"degree must be finite and at least the weight of each node's edges in this graph, got "
                    f"{degree[node]:g} for node {node}, whose edges weigh {row_sums[node]:g}: pass the degrees of the "
                    "whole graph with the same add_self_loops, whole.degree()[nodes]."
                )
        return degree

    def _apply(self, x: Tensor, *, transposed: bool) -> Tensor:
        rows, targets = self.size[::-1] if transposed else self.size
        if x.dim() == 0 or x.shape[0] != rows:
            raise ValueError(
                f"the graph has {rows} nodes but x has shape {tuple(x.shape)}: its rows must be the nodes."
            )
        if not x.is_floating_point():
            raise TypeError(f"x must be a floating-point tensor, but its dtype is {x.dtype}.")
        _errors.same_device("x", x, "the graph", self.edge_index)
        flat = _errors.at_least_float32(x.unsqueeze(-1) if x.dim() == 1 else x.flatten(1))
        built = self._csr is not None and self._csr.has(flat.dtype)
        how = _spmm.choose(self.backend, x, built=built, weights_need_gradient=self.differentiable)
        out: Tensor
        if how == "csr":
            out = self._matrix(flat.dtype)(flat, transposed)
        elif self._kept_when_compiled():
            out = _compiled.propagate(flat, *self._as_arguments(), transposed)
        else:
            row, col, values = self.entries(flat.dtype)
            source, target = (row, col) if transposed else (col, row)
            out = _spmm.gather(flat, target, source, values, targets)
        return out.reshape(targets, *x.shape[1:])

    def _matrix(self, dtype: torch.dtype) -> _spmm.Csr:
        csr = self._csr
        if csr is None or not csr.has(dtype):
            if not _errors.plain():
                raise ValueError(
                    f"the CSR matrix in {dtype} cannot be built inside torch.func transforms or torch.compile: "
                    f"first call propagation.build({dtype}), or use backend='auto'."
                )
            row, col, values = self.entries(dtype)
            csr = csr or _spmm.Csr(row, col, (self.size[1], self.size[0]))
            csr.set_values(values)
            self._csr = csr
        return csr

    def _reached(self) -> Tensor:
        if self._kept_when_compiled():
            reached: Tensor = _compiled.reached(*self._as_arguments())
            return reached
        return self._row_sums(*self._weighted_edges()[::2]) > 0

    def _kept_when_compiled(self) -> bool:
        plain = self._given_degree is None and self.backend == "auto" and not self.differentiable
        return plain and _compiled.usable(self.device)

    def _as_arguments(self) -> tuple[Tensor, Tensor | None, int, int, str, bool]:
        return self.edge_index, self.edge_weight, *self.size, self.norm, self.add_self_loops

    def _weighted_edges(self) -> tuple[Tensor, Tensor, Tensor | None]:
        """Rows, columns and weights of A with its loops, in float64 where the device has it; None where all are 1.

        Every node gets an entry for its loop, with weight 0 if it already has one, and a loop listed more than once
        keeps an entry of weight 0: no shape depends on a value, so that ``torch.compile`` can trace it.
        """
        col, row = self.edge_index
        weight = None if self.edge_weight is None else self.edge_weight.to(self._exact)
        if not self.add_self_loops:
            return row, col, weight
        nodes = torch.arange(self.num_nodes, device=self.device)
        loop = row == col
        if weight is None:
            if _errors.values_are_checked(None, row) and not bool(loop.any()):
                return torch.cat([row, nodes]), torch.cat([col, nodes]), None
            weight = torch.ones(row.shape, dtype=self._exact, device=self.device)
        number = torch.arange(row.shape[0], device=self.device)
        last = torch.full((self.num_nodes,), -1, device=self.device)
        last = last.scatter_reduce(0, row, torch.where(loop, number, -1), "amax")
        weight = weight * (~loop | (number == last.index_select(0, row)))
        added = (last < 0).to(self._exact)
        return torch.cat([row, nodes]), torch.cat([col, nodes]), torch.cat([weight, added])

    @property
    def _exact(self) -> torch.dtype:
        return torch.float32 if self.device.type == "mps" else torch.float64

    def _degree(self, row: Tensor, weight: Tensor | None) -> Tensor:
        return self._row_sums(row, weight) if self._given_degree is None else self._given_degree

    def _row_sums(self, row: Tensor, weight: Tensor | None) -> Tensor:
        if weight is None:
            if _errors.values_are_checked(None, row):
                return torch.bincount(row, minlength=self.num_nodes).to(self._exact)
            weight = torch.ones((), dtype=self._exact, device=self.device).expand(row.shape)
        return weight.new_zeros(self.num_nodes).index_add(0, row, weight)


def resolve(
    edge_index: Tensor | Operator,
    edge_weight: Tensor | None,
    num_nodes: int,
    *,
    norm: Norm,
    add_self_loops: bool,
    validate: bool | None,
) -> Operator:
    """The Propagation of a graph: built here, or checked against z if the caller passed one, or a product."""
    if not isinstance(edge_index, Operator):
        return Propagation(
            edge_index, num_nodes, edge_weight, norm=norm, add_self_loops=add_self_loops, validate=validate
        )
    if edge_weight is not None:
        raise ValueError("edge_weight goes into the Propagation: Propagation(edge_index, num_nodes, edge_weight).")
    if edge_index.num_nodes != num_nodes:
        raise ValueError(
            f"the Propagation has {edge_index.num_nodes} nodes but z has {num_nodes} rows: pass logits of its whole "
            "graph, or the Propagation of the subgraph."
        )
    own = (edge_index.norm, edge_index.add_self_loops) if isinstance(edge_index, Propagation) else ("rw", False)
    if norm not in ("rw", own[0]) or (add_self_loops and not own[1]):
        raise ValueError(
            f"norm={norm!r}, add_self_loops={add_self_loops} contradict the given {edge_index!r}: "
            "a Propagation carries its own norm and loops; build it with these, or pass edge_index."
        )
    return edge_index


def edges(graph: Operator) -> Propagation:
    """Raise unless a graph has edges between nodes of one kind: some measures are sums over them."""
    if not isinstance(graph, Propagation) or graph.size[0] != graph.size[1]:
        raise TypeError(f"edge_index must have edges between nodes of one kind, got {graph!r}: pass the edges.")
    return graph


def not_swapped(z: object, edge_index: object) -> None:
    """Raise if logits and graph are swapped; each alone in the wrong place has its own error."""
    logits = isinstance(edge_index, Tensor) and edge_index.layout == torch.strided and edge_index.is_floating_point()
    if logits and (isinstance(z, Operator) or (isinstance(z, Tensor) and _is_graph(z))):
        raise TypeError("z is a graph and edge_index holds logits: swap the two, the logits come first.")


def _is_graph(tensor: Tensor) -> bool:
    if tensor.dim() != 2:
        return False
    if tensor.layout != torch.strided:
        return bool(tensor.shape[0] == tensor.shape[1])
    return 2 in tensor.shape and not tensor.is_floating_point() and not tensor.is_complex()
