"""What ``propreg run`` trains: the graph, its splits, and settings that are quick on the digits, thorough elsewhere."""

import math
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from propreg.data.benchmarks.catalog import AM_GCN, NUM_SPLITS, MoleculeSet, find
from propreg.data.benchmarks.load import load_node_graph
from propreg.data.describe import doubtful_labels, one_way, unused_classes
from propreg.data.errors import DataError
from propreg.data.graph import Graph, Split
from propreg.data.own.load import read_graph
from propreg.data.scaling import Scale, Scaling
from propreg.data.splits import RANDOM_SPLITS, official_splits, random_split
from propreg.engine.models import MODELS
from propreg.engine.regularizers import REGULARIZERS
from propreg.engine.spec import Model
from propreg.fitting.picking import Select

if TYPE_CHECKING:
    from propreg.fitting.batching import BatchSize

PER_CLASS = 20, 30  # training and validation nodes of a random split, as in the paper


@dataclass(frozen=True)
class Training:
    """The settings of :func:`propreg.fit` that a run chooses by itself."""

    seeds: int | None
    lr: float
    patience: int
    max_epochs: int
    weight_decay: float = 5e-4


# The digits run is for a look within seconds: ten splits instead of seeds, since the split is the unit of the
# statistics, and of the learning rates from 0.01 to 0.1 the one with which a hundred epochs bring the plain model
# furthest on validation.
QUICK = Training(seeds=1, lr=0.05, patience=50, max_epochs=100)
THOROUGH = Training(seeds=None, lr=0.01, patience=100, max_epochs=1000)
_SHARED = (
    "The splits share training and test nodes and differ in validation nodes only: the interval and p leave out how "
    "much the choice of training and test nodes matters. Folds differ in all three (--test cv)."
)


@dataclass(frozen=True)
class Source:
    """A graph, its splits by name, notes on how they were made, and what is done to the features.

    With ``test="cv"`` the splits are folds, of which each picks its own strength. ``options`` are those of the command
    line by which the graph was read and its splits were drawn.
    """

    name: str
    graph: Graph
    splits: Mapping[str, Split]
    notes: tuple[str, ...] = ()
    quick: bool = False
    scale: Scale | Scaling = "auto"
    test: Literal["cv"] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Plan:
    """Everything that is going to be trained."""

    source: Source
    model: str
    method: str
    preset: Literal["paper", "reference"]
    mus: tuple[float, ...]
    seeds: int
    lr: float
    weight_decay: float
    patience: int
    max_epochs: int
    device: str
    scale: Scale | Scaling = "auto"
    metric: str = "accuracy"
    select: Select | None = None
    dropout: float | None = None
    architecture: Mapping[str, int] = field(default_factory=dict)
    batch: "BatchSize" = "auto"

    @property
    def spec(self) -> Model:
        """The settings of the model."""
        return Model.of(self.model, **{**MODELS[self.model].defaults, **self.architecture})

    @property
    def runs(self) -> int:
        """The number of trainings."""
        return len(self.mus) * len(self.source.splits) * self.seeds


def make_plan(
    source: Source,
    *,
    model: str = "gcn",
    method: str = "preg",
    preset: Literal["paper", "reference"] = "paper",
    mu: Any = "auto",
    seeds: int | None = None,
    max_epochs: int | None = None,
    device: str = "auto",
    scale: Scale | None = None,
    metric: str = "accuracy",
    select: Select | None = None,
    dropout: float | None = None,
    training: Mapping[str, Any] | None = None,
    architecture: Mapping[str, int | None] | None = None,
    batch: "BatchSize" = "auto",
) -> Plan:
    """Fill in defaults, and refuse what cannot be trained before anything is.

    Args:
        source: The graph.
        model, method, preset, mu, seeds, device, scale, metric, select, dropout, batch: As of :func:`propreg.fit`.
        max_epochs: Most epochs of a training.
        training: ``lr``, ``weight_decay`` and ``patience``; None for the model's own.
        architecture: Settings of the model, like ``hidden``; None for its own.
    """
    from propreg.devices import find_device
    from propreg.engine.validate import check_settings
    from propreg.fitting.inputs import number_of_seeds, strengths

    chosen = QUICK if source.quick else THOROUGH
    if isinstance(mu, str) and mu == "auto" and source.quick:
        mu = REGULARIZERS[method].first_look or mu
    own = MODELS[model].training
    look = {"max_epochs": chosen.max_epochs} if source.quick else {}
    given = {**(training or {}), "max_epochs": max_epochs}
    trained: dict[str, Any] = {**asdict(chosen), **own, **look, **_given(given)}
    settings = _given(architecture or {})
    check_settings(Model.of(model, **settings))
    plan = Plan(
        source,
        model,
        method,
        preset,
        strengths(mu, method) if MODELS[model].trained else (0.0,),
        number_of_seeds(seeds or (chosen.seeds if len(source.splits) > 1 else None), len(source.splits)),
        trained["lr"],
        trained["weight_decay"],
        trained["patience"],
        trained["max_epochs"],
        str(find_device(device)),
        source.scale if scale in (None, "auto") else scale,
        metric,
        select,
        dropout,
        settings,
        batch,
    )
    _check(plan)
    return plan


def _check(plan: Plan) -> None:
    """Raise what the training would raise of settings: a wrong option is known before anything is made."""
    from propreg.engine.validate import check
    from propreg.fitting.batching import check_batch
    from propreg.fitting.inputs import number, training
    from propreg.fitting.splits import judgeable

    spec = plan.spec
    rate = spec.architecture.dropout if plan.dropout is None else number("dropout", plan.dropout)
    names = ("lr", "weight_decay", "patience", "max_epochs")
    like, protocol = training(spec, {name: getattr(plan, name) for name in names}, rate)
    method = REGULARIZERS[plan.method].preset(plan.preset)
    check_batch(plan.batch, spec, method)
    splits = {name: judgeable(split) for name, split in plan.source.splits.items()}
    replicas = [replace(like, split=name, strength=mu) for name in splits for mu in plan.mus]
    check(spec, method, replicas, protocol, splits, plan.source.graph.y)


def _given(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if value is not None}


def parse_mu(text: str, method: str = "preg") -> str | tuple[float, ...]:
    """``"auto"``, a number or a comma list, as :func:`propreg.fit` takes it.

    Raises:
        ValueError: If it is none of these, a number is not finite or below 0, or none is above 0: the plain model is
            always trained, and needs something to be compared with.

    Example:
        >>> parse_mu("0.2,0.5"), parse_mu("auto")
        ((0.2, 0.5), 'auto')
    """
    if text.strip().lower() == "auto":
        return "auto"
    try:
        found = tuple(float(part) for part in text.split(","))
    except ValueError:
        raise ValueError(f"--mu must be auto, a number or a list like 0.2,0.5, got {text!r}.") from None
    if not all(math.isfinite(mu) and mu >= 0 for mu in found):
        raise ValueError(f"--mu must hold finite numbers of at least 0, got {text!r}.")
    if max(found) == 0:
        raise ValueError("--mu needs a strength above 0: the plain model, mu = 0, is always trained beside it.")
    if REGULARIZERS[method].bounded and max(found) > 1:
        raise ValueError(f"--mu must lie between 0 and 1 for {method}, got {text!r}.")
    return found


def load_source(
    dataset: str,
    *,
    splits: int | None = None,
    test: Literal["cv"] | None = None,
) -> Source:
    """A benchmark dataset with its official splits, or folds with ``test="cv"``.

    Example:
        >>> source = load_source("digits", splits=3)
        >>> source.graph.num_nodes, list(source.splits)
        (1797, ['0', '1', '2'])
    """
    entry = find(dataset)
    if isinstance(entry, MoleculeSet):
        raise DataError(f"{entry.name} holds many graphs, and propreg run takes one: choose a node dataset like cora.")
    quick = not entry.file
    count = (NUM_SPLITS if quick else RANDOM_SPLITS) if splits is None else splits
    if test is None and not 1 <= count <= NUM_SPLITS:
        raise DataError(f"{entry.name} has {NUM_SPLITS} official splits, got --splits {count}.")
    # Split 0, so that CiteSeer has the labels that the official splits were drawn with.
    graph = load_node_graph(dataset, split=0)
    # Without the split's digest: random streams name the split themselves, as in the study.
    parts = {part: graph.digests[part] for part in ("edges", "features", "labels")}
    graph = replace(graph, split=None, digests=parts)
    scale: Scale | Scaling = "auto"
    if quick:
        graph = replace(graph, class_names=tuple(str(c) for c in range(graph.num_classes)))
        pixels = np.zeros(graph.num_features, np.float32), np.full(graph.num_features, 16, np.float32)
        scale = Scaling("standard", *pixels, reason="Pixels were divided by 16, so they lie between 0 and 1.")
    if test is not None:
        return Source(entry.name, graph, _folds(graph, splits, test), quick=quick, scale=scale, test=test)
    named = {str(i): split for i, split in enumerate(official_splits(dataset)[:count])}
    notes = (_SHARED,) if entry.source == AM_GCN and count > 1 else ()
    return Source(entry.name, graph, named, notes, quick=quick, scale=scale)


def _folds(graph: Graph, splits: int | None, test: Literal["cv"]) -> Mapping[str, Split]:
    from propreg.fitting.splits import named_splits

    try:
        return named_splits(graph, splits, None, None, test=test)
    except ValueError as error:
        raise DataError(str(error).replace("test='cv'", "--test cv").replace("splits must", "--splits must")) from None


def load_own(
    path: str | os.PathLike[str],
    *,
    directed: bool = False,
    columns: Mapping[str, str] | None = None,
    splits: int | None = None,
    train_per_class: int | None = None,
    val_per_class: int | None = None,
    test: Literal["cv"] | None = None,
) -> Source:
    """A user's graph, with its own split or random ones, by default of 20 and 30 nodes per class, or folds."""
    from propreg.fitting.inputs import need_classes

    if directed and not os.path.isdir(path):
        raise DataError(f"{path}: --directed is for a folder's edges.csv, and edges here are used as listed: omit it.")
    graph = read_graph(path, directed=directed, columns=columns)
    need_classes(graph, str(path))
    name = graph.name or "graph"
    doubts = (
        "" if directed else one_way(graph, "list both directions of each edge"),
        unused_classes(graph),
        doubtful_labels(graph),
    )
    notes = [doubt for doubt in doubts if doubt]
    if test is not None:
        notes += ["The graph's own split was not used: folds of all labeled nodes were."] * (graph.split is not None)
        return Source(name, replace(graph, split=None), _folds(graph, splits, test), tuple(notes), test=test)
    if graph.split is not None:
        asked = {"--splits": splits, "--train-per-class": train_per_class, "--val-per-class": val_per_class}
        if given := [name for name, value in asked.items() if value is not None]:
            raise DataError(
                f"{path}: has a split of its own, so no random splits are drawn: leave {' and '.join(given)} out."
            )
        return Source(name, graph, {"own": graph.split}, tuple(notes))
    train, val = train_per_class or PER_CLASS[0], val_per_class or PER_CLASS[1]
    needed = train + val + 1
    counts = np.unique(graph.y[graph.y >= 0], return_counts=True)[1]
    if few := int((counts < needed).sum()):
        notes.append(
            f"{few} of {len(counts)} classes have fewer than {needed} labeled nodes: half of their nodes were used "
            "for testing, the rest for training and validation."
        )
    drawn = {
        f"random-{seed}": random_split(graph.y, train, val, seed, small_classes="shrink")
        for seed in range(RANDOM_SPLITS if splits is None else splits)
    }
    if not all(part.any() for split in drawn.values() for part in (split.train, split.val, split.test)):
        raise DataError(
            f"{path}: {counts.sum()} labeled nodes are too few to train, choose and test on: label at least "
            f"{needed} of each class, or 3 with --train-per-class 1 --val-per-class 1."
        )
    return Source(name, graph, drawn, tuple(notes))
