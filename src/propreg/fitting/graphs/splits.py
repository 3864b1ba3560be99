"""Splits of a list of graphs: given, drawn at random, or by group."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from propreg.data.benchmarks.molecules import PARTS
from propreg.data.errors import DataError
from propreg.data.graph_list import GraphList, Parts
from propreg.data.splits import RANDOM_SPLITS

Given = Mapping[str, Any]
SHARES = 0.8, 0.9  # of the graphs: where the training part ends, and the validation part
DRAWS = 50  # random splits that are tried until both classes are in each part


def named_splits(
    graphs: GraphList, splits: int | Given | Sequence[Given] | None, groups: Sequence[Any] | None = None
) -> dict[str, Parts]:
    """The splits by name, in order.

    Args:
        graphs: With their kind; a dataset's own split is used if there is one and nothing is asked for.
        splits: Splits, or the number of random ones, by default 6.
        groups: Of each graph: graphs of one group stay together in random splits.
    """
    if splits is None and groups is None and graphs.split:
        return {"own": _checked(graphs, graphs.split, "the data's own split")}
    if splits is None or isinstance(splits, int | np.integer):
        count = RANDOM_SPLITS if splits is None else splits
        if isinstance(count, bool) or count < 1:
            raise ValueError(f"splits must be at least 1, got {count!r}.")
        of = _groups(graphs, groups)
        return {f"random-{i}": _drawn(graphs, of, i) for i in range(count)}
    if groups is not None:
        raise ValueError("groups is for random splits, but splits are given: leave one of them out.")
    if isinstance(splits, Mapping) and {"train", "test"} <= splits.keys():
        splits = {"given": splits}
    if not isinstance(splits, Mapping | Sequence) or isinstance(splits, str):
        raise TypeError(f"splits must be a number or a list of splits, got a {type(splits).__name__}.")
    named = splits if isinstance(splits, Mapping) else {str(i): split for i, split in enumerate(splits)}
    if not named:
        raise ValueError("splits is empty: give at least one split.")
    return {
        str(name): _checked(graphs, _parts(split, f"split {name!r}"), f"split {name!r}")
        for name, split in named.items()
    }


def _parts(split: Any, where: str) -> dict[str, Any]:
    """Graph numbers of the three parts, whatever validation is called."""
    if not isinstance(split, Mapping):
        raise TypeError(f"{where} must map 'train', 'val' and 'test' to graph numbers, got a {type(split).__name__}.")
    found = {"valid" if part == "val" else part: chosen for part, chosen in split.items()}
    if lacks := [part for part in PARTS if part not in found]:
        part = "val" if lacks[0] == "valid" else lacks[0]
        raise DataError(f"{where} has no {part} part: give graph numbers for it.")
    return {part: found[part] for part in PARTS}


def _checked(graphs: GraphList, split: Mapping[str, Any], where: str) -> Parts:
    found: Parts = {}
    for part in PARTS:
        given = split[part]
        chosen = np.asarray(given.cpu() if hasattr(given, "cpu") else given)
        if chosen.dtype == np.bool_ and len(chosen) == len(graphs):
            chosen = np.flatnonzero(chosen)
        if chosen.ndim != 1 or chosen.dtype.kind not in "iu" or not chosen.size:
            raise DataError(f"{where}: its {part} part must be a list of graph numbers, at least one.")
        if int(chosen.min()) < 0 or int(chosen.max()) >= len(graphs):
            raise DataError(f"{where}: its {part} part names graph {chosen.max()}, but there are {len(graphs)}.")
        found[part] = chosen.astype(np.int64)
    every = np.concatenate(list(found.values()))
    if len(np.unique(every)) < len(every):
        twice = np.flatnonzero(np.bincount(every) > 1)[0]
        raise DataError(f"{where}: graph {twice} is in it more than once: put each graph in one part.")
    if len(found["train"]) < 2:
        raise DataError(f"{where}: has one training graph, and batch norm needs two: give more.")
    if problem := _problem(graphs, found):
        raise DataError(f"{where}: {problem}.")
    return found


def _problem(graphs: GraphList, split: Parts) -> str:
    """Why a part has no score; empty if all have one."""
    for part in PARTS:
        y = graphs.y[split[part]]
        if np.isnan(y).all():
            return f"no graph of its {part} part has a label: give each part graphs with labels"
        if graphs.kind == "binary classification" and part != "train":
            with_both = [{0.0, 1.0} <= set(column[~np.isnan(column)].tolist()) for column in y.T]
            if not any(with_both):
                return f"no task has both classes in its {part} part, so it has no ROC-AUC: give graphs of both classes"
    return ""


def _groups(graphs: GraphList, groups: Sequence[Any] | None) -> NDArray[np.int64]:
    if groups is None:
        return np.arange(len(graphs))
    given = list(groups)
    if len(given) != len(graphs):
        raise ValueError(f"groups must name the group of each of {len(graphs)} graphs, got {len(given)}.")
    place = {group: number for number, group in enumerate(dict.fromkeys(given))}
    if len(place) < len(PARTS):
        raise DataError(f"groups names {len(place)} groups, and a split needs three: training, validation and test.")
    return np.array([place[group] for group in given])


def _drawn(graphs: GraphList, groups: NDArray[np.int64], number: int) -> Parts:
    """80 % of the graphs train, 10 % validate, by whole groups; each part has at least one group."""
    if len(graphs) < 4:
        raise DataError(f"{len(graphs)} graphs are too few for a random split: give at least 4.")
    sizes = np.bincount(groups)
    problem = ""
    for draw in range(DRAWS):
        order = np.random.Generator(np.random.Philox(key=[number, draw])).permutation(len(sizes))
        ends = np.cumsum(sizes[order])
        train, valid = (int(np.searchsorted(ends, share * len(graphs), side="right")) for share in SHARES)
        train = min(max(train, 1), len(sizes) - 2)
        valid = min(max(valid, train + 1), len(sizes) - 1)
        part_of = np.empty(len(sizes), np.int64)
        part_of[order] = np.repeat(np.arange(3), [train, valid - train, len(sizes) - valid])
        split = {part: np.flatnonzero(part_of[groups] == i) for i, part in enumerate(PARTS)}
        if len(split["train"]) < 2:
            problem = "has one training graph, and batch norm needs two: give more"
        elif not (problem := _problem(graphs, split)):
            return split
    raise DataError(f"none of {DRAWS} random splits can be used: {problem}, or pass splits of your own.")
