"""Â: the normalised adjacency of a graph, made once and applied many times."""

from typing import Any, Literal

import torch
from torch import Tensor
from torch.autograd import forward_ad

from propreg import _edges, _errors, _spmm

Norm = Literal["rw", "sym"]
Backend = Literal["auto", "csr", "gather"]
NORMS = ("rw", "sym")
BACKENDS = ("auto", "csr", "gather")


class Propagation:
    r"""The normalised adjacency :math:`\hat A` of a graph, as an operator: ``propagation(z)`` is :math:`\hat A z`.

    Edges run source → target and :math:`A_{\text{target},\text{source}}` is the sum of the weights of the edges
    between the two, so that :math:`(\hat A Z)_i` averages over the edges that come *in*. With
    :math:`D_{ii} = \sum_j A_{ij}`,

    .. math::
        \hat A_{rw} = D^{-1} A, \qquad \hat A_{sym} = D^{-1/2} A D^{-1/2},

    with 0 wherever a :math:`D_{ii}` is 0. The transpose is kept as well, so a backward pass costs one product too.
    A propagation is accepted wherever propreg takes an ``edge_index``.

    Args:
        edge_index: The graph: int64 [2, E]; a sparse tensor [N, N] in COO, CSR or CSC layout, which is A itself
            (PyG's ``adj_t``); or PyG's ``EdgeIndex``.
        num_nodes: The number of nodes; needed where ``edge_index`` does not say it.
        edge_weight: One weight per edge, not negative; None weighs every edge 1. Gradients flow to it.
        norm: ``"rw"`` averages over the neighbours, ``"sym"`` is the symmetric normalisation of GCN.
        add_self_loops: Give each node one loop: of weight 1 where it has none, else the one it has, with its weight; of
            several the last counts, as in PyG.
        backend: ``"csr"``, ``"gather"``, or ``"auto"``: the fastest that is right for device and context.
        validate: See :func:`propreg.preg`.

    Shape:
        - ``propagation(x)``: x is :math:`(N)` or :math:`(N, *)`, and so is the result.

    Example:
        >>> import torch
        >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> propagation = Propagation(path, num_nodes=3)
        >>> propagation(torch.tensor([[0.0], [1.0], [4.0]]))
        tensor([[1.],
                [2.],
                [1.]])
    """

    def __init__(
        self,
        edge_index: Tensor,
        num_nodes: int | None = None,
        edge_weight: Tensor | None = None,
        *,
        norm: Norm = "rw",
        add_self_loops: bool = False,
        backend: Backend = "auto",
        validate: bool | None = None,
    ) -> None:
        _errors.one_of("norm", norm, NORMS)
        _errors.one_of("backend", backend, BACKENDS)
        if not isinstance(add_self_loops, bool):
            raise TypeError(f"add_self_loops must be True or False, but {add_self_loops!r} came.")
        self.edge_index, self.edge_weight, self.num_nodes = _edges.unpack(edge_index, num_nodes, edge_weight)
        _edges.check_values(self.edge_index, self.edge_weight, self.num_nodes, validate)
        self.norm: Norm = norm
        self.add_self_loops = add_self_loops
        self.backend: Backend = backend
        self._csr: _spmm.Csr | None = None
        self._connected: Tensor | None = None
        self._all_connected: bool | None = None

    @property
    def device(self) -> torch.device:
        """Where the graph lies."""
        return self.edge_index.device

    @property
    def differentiable(self) -> bool:
        """Whether the edge weights need a gradient or carry a tangent; then nothing is kept between calls."""
        weight = self.edge_weight
        if weight is None or weight.requires_grad:
            return weight is not None
        # Inside torch.func nothing is kept anyway; forward_ad.dual_level() is no transform and looks like plain eager.
        return _errors.plain() and forward_ad.unpack_dual(weight).tangent is not None  # type: ignore[no-untyped-call]

    def __call__(self, x: Tensor) -> Tensor:
        r"""Return :math:`\hat A x`."""
        return self._apply(x, transposed=False)

    def transposed(self, x: Tensor) -> Tensor:
        r"""Return :math:`\hat A^\top x`."""
        return self._apply(x, transposed=True)

    def __matmul__(self, x: Tensor) -> Tensor:
        return self(x)

    def connected(self) -> Tensor:
        """Which nodes have something to agree with: those whose row of A does not sum to 0. Bool [N]."""
        if self._connected is not None:
            return self._connected
        connected = self._degree(*self._entries()[::2]) > 0
        if _errors.lasting() and not self.differentiable:
            self._connected = connected
        return connected

    def all_connected(self) -> bool:
        """Whether :meth:`connected` holds everywhere; False where that is not known beforehand."""
        if not _errors.plain() or self.differentiable:
            return False
        if self._all_connected is None:
            self._all_connected = bool(self.connected().all())
        return self._all_connected

    def build(self, dtype: torch.dtype = torch.float32) -> "Propagation":
        """Make the matrix for this dtype now rather than on first use, and return the propagation.

        Worth a call before ``torch.func`` transforms: inside one a matrix can be used, but not built.
        """
        self._matrix(dtype)
        return self

    def to(self, device: torch.device | str) -> "Propagation":
        """The same propagation on another device."""
        if torch.device(device) == self.device:
            return self
        weight = None if self.edge_weight is None else self.edge_weight.to(device)
        return self._like(self.edge_index.to(device), weight)

    def to_dense(self, dtype: torch.dtype | None = None) -> Tensor:
        """Â as a dense [N, N] matrix, for small graphs and for looking."""
        row, col, values = self._normalised(dtype or torch.get_default_dtype())
        dense = values.new_zeros(self.num_nodes, self.num_nodes)
        return dense.index_put((row, col), values, accumulate=True)

    def __repr__(self) -> str:
        return (
            f"Propagation(num_nodes={self.num_nodes}, num_edges={self.edge_index.shape[1]}, norm={self.norm!r}, "
            f"add_self_loops={self.add_self_loops}, backend={self.backend!r}, device={str(self.device)!r})"
        )

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_csr": None, "_connected": None, "_all_connected": None}

    def _like(self, edge_index: Tensor, edge_weight: Tensor | None) -> "Propagation":
        return Propagation(
            edge_index,
            self.num_nodes,
            edge_weight,
            norm=self.norm,
            add_self_loops=self.add_self_loops,
            backend=self.backend,
            validate=False,
        )

    def _apply(self, x: Tensor, *, transposed: bool) -> Tensor:
        if x.dim() == 0 or x.shape[0] != self.num_nodes:
            raise ValueError(
                f"the graph has {self.num_nodes} nodes but x has shape {tuple(x.shape)}: its rows must be the nodes."
            )
        if not x.is_floating_point():
            raise TypeError(f"x must be a floating-point tensor, but its dtype is {x.dtype}.")
        _errors.same_device("x", x, "the graph", self.edge_index)
        flat = x.reshape(self.num_nodes, -1) if x.numel() else x.reshape(self.num_nodes, 0)
        if flat.dtype in (torch.float16, torch.bfloat16):
            flat = flat.float()
        built = self._csr is not None and self._csr.has(flat.dtype)
        how = _spmm.choose(self.backend, x.device, built=built, weights_need_gradient=self.differentiable)
        if how == "csr":
            out = self._matrix(flat.dtype)(flat, transposed)
        else:
            row, col, values = self._normalised(flat.dtype)
            source, target = (row, col) if transposed else (col, row)
            out = _spmm.gather(flat, target, source, values, self.num_nodes)
        return out.reshape(x.shape)

    def _matrix(self, dtype: torch.dtype) -> _spmm.Csr:
        csr = self._csr
        if csr is None or not csr.has(dtype):
            if not _errors.plain():
                raise ValueError(
                    f"the CSR matrix in {dtype} cannot be built inside torch.func transforms or torch.compile: "
                    f"call propagation.build({dtype}) before, or use backend='auto'."
                )
            row, col, values = self._normalised(dtype)
            csr = csr or _spmm.Csr(row, col, self.num_nodes)
            csr.set_values(values)
            self._csr = csr
        return csr

    def _normalised(self, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
        """Rows, columns and values of Â. Division, not a product with an inverse: weights may be tiny."""
        row, col, weight = self._entries()
        degree = self._degree(row, weight)
        safe = torch.where(degree > 0, degree, torch.ones_like(degree))
        if self.norm == "rw":
            values = weight / safe.index_select(0, row)
        else:
            root = safe.sqrt()
            values = weight / root.index_select(0, row) / root.index_select(0, col)
            values = torch.where((degree > 0).index_select(0, col), values, torch.zeros_like(values))
        return row, col, values.to(dtype)

    def _entries(self) -> tuple[Tensor, Tensor, Tensor]:
        """Rows, columns and weights of A with its loops, in float64 where the device has it.

        Every node gets an entry for its loop, of weight 0 where it has one already, and so does every loop that is
        listed again: no shape depends on a value, so that ``torch.compile`` can trace it.
        """
        col, row = self.edge_index
        exact = torch.float32 if self.device.type == "mps" else torch.float64
        weight = (
            torch.ones(row.shape, dtype=exact, device=self.device)
            if self.edge_weight is None
            else self.edge_weight.to(exact)
        )
        if not self.add_self_loops:
            return row, col, weight
        place = torch.arange(row.shape[0], device=self.device)
        loop = row == col
        last = torch.full((self.num_nodes,), -1, device=self.device)
        last = last.scatter_reduce(0, row, torch.where(loop, place, -1), "amax")
        weight = weight * (~loop | (place == last.index_select(0, row)))
        nodes = torch.arange(self.num_nodes, device=self.device)
        added = (last < 0).to(exact)
        return torch.cat([row, nodes]), torch.cat([col, nodes]), torch.cat([weight, added])

    def _degree(self, row: Tensor, weight: Tensor) -> Tensor:
        return weight.new_zeros(self.num_nodes).index_add(0, row, weight)


def resolve(
    edge_index: Tensor | Propagation,
    edge_weight: Tensor | None,
    num_nodes: int,
    *,
    norm: Norm,
    add_self_loops: bool,
    validate: bool | None,
) -> Propagation:
    """The propagation of a graph as it came: made here, or checked against z where it was made before."""
    if not isinstance(edge_index, Propagation):
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
    if norm not in ("rw", edge_index.norm) or (add_self_loops and not edge_index.add_self_loops):
        raise ValueError(
            f"norm={norm!r}, add_self_loops={add_self_loops} contradict the {edge_index!r} that came: "
            "a Propagation carries its own; make it with these, or pass edge_index."
        )
    return edge_index


def not_swapped(z: object, edge_index: object) -> None:
    """Refuse a graph where logits belong and logits where the graph belongs; one alone has a sentence of its own."""
    logits = isinstance(edge_index, Tensor) and edge_index.layout == torch.strided and edge_index.is_floating_point()
    if logits and (isinstance(z, Propagation) or (isinstance(z, Tensor) and _is_graph(z))):
        raise TypeError("z is a graph and edge_index holds logits: swap the two, the logits come first.")


def _is_graph(tensor: Tensor) -> bool:
    if tensor.dim() != 2:
        return False
    if tensor.layout != torch.strided:
        return bool(tensor.shape[0] == tensor.shape[1])
    return 2 in tensor.shape and not tensor.is_floating_point() and not tensor.is_complex()
