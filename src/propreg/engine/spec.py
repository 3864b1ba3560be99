"""What is trained: the model, the method, the protocol, and one line per replica. Plain data, no behaviour."""

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

ModelName = Literal["gcn", "mlp", "gat", "appnp"]
MethodName = Literal["plain", "preg", "laplacian", "confidence_penalty", "label_smoothing"]


@dataclass(frozen=True)
class Model:
    """An architecture. Dropout rates are not part of it where a replica sets its own.

    Args:
        name: ``"gcn"``, ``"mlp"``, ``"gat"`` or ``"appnp"``.
        hidden: Width of a hidden layer (of one head, for GAT).
        layers: Number of layers, at least 2 (GCN and MLP).
        input_dropout: Dropout on the features' non-zeros, a mask per replica.
        heads, out_heads: GAT's attention heads; output heads are averaged.
        attention_dropout: GAT's dropout on attention coefficients.
        steps, teleport: APPNP's K and α.
    """

    name: ModelName = "gcn"
    hidden: int = 64
    layers: int = 2
    input_dropout: float = 0.0
    heads: int = 8
    out_heads: int = 1
    attention_dropout: float = 0.0
    steps: int = 10
    teleport: float = 0.1

    @property
    def width(self) -> int:
        """The columns of a hidden layer, those of all heads of a GAT."""
        return self.hidden * (self.heads if self.name == "gat" else 1)

    def identity(self) -> dict[str, Any]:
        """The settings that random streams depend on: the architecture, not the dropout rates."""
        mine = asdict(self)
        for rate in ("input_dropout", "attention_dropout"):
            mine.pop(rate)
        if self.name != "gat":
            mine = {k: v for k, v in mine.items() if k not in ("heads", "out_heads")}
        if self.name != "appnp":
            mine = {k: v for k, v in mine.items() if k not in ("steps", "teleport")}
        return mine


@dataclass(frozen=True)
class Method:
    """A regulariser and its options; its strength belongs to the replica.

    Args:
        name: ``"plain"``, ``"preg"``, ``"laplacian"``, ``"confidence_penalty"`` or ``"label_smoothing"``.
        phi, norm, add_self_loops, detach, threshold: As for :func:`propreg.preg`.
        phi_scale: A factor on φ (1/C is what the official history computed for KL).
        second_pass: Propagate the logits of a second forward pass with its own dropout, as the official code does.
        reduction, variant: As for :func:`propreg.laplacian` and :func:`propreg.confidence_penalty`.
        nodes: Which nodes the confidence penalty counts: ``"train"`` or ``"all"``.
        schedule: ``"constant"`` or ``"annealed"``.
    """

    name: MethodName = "plain"
    phi: str = "cross_entropy"
    norm: Literal["rw", "sym"] = "rw"
    add_self_loops: bool = False
    detach: Literal["self", "neighbours"] | None = None
    threshold: float | None = None
    phi_scale: float = 1.0
    second_pass: bool = False
    reduction: Literal["mean", "sum"] = "mean"
    variant: Literal["paper", "official"] = "paper"
    nodes: Literal["train", "all"] = "train"
    schedule: Literal["constant", "annealed"] = "constant"

    @property
    def usual(self) -> bool:
        """Whether it is P-reg with cross entropy and nothing detached: almost every run, with functions of its own."""
        return (self.name, self.phi, self.detach) == ("preg", "cross_entropy", None)

    @classmethod
    def preset(cls, name: Literal["paper", "reference"]) -> "Method":
        """P-reg as the paper writes it, or as the official code computes it."""
        if name == "paper":
            return cls("preg")
        return cls("preg", norm="sym", add_self_loops=True, second_pass=True)


@dataclass(frozen=True)
class Protocol:
    """How a training stops and which epoch is reported.

    ``"official"`` is the released code's rule: only a strict improvement of validation accuracy resets the counter, a
    tie leaves it alone, and more than ``patience`` worse epochs stop the run; the latest best epoch is reported.
    ``"strict"`` is the paper's wording: stop when validation accuracy has not increased for ``patience`` epochs; the
    first best epoch is reported.
    """

    rule: Literal["official", "strict"] = "official"
    max_epochs: int = 10_000
    weight_decay_scope: Literal["all", "first"] = "all"


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


@dataclass(frozen=True)
class Result:
    """What a finished replica is handed out as; accuracies are fractions."""

    replica: Replica
    val: float
    test: float
    epoch: int
    epochs: int
    failed_at: int | None = None
    history: dict[str, Any] = field(default_factory=dict, compare=False)
    weights: dict[str, Any] = field(default_factory=dict, compare=False)

    @property
    def failed(self) -> bool:
        """Whether the loss became NaN or infinite."""
        return self.failed_at is not None
