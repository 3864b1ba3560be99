"""A part of an experiment, as its TOML file has it, and the lines of a table that it stands for.

A *line* is one entry of a table, for example GCN with P-reg (official-code form) on Cora: a cell for each strength,
each on the same splits and seeds.

An experiment may ask for ``measures = true`` and for further selection ``rules``. Both are recorded with a run and are
no part of its identity: a run that is recorded without them is trained again for such an experiment, see
:meth:`propreg.store.store.Store.add`.

With ``published = true`` the models of a part are trained with their published settings on each dataset (their
``recipes``). A ``rule`` of the part then replaces the model's own, which becomes one of the ``rules``.

A part with a ``space`` is a search, see :mod:`propreg.study.spec.search`; the strengths of one with ``beyond`` depend
on what is recorded, see :mod:`propreg.study.spec.unfold`.

Lists of ``train_nodes``, ``per_class``, ``wrong_edges`` or ``wrong_labels`` give a line to each of their values, and to
each combination: the sizes of training sets, and the shares that :mod:`propreg.data.mistakes` makes wrong.

``later`` strengths are in batches of their own, and with ``split_group = 5`` each five splits are: an experiment that
adds to the strengths or the splits of another one has that one's batches, and shares its recorded runs.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, get_args

from propreg.data.benchmarks.catalog import MOLECULE_SETS, MoleculeSet, NodeSet
from propreg.engine.spec import CORRECTED, Protocol, RuleName
from propreg.store.batch import GraphFile
from propreg.store.errors import StudyError, unknown
from propreg.store.run import (
    DRAWN_SPLITS,
    OWN_SPLITS,
    Cell,
    Measure,
    Run,
    SplitKind,
    dataset_digest,
    decimal,
    labels_for,
)
from propreg.study.spec.own import Entry, Names
from propreg.study.spec.presets import NamedMethod, named_grid, named_method, published, weight_decay
from propreg.study.spec.search import Halving, Space, configurations

_NEEDED = ("datasets", "models", "methods", "splits", "seeds")
_KEYS = {
    "datasets", "models", "methods", "splits", "seeds", "strengths", "split_kind", "train_nodes", "unmask",
    "measure", "measures", "normalize", "rule", "rules", "weight_decay_scope", "max_epochs", "patience", "variant",
    "batch", "lr", "published", "weight_decay", "dropout", "space", "rungs", "fresh",
    "beyond", "later", "split_group", "per_class", "wrong_edges", "wrong_labels",
}  # fmt: skip
_SWEPT: dict[str, Callable[[float], str]] = {
    "train_nodes": lambda n: f"{n:g} training nodes",
    "per_class": lambda n: f"{n:g} per class",
    "wrong_edges": lambda share: f"{100 * share:g} % wrong edges",
    "wrong_labels": lambda share: f"{100 * share:g} % wrong labels",
}
"""Settings of a cell of which a part has a list, in words."""


@dataclass(frozen=True)
class Line:
    """One model with one method on one dataset: a cell per strength, each on ``splits`` × ``seeds``.

    ``rules`` and ``measures`` are what is recorded beside the accuracies of the protocol's own rule. ``own_rule`` is
    the one that the model was published with, where that is known; ``graph`` is the file of one that is no benchmark.
    Of a ``search`` it is a rung, with a cell per configuration. ``beyond`` are the strengths that it gets where the
    largest is picked, and ``split_group`` is how many splits are batched apart from the others.
    """

    dataset: str
    model: str
    method: NamedMethod
    variant: str
    cells: tuple[Cell, ...]
    splits: tuple[int, ...]
    seeds: tuple[int, ...]
    batch: int | None = None
    rules: tuple[str, ...] = ()
    measures: bool = False
    own_rule: str = ""
    graph: GraphFile | None = None
    search: Halving | None = None
    rung: int = 0
    beyond: tuple[float, ...] = ()
    split_group: int | None = None

    def runs(self) -> Iterator[Run]:
        """All runs of the line."""
        for cell in self.cells:
            for split in self.splits:
                for seed in self.seeds:
                    yield Run(cell, split, seed)

    @property
    def split_groups(self) -> list[tuple[int, ...]]:
        """The splits that are batched together."""
        size = self.split_group or len(self.splits)
        return [self.splits[i : i + size] for i in range(0, len(self.splits), size)]

    @property
    def unfolds(self) -> bool:
        """Whether records add runs to it."""
        return self.search is not None or bool(self.beyond)

    @property
    def preset(self) -> str:
        """The table's column of that name."""
        return ", ".join(part for part in (self.method.preset, self.variant) if part)


def lines_of(part: dict[str, Any], names: Names, spaces: Mapping[str, Space], name: str) -> Iterator[Line]:
    """The lines of a part; ``name`` is what errors call its experiment."""
    _check_keys(part, name)
    search = _search(part, spaces)
    splits, seeds = _numbers(part, "splits"), tuple(search.seeds(0)) if search else _numbers(part, "seeds")
    rules, measures = tuple(part.get("rules", ())), part.get("measures", False)
    for rule in rules:
        if rule not in (known := (*get_args(RuleName), CORRECTED)):
            raise unknown("rule", rule, known)
    if not isinstance(measures, bool):
        raise StudyError(f"measures must be true or false, got {measures!r}.")
    if CORRECTED in rules and not measures:
        raise StudyError(f"{CORRECTED} among the rules needs measures = true.")
    for dataset in part["datasets"]:
        entry = names.dataset(dataset)
        for model in part["models"]:
            for given in part["methods"]:
                method = _with_later(part, named_method(given))
                strengths = () if search else _strengths(part, method, f"{dataset}/{model}")
                beyond = _beyond(part, strengths, dataset)
                start, own_rule = _base(part, dataset, model, names)
                beside = (own_rule,) if own_rule and own_rule != start.protocol.rule and not search else ()
                watched = tuple(dict.fromkeys((*rules, *beside)))
                for variant, base, ratio in _variants(part, start, method):
                    term = method.on(_output_size(entry))
                    # In one go: a cell without a term drops its ratio.
                    if search:
                        cells = configurations(base, term, spaces[part["space"]], search.rungs[0][0])
                    else:
                        cells = tuple(replace(base, method=term, strength=mu, unmask=ratio) for mu in strengths)
                    yield Line(
                        dataset,
                        model,
                        method,
                        variant,
                        cells,
                        splits,
                        seeds,
                        part.get("batch"),
                        watched,
                        measures,
                        own_rule,
                        entry if isinstance(entry, GraphFile) else None,
                        search,
                        beyond=beyond,
                        split_group=part.get("split_group"),
                    )


def _check_keys(part: dict[str, Any], name: str) -> None:
    for key in part:
        if key not in _KEYS:
            raise unknown(f"setting of experiment {name}", key, sorted(_KEYS))
    for key in _NEEDED:
        if key not in part and not (key == "seeds" and "space" in part):
            raise StudyError(f"A part of experiment {name} has no {key}: each needs {', '.join(_NEEDED)}.")


def _search(part: dict[str, Any], spaces: Mapping[str, Space]) -> Halving | None:
    """The plan of a part that is a search."""
    if "space" not in part:
        return None
    if part["space"] not in spaces:
        raise unknown("space", str(part["space"]), spaces)
    for key in ("rungs", "fresh"):
        if key not in part:
            raise StudyError(f"A part with a space has no {key}: write rungs = [[128, 5], [8, 50]] and fresh = 100.")
    return Halving(tuple((count, seeds) for count, seeds in part["rungs"]), part["fresh"])


def _split_kind(part: dict[str, Any], dataset: str, entry: Entry) -> SplitKind:
    """How the splits of a dataset are made, if the part asks for a way that it has."""
    own = isinstance(entry, GraphFile)
    usual = "own" if isinstance(entry, GraphFile) and entry.has_split else "random" if own else "official"
    kind: SplitKind = part.get("split_kind", usual)
    if kind not in get_args(SplitKind):
        raise unknown("split_kind", kind, get_args(SplitKind))
    benchmark = ("official", "public", *DRAWN_SPLITS)
    known = ("scaffold",) if isinstance(entry, MoleculeSet) else OWN_SPLITS if own else benchmark
    if "per_class" in part and kind not in DRAWN_SPLITS:
        raise StudyError(f"per_class is for splits that are drawn: write split_kind = {' or '.join(DRAWN_SPLITS)}.")
    if kind not in known:
        raise StudyError(
            f"{dataset} has no {kind} split: molecules have a scaffold split, benchmarks official, public, random or "
            "natural ones, and graphs of your own an own split, random or natural ones."
        )
    if kind == "own" and isinstance(entry, GraphFile):
        if not entry.has_split:
            raise StudyError(f"{dataset} has no split of its own: leave split_kind out, and splits are drawn.")
        if _numbers(part, "splits") != (0,):
            raise StudyError(f'{dataset} has one split of its own: write splits = 1, or split_kind = "random".')
    return kind


def _base(part: dict[str, Any], dataset: str, model: str, names: Names) -> tuple[Cell, str]:
    """The plain cell of a line, and the rule that its model was published with."""
    entry = names.dataset(dataset)
    name = dataset if isinstance(entry, GraphFile) else entry.name
    kind = _split_kind(part, dataset, entry)
    measure: Measure = part.get("measure", "")
    if measure not in get_args(Measure):
        raise unknown("measure", measure, get_args(Measure))
    if part.get("published", False):
        architecture, known, recipe = published(model, name)
        usual, normalize = known, recipe.normalize
    else:
        architecture, dropout = names.model(model)
        usual = {"rule": "official", "max_epochs": 10_000, "weight_decay_scope": "all", "patience": 200, "lr": 0.01}
        usual |= {"weight_decay": weight_decay(name), "dropout": dropout}
        normalize = True
    chosen = {each: part.get(each, value) for each, value in usual.items()}
    protocol = Protocol(chosen["rule"], chosen["max_epochs"], chosen["weight_decay_scope"])
    labels = labels_for(name, kind)
    cell = Cell(
        name,
        entry.digest(kind) if isinstance(entry, GraphFile) else dataset_digest(name, labels),
        labels=labels,
        split_kind=kind,
        normalize=part.get("normalize", normalize),
        model=architecture,
        protocol=protocol,
        weight_decay=chosen["weight_decay"],
        dropout=chosen["dropout"],
        patience=chosen["patience"],
        measure=measure,
        lr=chosen["lr"],
    )
    return cell, usual["rule"] if part.get("published", False) else ""


def _variants(part: dict[str, Any], base: Cell, method: NamedMethod) -> Iterator[tuple[str, Cell, float]]:
    """The plain cell and the unmask ratio of each value of what is swept, with the words that distinguish them."""
    given = str(part.get("variant", ""))
    plain = method.method == "plain"  # has no mask: it is the same at every ratio
    swept = [name for name in _SWEPT if name in part]
    for values in itertools.product(*(part[name] for name in swept)):
        chosen = dict(zip(swept, values, strict=True))
        grown = replace(base, **chosen)
        words = [given, *(_SWEPT[name](value) for name, value in chosen.items())]
        for ratio in [1.0] if plain else part.get("unmask", [1.0]):
            shown = [*words, f"unmask {ratio:g}"] if "unmask" in part and not plain else words
            yield ", ".join(word for word in shown if word), grown, ratio


def _with_later(part: dict[str, Any], method: NamedMethod) -> NamedMethod:
    """The method with the part's later strengths in its grid; the plain model has none."""
    later = tuple(decimal("strength", each) for each in part.get("later", ()))
    if not later or method.method == "plain":
        return method
    if "strengths" in part:
        raise StudyError("later strengths are added to a method's own grid: write them into strengths instead.")
    return replace(method, grid=tuple(sorted({*method.grid, *later})), later=(*method.later, *later))


def _strengths(part: dict[str, Any], method: NamedMethod, name: str) -> tuple[float, ...]:
    """The part's strengths (numbers, grids by name, or a number per dataset/model), else the method's own grid."""
    given = part.get("strengths")
    if method.method == "plain":
        return (0.0,)
    if given is None:
        return method.grid
    if isinstance(given, dict):
        if name not in given:
            raise unknown("strength for", name, given)
        given = [given[name]]
    found: set[float] = set()
    for each in [given] if isinstance(given, str) else given:
        found |= set(named_grid(each)) if isinstance(each, str) else {decimal("strength", each)}
    return tuple(sorted(found))


def _beyond(part: dict[str, Any], strengths: tuple[float, ...], dataset: str) -> tuple[float, ...]:
    """The strengths beyond a grid, smallest first; none of the plain model."""
    found = tuple(sorted(decimal("strength", each) for each in part.get("beyond", ())))
    if not found or strengths == (0.0,):
        return ()
    if len(strengths) < 2 or found[0] <= strengths[-1]:
        raise StudyError(f"beyond needs a grid of strengths and larger ones, got {list(found)} for {list(strengths)}.")
    if dataset in MOLECULE_SETS:
        raise StudyError(f"beyond is for accuracies: leave it out of the part with {dataset}.")
    return found


def _numbers(part: dict[str, Any], key: str) -> tuple[int, ...]:
    given = part[key]
    return tuple(range(given)) if isinstance(given, int) else tuple(given)


def _output_size(entry: Entry) -> int:
    """Classes of a graph, tasks of a molecule dataset."""
    if isinstance(entry, GraphFile):
        return entry.sizes.classes
    return entry.classes if isinstance(entry, NodeSet) else entry.tasks
