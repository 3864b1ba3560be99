"""A run and its identity: one training, as plain data ↔ canonical JSON ↔ SHA-256 key.

Runs that differ only in split and seed are one *cell*, the unit of every table. The canonical JSON of a cell leaves
out whatever has its default value, sorts its keys and writes decimals as 0.15, never 0.15000000000000002; that of a run
adds the two numbers. The key is the SHA-256 of that text, so that equal runs have equal keys on every machine.
"""

import hashlib
import json
import sys
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cache, cached_property
from typing import Any, Literal, get_args, get_origin, get_type_hints

from propreg.engine.spec import Method, Model, Protocol, Replica
from propreg.study.errors import StudyError
from propreg.study.plausible import LARGEST

RECIPE = 1
"""Changes when the maths of a training does, so that old and new results never share a key."""

SplitKind = Literal["official", "public"]
Measure = Literal["", "distance"]


@dataclass(frozen=True)
class Cell:
    """Everything of a run but its split's number and its seed.

    Args:
        dataset: Its name in the catalogue.
        digest: The content digest of its edges, features and labels.
        labels: Which labels CiteSeer's nodes without one get, see :func:`propreg.load_dataset`.
        split_kind: ``"official"`` for the ten random splits (on digits its seeded ones), ``"public"``.
        train_nodes: The public split's training set grown to this many nodes; the split's number is then the draw.
        normalize: Whether rows of features are normalised.
        model, method, protocol: As the engine takes them.
        strength, lr, weight_decay, dropout, patience, unmask: As in :class:`propreg.engine.spec.Replica`.
        measure: ``"distance"`` also records the intra-class distance ω of the reported epoch.
        recipe: The number of the maths, see :data:`RECIPE`.

    Example:
        >>> print(Cell("digits", "0" * 8, strength=0.1 + 0.05, method=Method("preg")).text)
        {"dataset":"digits","digest":"00000000","method":{"name":"preg"},"model":{"name":"gcn"},"strength":0.15}
    """

    dataset: str
    digest: str
    labels: Literal["pyg", "authors"] = "pyg"
    split_kind: SplitKind = "official"
    train_nodes: int | None = None
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
        for name in ("strength", "lr", "weight_decay", "dropout", "unmask"):
            object.__setattr__(self, name, decimal(name, getattr(self, name)))
        for part in _PARTS:
            object.__setattr__(self, part, _decimals(getattr(self, part)))
        # Without a term, nothing of the term matters: P-reg at strength 0 is the plain run, and stored as that.
        if self.strength == 0 or self.method.name == "plain" or (self.method.name == "preg" and self.unmask == 0):
            for name, value in (("method", Method()), ("strength", 0.0), ("unmask", 1.0)):
                object.__setattr__(self, name, value)

    @cached_property
    def text(self) -> str:
        """The canonical JSON."""
        return json.dumps(_sparse(self), sort_keys=True, separators=(",", ":"), allow_nan=False)

    @classmethod
    def from_text(cls, text: str) -> "Cell":
        """Read what :attr:`text` wrote.

        Raises:
            StudyError: If it is not the JSON of a cell.
        """
        try:
            return cls.from_json(json.loads(text))
        except json.JSONDecodeError as error:
            raise StudyError(f"A run's identity must be JSON, but {text[:60]!r} came ({error}).") from error

    @classmethod
    def from_json(cls, value: object) -> "Cell":
        """A cell from its parsed JSON."""
        return _dense(cls, value)  # type: ignore[no-any-return]

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
        return f"{self.split_kind}/{split}"

    @property
    def plain(self) -> "Cell":
        """The same training without its term: what a difference is taken to."""
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

    @classmethod
    def from_text(cls, text: str) -> "Run":
        """Read what :attr:`text` wrote."""
        try:
            value = json.loads(text)
            cell, split, seed = value["cell"], value["split"], value["seed"]
        except (json.JSONDecodeError, TypeError, KeyError) as error:
            raise StudyError(f"A run must be JSON with cell, split and seed, but {text[:60]!r} came.") from error
        return cls(Cell.from_json(cell), _integer("split", split), _integer("seed", seed))

    def replica(self) -> Replica:
        """This run as a line of the engine's batch."""
        return self.cell.replica(self.split, self.seed)


def decimal(name: str, value: object) -> float:
    """A number as the decimal that was meant: twelve significant digits, no negative zero.

    Example:
        >>> decimal("strength", 3 * 0.05)
        0.15
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise StudyError(f"{name} must be a number, but {value!r} came.")
    if not -sys.float_info.max <= value <= sys.float_info.max:  # a whole number, too, may be larger than any float
        raise StudyError(f"{name} must be finite, but {str(value)[:60]} came.")
    return float(f"{value:.12g}") + 0.0


_PARTS = {"model": Model, "method": Method, "protocol": Protocol}


@cache
def _decimals(part: Any) -> Any:
    """The same settings with their floating-point numbers as decimals."""
    found = {each.name: getattr(part, each.name) for each in fields(part)}
    return replace(part, **{name: decimal(name, v) for name, v in found.items() if isinstance(v, float)})


@cache
def _defaults(kind: Any) -> tuple[tuple[str, Any], ...]:
    return tuple((each.name, each.default) for each in fields(kind))


def _sparse(value: Any) -> dict[str, Any]:
    """A dataclass as a dict without what has its default value; a part keeps at least its name."""
    found: dict[str, Any] = {}
    kind: Any = type(value)
    for name, default in _defaults(kind):
        mine = getattr(value, name)
        if name in _PARTS:
            inner = _sparse_part(mine)
            if inner:
                found[name] = inner
        elif mine != default:
            found[name] = mine
    return found


@cache
def _sparse_part(part: Any) -> dict[str, Any]:
    return _sparse(part) | ({"name": part.name} if hasattr(part, "name") else {})


def _dense(kind: type, value: object) -> Any:
    if not isinstance(value, dict):
        raise StudyError(f"{kind.__name__} must be a JSON object, but {str(value)[:60]!r} came.")
    known = {each.name: each for each in fields(kind)}
    for name in value:
        if name not in known:
            raise StudyError(f"{kind.__name__} has no setting {name!r}: it comes from a newer propreg, or is misspelt.")
    for name, each in known.items():
        if name not in value and each.default is MISSING and each.default_factory is MISSING:
            raise StudyError(f"{kind.__name__} needs {name!r}, which is missing.")
        if name in value and name not in _PARTS:
            _check_type(kind, name, value[name])
    return kind(**{k: _dense(_PARTS[k], v) if kind is Cell and k in _PARTS else v for k, v in value.items()})


_WORDS = {str: "text", bool: "true or false", int: "a whole number", float: "a number", type(None): "null"}


def _check_type(kind: type, name: str, value: object) -> None:
    """Refuse a value of another type than a setting has; which of its values are known is not looked at."""
    known = _types(kind)[name]
    if type(value) not in known and not (type(value) is int and float in known):
        words = " or ".join(word for each, word in _WORDS.items() if each in known)
        raise StudyError(f"{name} must be {words}, but {_WORDS.get(type(value), 'something else')} came.")
    if isinstance(value, int) and abs(value) > LARGEST:
        raise StudyError(f"{name} is far too large.")


@cache
def _types(kind: type) -> dict[str, set[type]]:
    """The types of a dataclass's settings."""
    return {name: _leaves(hint) for name, hint in get_type_hints(kind).items()}


def _leaves(hint: Any) -> set[type]:
    if get_origin(hint) is Literal:
        return {type(value) for value in get_args(hint)}
    return {leaf for inner in get_args(hint) for leaf in _leaves(inner)} or {hint}


def _integer(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise StudyError(f"{name} must be a whole number of at least 0, but {value!r} came.")
    return value


def _run_text(cell: str, split: int, seed: int) -> str:
    return f'{{"cell":{cell},"seed":{seed},"split":{split}}}'
