"""A run and its identity: one training as plain data ↔ canonical JSON ↔ SHA-256 key; and its outcome.

Runs that differ only in split and seed are one *cell*, the unit of every table. The canonical JSON of a cell leaves
out defaults, sorts keys and writes decimals as 0.15, never 0.15000000000000002; that of a run adds split and seed. The
key is the SHA-256 of that text: equal runs have equal keys on every machine, and a new setting with a default changes
no key. What is recorded of a run beyond its identity, such as its measures, is not part of it.
"""

import hashlib
import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields, replace
from functools import cache, cached_property
from typing import Any, Literal

from propreg.data.benchmarks.catalog import KNOWN, MOLECULE_SETS
from propreg.data.digests import join_digests
from propreg.engine.regularizers import REGULARIZERS
from propreg.engine.spec import Method, Model, Protocol, Replica, Report, Result
from propreg.jsonio import canonical, from_json, to_json
from propreg.store.errors import StudyError
from propreg.store.reports import ACCURACY, from_score, read_reports, to_score, write_reports

RECIPE = 1
"""Changes when the math of a training does, so that old and new results never share a key."""

SplitKind = Literal["official", "public", "scaffold", "own", "random", "natural"]
DRAWN_SPLITS = ("random", "natural")
"""Splits that are drawn: 20 training and 30 validation nodes of each class, or as many, whatever their class."""
OWN_SPLITS = ("own", *DRAWN_SPLITS)
"""The splits of graphs that are no benchmarks: that of the file, or drawn ones."""
Measure = Literal["", "distance"]
Labels = Literal["pyg", "authors"]
DATASET_PARTS = ("edges", "features", "labels")
"""What the digest of a dataset covers."""
RunId = tuple[str, int, int]
"""A run by the text of its cell, its split and its seed: cheaper than its key where there are a hundred thousand."""


@dataclass(frozen=True)
class Cell:
    """Everything of a run but its split's number and its seed.

    Args:
        dataset: Its name in the catalog, or that of a graph in an experiment of your own.
        digest: The content digest of its edges, features and labels, and of a split of its own.
        labels: Which labels CiteSeer's nodes without one get, see :func:`propreg.load_dataset`.
        split_kind: ``"official"`` for the ten random splits (on digits its seeded ones), ``"public"``,
            ``"scaffold"`` for molecules, ``"own"`` for that of a graph that is no benchmark, ``"random"`` and
            ``"natural"`` for :data:`DRAWN_SPLITS`.
        train_nodes: The public split's training set grown to this many nodes; the split's number is then the draw.
        per_class: The training nodes of a drawn split per class, if they are not 20.
        wrong_edges, wrong_labels: The shares of edges and of training labels that :mod:`propreg.data.mistakes`
            replaces; the digest is that of the graph as it was.
        normalize: Whether rows of features are normalized; a graph that is no benchmark is scaled as ``fit`` does.
        model, method, protocol: As the engine takes them.
        strength, lr, weight_decay, dropout, patience, unmask: As in :class:`propreg.engine.spec.Replica`.
        measure: ``"distance"`` also records the intra-class distance ω of the reported epoch.
        recipe: The number of the math, see :data:`RECIPE`.

    Example:
        >>> print(Cell("digits", "0" * 8, strength=0.1 + 0.05, method=Method("preg")).text)
        {"dataset":"digits","digest":"00000000","method":{"name":"preg"},"model":{"name":"gcn"},"strength":0.15}
    """

    dataset: str
    digest: str
    labels: Labels = "pyg"
    split_kind: SplitKind = "official"
    train_nodes: int | None = None
    per_class: int | None = None
    wrong_edges: float = 0.0
    wrong_labels: float = 0.0
    normalize: bool = True
    model: Model = field(default_factory=Model)
    method: Method = field(default_factory=Method)
    strength: float = 0.0
    protocol: Protocol = field(default_factory=Protocol)
    lr: float = 0.01
    weight_decay: float = 5e-4
    dropout: float = 0.5
    patience: int = 200
    unmask: float = 1.0
    measure: Measure = ""
    recipe: int = RECIPE

    def __post_init__(self) -> None:
        for name in ("strength", "lr", "weight_decay", "dropout", "unmask", "wrong_edges", "wrong_labels"):
            object.__setattr__(self, name, decimal(name, getattr(self, name)))
        for part in _PARTS:
            object.__setattr__(self, part, _decimals(getattr(self, part)))
        # Without a term none of its settings matters: P-reg at strength 0 is the plain run, and stored as that.
        entry = REGULARIZERS.get(self.method.name)
        if self.strength == 0 or (entry and (not entry.grid or (entry.masked and self.unmask == 0))):
            for name, value in (("method", Method()), ("strength", 0.0), ("unmask", 1.0)):
                object.__setattr__(self, name, value)

    @cached_property
    def text(self) -> str:
        """The canonical JSON."""
        return canonical(to_json(self))

    @classmethod
    def from_text(cls, text: str) -> "Cell":
        """Read what :attr:`text` wrote.

        Raises:
            StudyError: If it is not the JSON of a cell.
        """
        try:
            return cls.from_json(json.loads(text))
        except json.JSONDecodeError as error:
            raise StudyError(f"A run's identity must be JSON, got {text[:60]!r} ({error}).") from error

    @classmethod
    def from_json(cls, value: object) -> "Cell":
        """A cell from its parsed JSON."""
        if isinstance(value, dict):
            value = {k: from_json(_kind_of(k, v), v, StudyError) if k in _PARTS else v for k, v in value.items()}
        return from_json(cls, value, StudyError)

    def replica(self, split: int, seed: int) -> Replica:
        """The line of the engine's batch that trains this cell on one split with one seed."""
        return Replica(
            seed=seed,
            split=self.split_name(split),
            strength=self.strength,
            lr=self.lr,
            weight_decay=self.weight_decay,
            dropout=self.dropout,
            patience=self.patience,
            unmask=self.unmask,
        )

    def split_name(self, split: int) -> str:
        """The name under which the engine knows a split; random streams depend on it."""
        if self.train_nodes is not None:
            return f"{self.split_kind}/{split}/{self.train_nodes}"
        if self.per_class is not None:
            return f"{self.split_kind}/{split}/{self.per_class} per class"
        return f"{self.split_kind}/{split}"

    @property
    def plain(self) -> "Cell":
        """The same training without its term: the baseline of a difference."""
        return replace(self, method=Method(), strength=0.0, unmask=1.0)


@dataclass(frozen=True)
class Run:
    """One training: a cell on one split with one seed.

    Example:
        >>> run = Run(Cell("digits", "0" * 8), split=1, seed=2)
        >>> run.text[-20:], run.key[:8], Run.from_text(run.text) == run
        (',"seed":2,"split":1}', 'aa0e6291', True)
    """

    cell: Cell
    split: int
    seed: int

    @property
    def text(self) -> str:
        """The canonical JSON, of which the key is the SHA-256."""
        return _run_text(self.cell.text, self.split, self.seed)

    @cached_property
    def key(self) -> str:
        """64 hexadecimal digits."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @staticmethod
    def key_of(cell: str, split: int, seed: int) -> str:
        """The key of a run whose cell is known by its canonical text."""
        return hashlib.sha256(_run_text(cell, split, seed).encode()).hexdigest()

    @staticmethod
    def keys_of(cell: str, runs: Iterable[tuple[int, int]]) -> Iterator[str]:
        """:meth:`key_of` for many splits and seeds of one cell, whose text is hashed once."""
        start = hashlib.sha256(f'{{"cell":{cell},'.encode())
        for split, seed in runs:
            found = start.copy()
            found.update(f'"seed":{seed},"split":{split}}}'.encode())
            yield found.hexdigest()

    @classmethod
    def from_text(cls, text: str) -> "Run":
        """Read what :attr:`text` wrote."""
        try:
            value = json.loads(text)
            cell, split, seed = value["cell"], value["split"], value["seed"]
        except (json.JSONDecodeError, TypeError, KeyError) as error:
            raise StudyError(f"A run must be JSON with cell, split and seed, got {text[:60]!r}.") from error
        return cls(Cell.from_json(cell), _integer("split", split), _integer("seed", seed))

    def replica(self) -> Replica:
        """This run as a line of the engine's batch."""
        return self.cell.replica(self.split, self.seed)


@dataclass(frozen=True)
class Outcome:
    """The result of a run, in whole numbers or canonical decimals so that equal results are equal bytes.

    Args:
        val, test: Nodes classified correctly; for another metric than accuracy its value.
        val_of, test_of: The nodes of the part.
        epoch: The epoch that is reported.
        epochs: How many were trained.
        failed_at: The epoch whose loss was NaN or infinite.
        measures: The canonical JSON of further numbers by name, such as ω; None where there are none.
        metric: The metric of the scores.
        reports: The text of all its reports, see :mod:`propreg.store.reports`; None where there is nothing more to
            them than the scores above.
    """

    val: float
    val_of: int
    test: float
    test_of: int
    epoch: int
    epochs: int
    failed_at: int | None = None
    measures: str | None = None
    metric: str = ACCURACY
    reports: str | None = None

    @classmethod
    def of(
        cls,
        result: Result,
        val_of: int,
        test_of: int,
        numbers: dict[str, float] | None = None,
        *,
        metric: str = ACCURACY,
        measured: bool = False,
    ) -> "Outcome":
        """What is recorded of a result of the engine.

        Args:
            result: The result.
            val_of, test_of: The nodes of the part.
            numbers: Further numbers by name, such as ω; six digits are kept.
            metric: The metric of its scores.
            measured: Whether it was trained to have measures.
        """
        return cls(
            to_score(result.val, val_of, metric),
            val_of,
            to_score(result.test, test_of, metric),
            test_of,
            result.epoch,
            result.epochs,
            result.failed_at,
            None if numbers is None else canonical({k: float(f"{v:.6g}") for k, v in numbers.items()}),
            metric,
            write_reports(result.reports, val_of, test_of, metric, measured=measured),
        )

    @property
    def row(self) -> tuple[Any, ...]:
        """The columns of a stored row: metric and reports only where there are some, as before there were any."""
        values = tuple(vars(self).values())
        return values[:8] if values[8:] == (ACCURACY, None) else values

    @property
    def measured(self) -> dict[str, float]:
        """The further numbers by name."""
        return json.loads(self.measures) if self.measures else {}

    @property
    def test_score(self) -> float:
        """The fraction of test nodes classified correctly, or the value of the metric."""
        return from_score(self.test, self.test_of, self.metric)

    def agrees(self, other: "Outcome") -> bool:
        """Whether everything but the reports is equal."""
        return replace(self, reports=None) == replace(other, reports=None)

    def all_reports(self, rule: str) -> tuple[Report, ...]:
        """The reports of a run whose own rule is ``rule``, which comes first."""
        if self.reports:
            return read_reports(self.reports, self.val_of, self.test_of, self.metric)
        return (Report(rule, self.epoch, from_score(self.val, self.val_of, self.metric), self.test_score),)


@dataclass(frozen=True)
class Record:
    """A finished run, its outcome, and the id of the batch it was trained in."""

    run: Run
    outcome: Outcome
    batch: str


def labels_for(dataset: str, split_kind: str) -> Labels:
    """The labels that go with a kind of split: the official ones were drawn with the authors'.

    Example:
        >>> labels_for("citeseer", "official"), labels_for("citeseer", "public"), labels_for("cora", "official")
        ('authors', 'pyg', 'pyg')
    """
    known = KNOWN.get(dataset, {})
    differ = known.get("authors_labels", known.get("labels")) != known.get("labels")
    return "authors" if differ and split_kind == "official" else "pyg"


def dataset_digest(dataset: str, labels: Labels) -> str:
    """The digest of a benchmark dataset's edges, features and labels as published, without reading the data."""
    if dataset not in KNOWN:
        raise StudyError(f"No content digest is known for {dataset}: it cannot be part of an experiment.")
    known = KNOWN[dataset]
    chosen = {part: known[part] for part in (known if dataset in MOLECULE_SETS else DATASET_PARTS)}
    if labels == "authors":
        chosen["labels"] = known["authors_labels"]
    return join_digests(chosen)


def decimal(name: str, value: object) -> float:
    """A number as the decimal that was meant: twelve significant digits, no negative zero.

    Example:
        >>> decimal("strength", 3 * 0.05)
        0.15
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise StudyError(f"{name} must be a number, got {value!r}.")
    if not -sys.float_info.max <= value <= sys.float_info.max:  # an int can also be larger than any float
        raise StudyError(f"{name} must be finite, got {str(value)[:60]}.")
    return float(f"{value:.12g}") + 0.0


_PARTS: dict[str, type] = {"model": Model, "method": Method, "protocol": Protocol}


def _kind_of(part: str, value: object) -> type:
    """The class of a part: that of its model or method, which may have settings of its own."""
    kind = _PARTS[part]
    return kind.kind_of(value.get("name")) if isinstance(value, dict) and issubclass(kind, Model | Method) else kind


@cache
def _decimals(part: Any) -> Any:
    """The same settings with their floating-point numbers as decimals."""
    found = {each.name: getattr(part, each.name) for each in fields(part)}
    return replace(part, **{name: decimal(name, v) for name, v in found.items() if isinstance(v, float)})


def _integer(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise StudyError(f"{name} must be a whole number of at least 0, got {value!r}.")
    return value


def _run_text(cell: str, split: int, seed: int) -> str:
    return f'{{"cell":{cell},"seed":{seed},"split":{split}}}'
