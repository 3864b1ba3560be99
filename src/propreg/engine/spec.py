"""What is trained: the model, the method, the protocol, and one line per replica. Plain data, no behavior."""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from propreg.engine.models.architecture import Architecture
    from propreg.engine.regularizers.regularizer import Regularizer

RuleName = Literal[
    "official", "strict", "latest_best", "first_best", "lowest_val_loss", "last",
    "val_loss", "loss_or_accuracy", "loss_window", "last_in_window", "last_on_rise",
]  # fmt: skip
CORRECTED = "prior_corrected"
"""A report beside those of rules: the epoch of the run's own, its predictions corrected for the class frequencies."""


@dataclass(frozen=True)
class Model:
    """An architecture. Dropout rates are not part of it where a replica sets its own.

    The settings here are those of the built-in architectures; one that has others has a subclass of its own, see
    :class:`propreg.engine.models.architecture.Architecture`.

    Args:
        name: ``"gcn"``, ``"mlp"``, ``"gat"``, ``"appnp"`` or another of :data:`propreg.engine.models.MODELS`.
        hidden: Width of a hidden layer (of one head, for GAT).
        layers: Number of layers, at least 2 (GCN and MLP).
        input_dropout: Dropout on the features' non-zeros, a mask per replica.
        heads, out_heads: GAT's attention heads; output heads are averaged.
        attention_dropout: GAT's dropout on attention coefficients.
        steps, teleport: APPNP's K and α.

    Example:
        >>> Model("gat", heads=4).width
        256
    """

    name: str = "gcn"
    hidden: int = 64
    layers: int = 2
    input_dropout: float = 0.0
    heads: int = 8
    out_heads: int = 1
    attention_dropout: float = 0.0
    steps: int = 10
    teleport: float = 0.1

    def __post_init__(self) -> None:
        from propreg.engine.models import known_model

        _check_kind(self, known_model(self.name))

    @classmethod
    def kind_of(cls, name: object) -> "type[Model]":
        """The class of an architecture's settings; ``Model`` for an unknown name, which the engine will refuse."""
        from propreg.engine.models import known_model

        entry = known_model(name)
        return Model if entry is None else entry.kind

    @classmethod
    def of(cls, name: str, **settings: Any) -> "Model":
        """The settings of an architecture, whatever their class.

        Example:
            >>> Model.of("gat", heads=4) == Model("gat", heads=4)
            True
        """
        return cls.kind_of(name)(name=name, **settings)

    @property
    def architecture(self) -> "Architecture":
        """What the program knows of the architecture; raises for an unknown name."""
        from propreg.engine.models import find_model

        return find_model(self.name)

    @property
    def width(self) -> int:
        """The columns of a hidden layer, those of all heads of a GAT."""
        return self.architecture.width(self)

    def identity(self) -> dict[str, Any]:
        """The settings that random streams depend on: the architecture, not the dropout rates."""
        return {name: getattr(self, name) for name in ("name", *self.architecture.streams)}

    def beside(self, shared: "Model") -> tuple[tuple[str, float], ...]:
        """What differs from the model that the replicas of a program share, for :attr:`Replica.own`."""
        mine = ((name, getattr(self, name)) for name in self.architecture.per_replica)
        return tuple((name, value) for name, value in mine if value != getattr(shared, name))

    @property
    def program(self) -> "Model":
        """The same for all models that one program can train: of the settings per replica, which are above 0."""
        signs: dict[str, Any] = {name: float(getattr(self, name) > 0) for name in self.architecture.per_replica}
        return replace(self, **signs)


@dataclass(frozen=True)
class Method:
    """A regularizer and its options; its strength belongs to the replica.

    The options here are those of the built-in regularizers; one that has others has a subclass of its own, see
    :class:`propreg.engine.regularizers.regularizer.Regularizer`.

    Args:
        name: ``"plain"``, ``"preg"``, ``"laplacian"``, ``"confidence_penalty"``, ``"label_smoothing"`` or another of
            :data:`propreg.engine.regularizers.REGULARIZERS`.
        phi, norm, add_self_loops, detach, threshold: As for :func:`propreg.preg`.
        phi_scale: A factor on φ (1/C is what the official history computed for KL).
        second_pass: Propagate the logits of a second forward pass with its own dropout, as the official code does.
        reduction, variant: As for :func:`propreg.laplacian` and :func:`propreg.confidence_penalty`.
        nodes: Which nodes the confidence penalty counts: ``"train"`` or ``"all"``.
        schedule: ``"constant"`` or ``"annealed"``.
    """

    name: str = "plain"
    phi: str = "cross_entropy"
    norm: Literal["rw", "sym"] = "rw"
    add_self_loops: bool = False
    detach: Literal["self", "neighbors", "neighbours"] | None = field(
        # The keys of recorded runs have the British spelling.
        default=None,
        metadata={"written": {"neighbors": "neighbours"}},
    )
    threshold: float | None = None
    phi_scale: float = 1.0
    second_pass: bool = False
    reduction: Literal["mean", "sum"] = "mean"
    variant: Literal["paper", "official"] = "paper"
    nodes: Literal["train", "all"] = "train"
    schedule: Literal["constant", "annealed"] = "constant"

    def __post_init__(self) -> None:
        from propreg.engine.regularizers import REGULARIZERS

        _check_kind(self, REGULARIZERS.get(self.name) if isinstance(self.name, str) else None)
        if self.detach == "neighbours":  # the spelling of earlier versions stays valid
            object.__setattr__(self, "detach", "neighbors")

    @classmethod
    def kind_of(cls, name: object) -> "type[Method]":
        """The class of a regularizer's options; ``Method`` for an unknown name, which the engine will refuse."""
        from propreg.engine.regularizers import REGULARIZERS

        return REGULARIZERS[name].kind if isinstance(name, str) and name in REGULARIZERS else Method

    @classmethod
    def of(cls, name: str, **options: Any) -> "Method":
        """The options of a regularizer, whatever their class."""
        return cls.kind_of(name)(name=name, **options)

    @property
    def regularizer(self) -> "Regularizer":
        """What the program knows of the regularizer; raises for an unknown name."""
        from propreg.engine.regularizers import REGULARIZERS

        return REGULARIZERS[self.name]

    @classmethod
    def preset(cls, name: Literal["paper", "reference"]) -> "Method":
        """P-reg as the paper writes it, or as the official code computes it."""
        return Method("preg").regularizer.preset(name)


def _check_kind(settings: Model | Method, entry: "Architecture | Regularizer | None") -> None:
    """Raise if a known name has settings of another class."""
    name, given = settings.name, type(settings)
    if entry is not None and given is not (kind := entry.kind):
        raise ValueError(f"{name!r} has settings of class {kind.__name__}, got {given.__name__}: use {kind.__name__}.")


@dataclass(frozen=True)
class Sizes:
    """The numbers of a graph that memory and time depend on.

    Args:
        nodes, features, classes: Their counts.
        edges: Stored edges: an undirected one counts twice.
        nonzeros: Stored features.
        kernels: Whether Triton kernels of float32 compute, which keep less for a backward pass.
    """

    nodes: int
    edges: int
    features: int
    classes: int
    nonzeros: int = 0
    kernels: bool = False


@dataclass(frozen=True)
class Protocol:
    """How a training stops and which epoch is reported.

    Args:
        rule: ``"official"`` is the released code's rule: only a strict improvement of the validation accuracy resets
            the counter, a tie leaves it alone, and more than ``patience`` worse epochs stop the run; the latest best
            epoch is reported. ``"strict"`` is the paper's wording: stop when the validation accuracy has not increased
            for ``patience`` epochs; the first best epoch is reported. ``"val_loss"`` does the same with the validation
            cross entropy; ``"loss_or_accuracy"`` goes on while either of the two is no worse, and reports the lowest
            loss of those epochs. ``"loss_window"`` and ``"last_in_window"`` stop once the loss exceeds its mean over
            the ten epochs before, from epoch 101 or 11 on, and report the lowest loss or the last epoch;
            ``"last_on_rise"`` stops at the first epoch whose loss is above the one before. The others train for
            ``max_epochs``: ``"latest_best"`` and ``"first_best"`` report the latest or first epoch with the best
            validation accuracy, ``"lowest_val_loss"`` the first with the lowest validation cross entropy, ``"last"``
            the last one.
        max_epochs: Stop after so many epochs.
        weight_decay_scope: Decay ``"all"`` parameters, or those of the ``"first"`` layer.
        optimizer: ``"adam"``, ``"adamw"`` (Adam whose weight decay is not part of the gradient) or ``"sgd"``; a
            training in phases of its own has its own.
    """

    rule: RuleName = "official"
    max_epochs: int = 10_000
    weight_decay_scope: Literal["all", "first"] = "all"
    optimizer: Literal["adam", "adamw", "sgd"] = "adam"


@dataclass(frozen=True)
class Replica:
    """One training of the batch."""

    seed: int = 0
    split: str = "0"
    strength: float = 0.0
    lr: float = 0.01
    weight_decay: float = 5e-4
    dropout: float = 0.5
    patience: int = 200
    unmask: float = 1.0  # the share of nodes that P-reg counts, the paper's α
    own: tuple[tuple[str, float], ...] = ()  # settings of the model, by name, that are this replica's own

    def setting(self, model: Model, name: str) -> Any:
        """A setting of the model, or this replica's own."""
        return dict(self.own).get(name, getattr(model, name))


@dataclass(frozen=True)
class PartMeasures:
    """The predictions on one part of a split at one epoch: what :mod:`propreg.metrics` computes from.

    Args:
        count: Nodes per class.
        right: Correctly predicted nodes per class.
        predicted: Predictions per class.
        nll: Sum of the negative log-likelihood over the nodes.
        brier: Sum of the squared distance between probabilities and the one-hot class over the nodes.
        bins: Per bin of confidence (15 of equal width, the last one closed): nodes, correct ones, sum of confidences.
        roc_auc: The area under the ROC curve of class 1, ties counting half; None unless there are two classes, both
            with nodes.
    """

    count: tuple[int, ...]
    right: tuple[int, ...]
    predicted: tuple[int, ...]
    nll: float
    brier: float
    bins: tuple[tuple[int, int, float], ...]
    roc_auc: float | None = None


@dataclass(frozen=True)
class Measures:
    """The measures of the validation and of the test nodes."""

    val: PartMeasures
    test: PartMeasures


@dataclass(frozen=True)
class Report:
    """What one selection rule reports of a run: an epoch, its accuracies (fractions), its measures if asked for."""

    rule: str
    epoch: int
    val: float
    test: float
    measures: Measures | None = None


@dataclass(frozen=True)
class Result:
    """A finished run; accuracies are fractions.

    ``val``, ``test`` and ``epoch`` are those of the protocol's own rule, which is also the first of ``reports``.
    """

    replica: Replica
    val: float
    test: float
    epoch: int
    epochs: int
    failed_at: int | None = None
    history: dict[str, Any] = field(default_factory=dict, compare=False)
    weights: dict[str, Any] = field(default_factory=dict, compare=False)
    reports: tuple[Report, ...] = ()
    error: str = field(default="", compare=False)
    """The traceback of a run that raised; empty for all others."""
    before: int = 0
    """The epochs of the phases before the reported one; ``epoch`` and ``epochs`` count them, too."""

    @property
    def failed(self) -> bool:
        """Whether the loss became NaN or infinite, or the run raised."""
        return self.failed_at is not None or bool(self.error)
