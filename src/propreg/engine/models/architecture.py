"""What an architecture is to the rest of the program: one entry of :data:`propreg.engine.models.MODELS`."""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from propreg.engine.spec import Method, Model, Protocol, Replica, Result, Sizes

if TYPE_CHECKING:
    from torch import Tensor, nn

    from propreg.engine.models.network import Network, Parameters
    from propreg.engine.tasks.node import Problem
    from propreg.engine.training.batches import Options
    from propreg.engine.training.phases import Phase

Weights: TypeAlias = "Mapping[str, Tensor]"


class Phases(typing.Protocol):
    """The phases of a training method, see :mod:`propreg.engine.training.phases`."""

    def __call__(
        self, problem: Problem, replicas: Sequence[Replica], /, *, model: Model, method: Method, protocol: Protocol
    ) -> Iterator[Phase]: ...


class Serial(typing.Protocol):
    """Trains replicas in a way of its own; yields (place in ``replicas``, result) as each one stops.

    Of the options it takes ``keep_history``, ``keep_weights``, ``measures``, ``rules`` and ``stop``.
    """

    def __call__(
        self,
        problem: Problem,
        replicas: Sequence[Replica],
        /,
        *,
        model: Model,
        method: Method,
        protocol: Protocol,
        options: Options,
    ) -> Iterator[tuple[int, Result]]: ...


@dataclass(frozen=True)
class Layer:
    """One step of an exported module.

    Args:
        module: A layer of PyTorch or PyG.
        inputs: Its arguments, of ``x``, ``edge_index`` and ``edge_weight``, which is left out on unweighted graphs.
        state: For each entry of the layer's ``state_dict``, its value from the weights of one trained replica.
    """

    module: nn.Module
    inputs: tuple[str, ...] = ("x",)
    state: Mapping[str, Callable[[Weights], Tensor]] = field(default_factory=dict)


ON_EDGES = ("x", "edge_index")
ON_WEIGHTED_EDGES = ("x", "edge_index", "edge_weight")


def same(name: str) -> Callable[[Weights], Tensor]:
    """A weight as it is."""
    return lambda weights: weights[name]


def transposed(name: str) -> Callable[[Weights], Tensor]:
    """A linear map: ours are [in, out], those of PyTorch [out, in]."""
    return lambda weights: weights[name].t()


def hidden_width(model: Model) -> int:
    """The columns of a hidden layer."""
    return model.hidden


def count_parameters(model: Model, sizes: Sizes) -> int:
    """The weights of a stack of linear layers."""
    inner = (model.layers - 2) * model.width * (model.width + 1)
    return sizes.features * model.width + inner + model.width * sizes.classes


def count_activations(model: Model, sizes: Sizes, passes: int) -> int:
    """The most numbers of a stack of layers that are in memory at once, with so many training passes.

    Of two layers that is in the backward pass: the hidden layer with its ReLU's mask, the gradient of each pass to it,
    and one product. A kernel of the last layer writes one gradient for all passes. Of more layers each pass keeps its
    own inner ones, and their propagation has two more in hand. Logits: what is evaluated, its product, and each pass.
    """
    fits = model.width % 16 == 0 and sizes.classes <= 16
    together = sizes.kernels and fits and model.layers == 2 and model.input_dropout == 0
    slabs = 2.25 + (1 if together else passes)
    if model.layers > 2:
        slabs += 1.5 + passes * (model.layers - 2)
    logits = (2 + passes) * sizes.classes
    return int(sizes.nodes * (slabs * model.width + logits)) + count_dropped(model, sizes, passes)


def count_dropped(model: Model, sizes: Sizes, passes: int) -> int:
    """The dropped features of each pass, and the words that their masks are drawn from; a kernel keeps neither."""
    return sizes.nonzeros * (passes + 1) if model.input_dropout > 0 and not sizes.kernels else 0


def count_propagating(model: Model, sizes: Sizes) -> int:
    """The numbers that a layer touches which propagates its output."""
    return sizes.nodes * model.width + sizes.edges * (model.width + sizes.classes)


def accept(model: Model) -> None:
    """Any settings that are in their ranges."""


@dataclass(frozen=True)
class Layered:
    """A model as layers that mini-batches can compute: each logit depends on nodes that are a few hops away.

    Args:
        hops: How many.
        rows: For each layer what it does to each row, from the layer before's [R, n, W], or the features for None.
        edges: For each layer what it does along the edges, to what ``rows`` returned, which it may overwrite.
    """

    hops: int
    rows: Sequence[Callable[[Problem, Parameters, Tensor | None], Tensor]]
    edges: Sequence[Callable[[Problem, Parameters, Tensor], Tensor]]


Settings = typing.TypeVar("Settings", bound=Model)


def settings_of(model: Model, kind: type[Settings]) -> Settings:
    """The model as settings of an architecture's own; raises for those of another one."""
    if not isinstance(model, kind):
        raise TypeError(f"model must be of class {kind.__name__}, got a {type(model).__name__}.")
    return model


def check_two_layers(model: Model) -> None:
    """Raise if more layers are asked for than the architecture has."""
    if model.layers != 2:
        raise ValueError(f"{model.name} has 2 layers, got layers={model.layers}.")


@dataclass(frozen=True)
class Source:
    """Where a model or a training method comes from.

    Args:
        authors: The first author, "and others" or "and" the second one.
        year: Of the publication.
        venue: The conference or journal.
        idea: The idea in one line.
    """

    authors: str
    year: int
    venue: str
    idea: str


@dataclass(frozen=True)
class Recipe:
    """The hyper-parameters of a model on a benchmark dataset.

    Args:
        settings: The settings of the model.
        training: ``lr``, ``weight_decay``, ``dropout``, ``patience``, ``max_epochs``, and ``rule`` and
            ``weight_decay_scope`` of the protocol; what is left out is as for :func:`propreg.fit`.
        normalize: Whether the rows of the features are divided by their sums.
        ours: Whether it is our choice, because none was published.
    """

    settings: Mapping[str, Any] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)
    normalize: bool = True
    ours: bool = False


TRAINING: Mapping[str, Any] = {
    "lr": 0.01,
    "weight_decay": 5e-4,
    "patience": 100,
    "max_epochs": 1000,
    "rule": "official",
    "weight_decay_scope": "all",
}
"""The training of a model that has none of its own."""


@dataclass(frozen=True, eq=False)
class Architecture:
    """An entry; a new one is a file like ``appnp.py`` and a line in ``MODELS``.

    A training method is an entry, too: its network, and the phases of its training or a ``trainer``. One is a file in
    :mod:`propreg.methods` and a line in its ``ENTRIES``.

    Args:
        name: The name that users write.
        title: The name that people read.
        build: The network of a model on a problem's graph.
        export: The layers of a plain module with the same logits, for so many features and classes and a dropout rate.
        streams: The settings that the random streams of a run depend on. Leave out dropout rates. A setting that is
            added later must not be listed unless its default, too, is a new architecture: recorded runs and saved
            models rely on their streams.
        settings: Which of :class:`~propreg.engine.spec.Model`'s optional settings mean something here.
        kind: A subclass of ``Model`` with settings of the architecture's own.
        defaults: The settings that :func:`propreg.fit` trains with where only the name is given.
        dropout: The dropout rate between layers that ``fit`` trains with.
        per_replica: The settings that replicas of one program may have of their own, see
            :attr:`propreg.engine.spec.Replica.own`: numbers of at least 0 that no shape depends on. One that is 0
            for the model is 0 for all replicas.
        rates: By kind of dropout beside that between layers, the setting that is its rate.
        training: The settings that ``fit`` trains with in place of its own defaults: ``lr``, ``weight_decay``,
            ``patience``, ``max_epochs``, and ``rule`` and ``weight_decay_scope`` of the protocol.
        phases: The training of a method that is more than a regularized loss, see
            :mod:`propreg.engine.training.phases`; None: a single phase.
        trainer: Trains replicas where they are not phases of one program; None: they are.
        trained: Whether it learns anything: else no regularizer goes on top of it.
        source: Who published it.
        recipes: By benchmark dataset, the hyper-parameters that it was published with, or ours.
        layered: The layers without dropout, where mini-batches can train the model; None: it needs the whole graph.
        uses_edge_weights: Whether the network sees edge weights.
        check: Raises ``ValueError`` for settings that cannot be combined.
        width: The columns of a hidden layer.
        parameters: The number of weights.
        activations: The most numbers, beside its parameters, that one replica has in memory in an epoch with so many
            training passes. A batch on a GPU is sized by this: rather too many than too few.
        cost: How many numbers a layer touches in one pass, for an estimate of the time.
    """

    name: str
    title: str
    build: Callable[[Problem, Model], Network]
    export: Callable[[Model, int, int, float], list[Layer]]
    streams: tuple[str, ...]
    settings: tuple[str, ...] = ()
    kind: type[Model] = Model
    defaults: Mapping[str, Any] = field(default_factory=dict)
    dropout: float = 0.5
    per_replica: tuple[str, ...] = ()
    rates: Mapping[str, str] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)
    phases: Phases | None = None
    trainer: Serial | None = None
    trained: bool = True
    source: Source | None = None
    recipes: Mapping[str, Recipe] = field(default_factory=dict)
    layered: Callable[[Model], Layered] | None = None
    uses_edge_weights: bool = True
    check: Callable[[Model], None] = accept
    width: Callable[[Model], int] = hidden_width
    parameters: Callable[[Model, Sizes], int] = count_parameters
    activations: Callable[[Model, Sizes, int], int] = count_activations
    cost: Callable[[Model, Sizes], int] = count_propagating

    def trained_with(self, **given: Any) -> dict[str, Any]:
        """The settings of a training: those given that are not None, else the model's own, else the usual ones."""
        return {**TRAINING, **self.training, **{name: value for name, value in given.items() if value is not None}}

    @property
    def default(self) -> Model:
        """The model that is meant where only the name is given."""
        return self.kind(self.name, **self.defaults)
