"""Linear maps from the nodes of one kind to those of another (or the same): a propagation, or a product of them."""

from typing import overload

import torch
from torch import Tensor

from propreg import _errors


class Operator:
    """What :class:`Propagation` and :class:`Product` have in common."""

    size: tuple[int, int]
    """The numbers of sources and of targets: ``operator(x)`` takes a row per source and gives one per target."""
    _connected: Tensor | None = None
    _all_connected: bool | None = None

    @property
    def num_nodes(self) -> int:
        """The number of targets, which is that of all nodes where sources and targets are the same."""
        return self.size[1]

    @property
    def device(self) -> torch.device:
        """The device of the graph."""
        raise NotImplementedError

    @property
    def differentiable(self) -> bool:
        """Whether edge weights require a gradient or carry a tangent; then nothing is cached between calls."""
        raise NotImplementedError

    def __call__(self, x: Tensor) -> Tensor:
        r"""Return :math:`\hat A x`."""
        return self._apply(x, transposed=False)

    def transposed(self, x: Tensor) -> Tensor:
        r"""Return :math:`\hat A^\top x`."""
        return self._apply(x, transposed=True)

    @overload
    def __matmul__(self, other: Tensor) -> Tensor: ...
    @overload
    def __matmul__(self, other: "Operator") -> "Product": ...
    def __matmul__(self, other: "Tensor | Operator") -> "Tensor | Product":
        return Product(self, other) if isinstance(other, Operator) else self(other)

    def connected(self) -> Tensor:
        """Whether each target has something to agree with: its row does not sum to 0. Bool [targets]."""
        if self._connected is not None:
            return self._connected
        connected = self._reached()
        if _errors.lasting() and not self.differentiable:
            self._connected = connected
        return connected

    def all_connected(self) -> bool:
        """Whether :meth:`connected` holds everywhere; False where that is not known in advance."""
        if self._all_connected is None:
            connected = None if not _errors.plain() or self.differentiable else self.connected()
            if connected is None or not _errors.have_values(connected):
                return False
            self._all_connected = bool(connected.all())
        return self._all_connected

    def _apply(self, x: Tensor, *, transposed: bool) -> Tensor:
        raise NotImplementedError

    def _reached(self) -> Tensor:
        raise NotImplementedError


class Product(Operator):
    """A product of propagations, applied one after the other: its matrix, which may be nearly full, is never made.

    ``first @ second`` applies ``second`` first. With row-normalized propagations a row averages over random walks along
    the chain; where walks end early, at a node that no edge enters, it sums to less than 1.

    Example:
        >>> import torch
        >>> from propreg import Propagation
        >>> to_author = Propagation(torch.tensor([[0, 1, 2], [0, 0, 1]]), size=(3, 2))  # three papers, two authors
        >>> to_paper = Propagation(torch.tensor([[0, 0, 1], [0, 1, 2]]), size=(2, 3))
        >>> co_authored = to_paper @ to_author
        >>> co_authored(torch.tensor([[1.0], [3.0], [7.0]])).flatten()
        tensor([2., 2., 7.])
    """

    def __init__(self, first: Operator, second: Operator) -> None:
        if first.size[0] != second.size[1]:
            raise ValueError(
                f"the first factor takes {first.size[0]} nodes, the second gives {second.size[1]}: in first @ second "
                "the targets of the second are the sources of the first."
            )
        _errors.same_device("the first factor", first, "the second", second)
        self.factors = first, second
        self.size = second.size[0], first.size[1]

    @property
    def device(self) -> torch.device:
        return self.factors[0].device

    @property
    def differentiable(self) -> bool:
        return any(factor.differentiable for factor in self.factors)

    def to_dense(self, dtype: torch.dtype | None = None) -> Tensor:
        """The product as a dense matrix [targets, sources], to inspect small graphs."""
        return self(torch.eye(self.size[0], dtype=dtype, device=self.device))

    def __repr__(self) -> str:
        return f"{self.factors[0]!r} @ {self.factors[1]!r}"

    def _apply(self, x: Tensor, *, transposed: bool) -> Tensor:
        first, second = self.factors
        return second.transposed(first.transposed(x)) if transposed else first(second(x))

    def _reached(self) -> Tensor:
        first, second = self.factors
        return first(second.connected().to(torch.float32)) > 0
