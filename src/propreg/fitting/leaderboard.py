"""Several models and regularizers on the same splits and seeds: who is best, and what that says about the edges."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from time import monotonic
from typing import TYPE_CHECKING, Any

import numpy as np

from propreg.console import columns
from propreg.data.describe import is_undirected
from propreg.data.graph import Graph
from propreg.engine.models import MODELS
from propreg.engine.regularizers import REGULARIZERS
from propreg.engine.spec import Model
from propreg.fitting.selection import matched
from propreg.fitting.verdict import Judging, Pair, nested_pair, pair, points, signed
from propreg.statistics import Difference, Summary, paired

if TYPE_CHECKING:
    from propreg.fitting.result import FitResult

BLIND = "mlp"  # the architecture that sees no edges


@dataclass(frozen=True)
class Row:
    """A model at its chosen strength.

    Args:
        name: The key of its result.
        title: What people call it, with the strength.
        validation: Its mean score on validation, which it is ranked by.
        test: Its scores on test.
        gain: The comparison with its own plain model; None if that was chosen, or no pair is finished.
    """

    name: str
    title: str
    validation: float
    test: Summary
    gain: Pair | None


@dataclass(frozen=True, eq=False)
class Leaderboard:
    """Results by name, trained on the same splits and seeds.

    Attributes:
        results: In the order of the models that were asked for.
        undirected: The plain model of the first result whose model sees edges, on the same graph with each edge in both
            directions; None if that is the graph.
    """

    results: "Mapping[str, FitResult]"
    undirected: "FitResult | None" = None

    @property
    def judging(self) -> Judging:
        """What the scores are."""
        return next(iter(self.results.values())).judging

    @property
    def best(self) -> str:
        """The name of the result that is best on validation; the first of equal ones."""
        return self.rows()[0].name

    def rows(self) -> list[Row]:
        """One for each result, the best on validation first."""
        rows = [_row(name, result) for name, result in self.results.items()]
        return sorted(rows, key=lambda row: -self.judging.sign * row.validation)

    def findings(self) -> list[str]:
        """What the comparison says about the edges of the graph; empty if nothing is remarkable."""
        return [*self._about_edges(), *self._about_directions()]

    def table(self) -> list[str]:
        """The rows in columns, the last of which compares each model with its own plain form."""
        rows, judging = self.rows(), self.judging
        names = ("", "validation", judging.what, "points over plain" if judging.fraction else "gain over plain")
        lines = [*columns([names, *(_cells(place, row, judging) for place, row in enumerate(rows, 1))])]
        return [*lines, "In brackets: 95 % intervals."] if any(row.test.runs > 1 for row in rows) else lines

    def summary(self) -> str:
        """The table and the findings."""
        return "\n".join([*self.table(), *self.findings()])

    def _about_edges(self) -> Iterator[str]:
        blind = next((result for result in self.results.values() if _architecture(result) == BLIND), None)
        seeing = self.seeing()
        if blind is None or seeing is None or (apart := _apart(blind, seeing)) is None:
            return
        name = MODELS[_architecture(seeing)].title
        gives = _gives(apart, self.judging)
        if apart.verdict == "better":
            yield f"The edges mislead: the plain MLP, which sees none, does better than the plain {name}, by {gives}."
        elif apart.mean >= 0:
            yield f"The edges help little: the plain MLP, which sees none, does as well as the plain {name}: {gives}."

    def _about_directions(self) -> Iterator[str]:
        seeing = self.seeing()
        if self.undirected is None or seeing is None or (apart := _apart(self.undirected, seeing)) is None:
            return
        if apart.verdict == "better":
            yield (
                f"Undirected beats directed: with each edge in both directions, the plain "
                f"{MODELS[_architecture(seeing)].title} is better by {_gives(apart, self.judging)}. Make the graph "
                "undirected, for example with torch_geometric.transforms.ToUndirected()."
            )

    def seeing(self) -> "FitResult | None":
        """The first result whose model sees edges, a GCN if there is one."""
        seeing = [result for result in self.results.values() if _architecture(result) not in ("", BLIND)]
        return next((result for result in seeing if _architecture(result) == "gcn"), next(iter(seeing), None))


def several(given: Mapping[str, Any]) -> bool:
    """Whether the arguments of a fit name several models or regularizers."""
    lists = (given["method"], given["regularizer"])
    return given["models"] is not None or any(isinstance(each, list | tuple) for each in lists)


def fit_several(fit: "Callable[..., FitResult]", given: Mapping[str, Any]) -> "FitResult":
    """The result of the model that is best on validation, with the leaderboard of all.

    Args:
        fit: Fits one model with one regularizer.
        given: Its arguments; ``models`` and ``method`` (or ``regularizer``) may name several.
    """
    methods = _listed(given["method"] if given["regularizer"] is None else given["regularizer"])
    models = _listed(given["model"] if given["models"] is None else given["models"])
    if given["models"] is not None and given["model"] != "gcn":
        raise ValueError("model and models are given: pass the model as one of models.")
    if not models or not methods:
        raise ValueError(f"{'models' if not models else 'method'} is empty: name at least one.")
    end = None if given["time_limit"] is None else monotonic() + float(given["time_limit"])
    options = {**given, "models": None, "regularizer": None}
    results: dict[str, FitResult] = {}
    for model in models:
        for method in methods:
            name = _unused(_name(model) + (f" + {_name(method)}" if len(methods) > 1 else ""), results)
            left = None if end is None else max(0.0, end - monotonic())
            if results and left == 0:
                break
            found = {"model": model, "method": method, "time_limit": left}
            results[name] = fit(**{**options, **found, **({} if _is_trained(model) else {"mu": 0.0})})
            if not results[name].finished:
                return _best_of(Leaderboard(results), finished=False)
    board, whole = Leaderboard(results), end is None or left != 0
    if whole and (seeing := board.seeing()) is not None and (both := both_directions(seeing)) is not None:
        alike = {**options, "data": both, "model": seeing.architecture, "method": "preg", "mu": 0.0}
        nothing = {"test": None, "train_per_class": None, "val_per_class": None, "refit": None, "time_limit": None}
        board = replace(board, undirected=fit(**{**alike, **nothing, "splits": dict(seeing.splits)}))
    return _best_of(board, finished=whole)


def both_directions(result: "FitResult") -> Graph | None:
    """The graph of a result with each edge in both directions; None if it has them, or weights, which may differ."""
    graph = result.graph
    if graph is None or graph.edge_weight is not None or is_undirected(graph.edge_index):
        return None
    both = np.unique(np.concatenate([graph.edge_index, graph.edge_index[::-1]], axis=1), axis=1)
    return Graph(graph.name, both, graph.x, graph.y, class_names=graph.class_names, digests=graph.digests)


def _best_of(board: Leaderboard, *, finished: bool) -> "FitResult":
    best = board.results[board.best]
    return replace(best, leaderboard=board, finished=finished and all(r.finished for r in board.results.values()))


def _cells(place: int, row: Row, judging: Judging) -> tuple[str, str, str, str]:
    score, gain = _value(row.test.mean, judging), "–"
    if row.test.runs > 1:
        score += f" [{_value(row.test.low, judging)}, {_value(row.test.high, judging)}]".replace(" %", "")
    if row.gain is not None:
        apart, write = row.gain.difference, points if judging.fraction else signed
        between = f" [{write(apart.low)}, {write(apart.high)}]" if row.gain.units > 1 else ""
        gain = write(apart.mean) + between
    return f"{place}  {row.title}", _value(row.validation, judging), score, gain


def _row(name: str, result: "FitResult") -> Row:
    chosen = bool(result.mu)
    nested = result.judging.nested and chosen
    compared = None if not chosen else nested_pair(result) if nested else pair(result, result.mu)
    test = compared.other if compared is not None else result.chosen
    val = result.val[result.mus.index(result.mu)]
    strength = "plain" if not chosen else "mu per fold" if nested else f"{result.mu:g}"
    model = MODELS[_architecture(result)].title if result.architecture is not None else name.split(" + ", maxsplit=1)[0]
    title = f"{model}, plain" if not chosen else f"{model} + {REGULARIZERS[result.method].title} {strength}"
    return Row(name, title, float(np.nanmean(val)) if (~np.isnan(val)).any() else math.nan, test, compared)


def _apart(first: "FitResult", second: "FitResult") -> Difference | None:
    """The plain models, first minus second, on the splits and seeds that both have finished; positive is better."""
    if first.test.shape[1:] != second.test.shape[1:]:
        return None
    sign = first.judging.sign
    mine, theirs = matched(sign * first.test[0], sign * second.test[0])
    return paired(mine, theirs) if mine.size else None


def _gives(apart: Difference, judging: Judging) -> str:
    write = points if judging.fraction else signed
    unit = f"points of {judging.what}" if judging.fraction else f"in {judging.what}"
    return f"{write(apart.mean)} {unit} (95 % interval {write(apart.low)} to {write(apart.high)})"


def _value(value: float, judging: Judging) -> str:
    return f"{100 * value:.2f} %" if judging.fraction else f"{value:.4f}"


def _architecture(result: "FitResult") -> str:
    return "" if result.architecture is None else result.architecture.name


def _listed(given: Any) -> list[Any]:
    return list(given) if isinstance(given, list | tuple) else [given]


def _name(given: Any) -> str:
    if isinstance(given, str | Model):
        return given if isinstance(given, str) else given.name
    return str(getattr(given, "__name__", type(given).__name__)).strip("<>")


def _is_trained(model: Any) -> bool:
    """False for a model that a regularizer cannot change."""
    if isinstance(model, str):
        return model not in MODELS or MODELS[model].trained
    return not isinstance(model, Model) or model.architecture.trained


def _unused(name: str, taken: Mapping[str, Any]) -> str:
    """The name, with a number if it is taken."""
    found, number = name, 2
    while found in taken:
        found, number = f"{name} {number}", number + 1
    return found
