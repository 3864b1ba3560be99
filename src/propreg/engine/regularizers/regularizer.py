"""What a regularizer is to the rest of the program: one entry of :data:`propreg.engine.regularizers.REGULARIZERS`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from propreg import _choices
from propreg.engine import ops
from propreg.engine.spec import Method, Sizes

if TYPE_CHECKING:
    from torch import Tensor

    from propreg.engine.tasks.node import Problem, Targets

Preset: TypeAlias = Literal["paper", "reference"]

SHARES = (0.0001, 0.001, 0.01, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
"""The strengths that the official history tried for the simple regularizers; it published none of them."""


class TrainingPasses(Protocol):
    """The logits of an epoch's training passes."""

    def each(self) -> tuple[Tensor, ...]:
        """Those of every pass, [R, N, C]."""
        ...

    def together(self) -> Tensor | None:
        """Those of all passes as one tensor where they are at hand, else None.

        [R, N, passes, C], or [groups, members, N, passes, C] where the network computes them at once.
        """
        ...


class Term:
    """A method on one graph; a subclass has :meth:`value`, or :meth:`loss` where it is no term beside cross entropy."""

    def loss(self, passes: TrainingPasses, strength: Tensor, counted: Tensor | None, targets: Targets) -> Tensor:
        """The loss of each replica [R]: cross entropy on its training nodes plus its strength times the value.

        Args:
            passes: The logits.
            strength: Of each replica, [R].
            counted: The weights [R, N] of a mean over some of the nodes; None for all.
            targets: The training nodes.
        """
        logits = passes.each()
        entropy = ops.cross_entropy(logits[0], targets)  # first: autograd sums the gradients of z in this order
        return entropy + strength * self.value(logits[0], logits[-1], counted, targets)

    def value(self, z: Tensor, source: Tensor, counted: Tensor | None, targets: Targets) -> Tensor:
        """The regularizer of each replica [R], from the logits of the first and of the last training pass."""
        raise NotImplementedError


def accept(method: Method) -> None:
    """Any options that are in their ranges."""


def no_memory(method: Method, sizes: Sizes) -> int:  # noqa: ARG001
    """Nothing beyond the logits."""
    return 0


def one_pass(method: Method) -> int:  # noqa: ARG001
    """A single training pass."""
    return 1


def not_in_groups(method: Method) -> bool:  # noqa: ARG001
    """It needs the logits of each replica."""
    return False


@dataclass(frozen=True, eq=False)
class Regularizer:
    """An entry; a new one is a file like ``laplacian.py`` and a line in ``REGULARIZERS``.

    Args:
        name: The name that users write.
        title: The name that people read.
        build: The term of a method on a problem's graph.
        options: Which of :class:`~propreg.engine.spec.Method`'s options mean something here.
        kind: A subclass of ``Method`` with options of the regularizer's own.
        presets: The options of its paper form and of its official-code form.
        grid: The strengths above 0 that :func:`propreg.fit` tries; none for the plain model, which has no strength.
        first_look: Fewer strengths, for ``propreg run`` on the digits; none: the whole grid.
        bounded: Whether a strength lies between 0 and 1.
        masked: Whether the share of nodes that count (:attr:`.Replica.unmask`) means something.
        uses_edges: Whether it compares nodes along the graph's edges.
        own: Whether it is a function of the user's, which may do what no CUDA graph records.
        check: Raises ``ValueError`` for options that cannot be combined.
        passes: The number of training passes, each with dropout masks of its own.
        in_groups: Whether the loss takes logits of several replicas side by side, see :class:`TrainingPasses`.
        memory: How many numbers one replica keeps beside the logits.
    """

    name: str
    title: str
    build: Callable[[Problem, Method], Term]
    options: tuple[str, ...] = ()
    kind: type[Method] = Method
    presets: Mapping[Preset, Mapping[str, Any]] = field(default_factory=lambda: {"paper": {}, "reference": {}})
    grid: tuple[float, ...] = ()
    first_look: tuple[float, ...] = ()
    bounded: bool = False
    masked: bool = False
    uses_edges: bool = False
    own: bool = False
    check: Callable[[Method], None] = accept
    passes: Callable[[Method], int] = one_pass
    in_groups: Callable[[Method], bool] = not_in_groups
    memory: Callable[[Method, Sizes], int] = no_memory

    def preset(self, name: Preset) -> Method:
        """The method of the paper form or of the official-code form."""
        _choices.one_of("preset", name, self.presets)
        return self.kind(self.name, **self.presets[name])
