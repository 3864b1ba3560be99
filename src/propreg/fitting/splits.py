"""The splits of a fit: given as masks or node numbers, the graph's own, drawn at random, or folds."""

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from propreg import _errors
from propreg.data.errors import DataError
from propreg.data.graph import MASKS, PARTS, Graph, Split
from propreg.data.splits import RANDOM_SPLITS, check_split, random_split, ranks
from propreg.fitting.inputs import whole
from propreg.fitting.targets import random_shares

Splits: TypeAlias = int | Mapping[str, Any] | Sequence[Any]
FOLDS = 6  # five could not give p < 0.05
_OGB = {"valid": "val", "validation": "val"}


def named_splits(
    graph: Graph,
    splits: Splits | None,
    train: int | None,
    val: int | None,
    *,
    masks: Mapping[str, Split] | None = None,
    test: Literal["cv"] | None = None,
) -> dict[str, Split]:
    """The splits by name, in order: those given, the data's own, random ones, or folds. All may lack test nodes.

    Args:
        graph: The graph.
        splits: Splits, or the number of random ones; None is the data's own, else six random ones.
        train: Training nodes per class of random splits, by default 20.
        val: Validation nodes per class, by default 30.
        masks: The data's own splits, if it has several.
        test: ``"cv"`` divides all labeled nodes into folds, see :func:`folds`.
    """
    asked = {"splits": splits, "train_per_class": train, "val_per_class": val}
    if graph.targets is not None and (train, val) != (None, None):
        raise ValueError(
            f"train_per_class and val_per_class do not apply where the task is {graph.task}: leave them out."
        )
    if test is not None:
        _errors.one_of("test", test, ("cv",), " or None")
        return _cross_validation(graph, asked)
    splits = RANDOM_SPLITS if splits is None else splits
    if isinstance(splits, Split):
        raise TypeError("splits must be a number or a list of splits, got one Split: pass splits=[split].")
    if isinstance(splits, bool | str) or not isinstance(splits, int | np.integer | Mapping | Sequence):
        raise TypeError(f"splits must be a number or a list of splits, got a {type(splits).__name__}.")
    if isinstance(splits, Mapping):
        given = {str(name): split for name, split in splits.items()}
        if len(given) < len(splits):
            raise ValueError(f"splits has two names that read the same, of {list(splits)!r}: rename one.")
        parts = {name: as_split(split, graph, f"split {name!r}") for name, split in given.items()}
    elif isinstance(splits, Sequence):
        parts = {str(i): as_split(split, graph, f"split '{i}'") for i, split in enumerate(splits)}
    elif masks is not None or graph.split is not None:
        if random := [f"{name}={value}" for name, value in asked.items() if value is not None]:
            raise ValueError(
                f"the data has a split of its own, but {', '.join(random)} requests random splits: leave it out, "
                "remove the masks from the data, or pass a list of splits."
            )
        parts = dict(masks) if masks is not None else {"own": graph.split} if graph.split is not None else {}
    elif splits < 1:
        raise ValueError(f"splits must be at least 1, got {splits}.")
    else:
        parts = _random(graph, int(splits), 20 if train is None else train, 30 if val is None else val)
    if not parts:
        raise ValueError("splits is empty: give at least one split.")
    return _checked(parts, graph)


def _checked(parts: Mapping[str, Split], graph: Graph) -> dict[str, Split]:
    """The splits with training and validation nodes, and test nodes in all of them or in none."""
    checked = {name: check_split(split, graph.y, f"split {name!r}", may_be_empty=True) for name, split in parts.items()}
    none_tests = not any(split.test.any() for split in checked.values())
    for name, split in checked.items():
        if not none_tests or not (split.train.any() and split.val.any()):
            check_split(split, graph.y, f"split {name!r}")
    return checked


def as_split(given: Any, graph: Graph, where: str) -> Split:
    """A split from (train, val) or (train, val, test), masks or node numbers, or OGB's dict; or a ``Split`` as it is.

    Example:
        >>> graph = Graph("", np.zeros((2, 0), int), np.eye(4), np.zeros(4, int))
        >>> as_split(([0], [1, 2]), graph, "the split").val.tolist()
        [False, True, True, False]
    """
    if isinstance(given, Split):
        return given
    if isinstance(given, Mapping):
        named = {_OGB.get(str(name), str(name)): part for name, part in given.items()}
        if not {"train", "val"} <= named.keys() <= set(PARTS):
            raise ValueError(f"{where} must have the keys train, val and test, got {', '.join(map(repr, given))}.")
        given = [named[part] for part in PARTS if part in named]
    if isinstance(given, str | bytes) or not isinstance(given, Sequence) or len(given) not in (2, 3):
        got = repr(given) if isinstance(given, str) else f"a {type(given).__name__}"
        raise TypeError(f"{where} must be a propreg Split or (train, val, test), got {got}.")
    masks = [_mask(part, graph.num_nodes, f"{where}: {name}") for part, name in zip(given, PARTS, strict=False)]
    return Split(*masks, *([np.zeros(graph.num_nodes, np.bool_)] * (3 - len(masks))))


def _mask(part: Any, nodes: int, where: str) -> NDArray[np.bool_]:
    array = np.asarray(part.detach().cpu() if hasattr(part, "detach") else part)
    if array.size == 0 and array.dtype != np.bool_:
        array = array.astype(np.int64)
    if array.dtype == np.bool_ and array.shape == (nodes,):
        return array
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise DataError(f"{where} must be a mask over {nodes} nodes or node numbers, got {array.dtype} {array.shape}.")
    if array.size and not (array.min() >= 0 and array.max() < nodes):
        bad = array.max() if array.max() >= nodes else array.min()
        raise DataError(f"{where} holds node {bad}, but the nodes are 0 to {nodes - 1}.")
    mask = np.zeros(nodes, np.bool_)
    mask[array] = True
    return mask


def splits_of_masks(data: Any) -> dict[str, Split] | None:
    """The splits of masks [nodes, k], as PyG's heterophilous datasets have them; None if no mask has columns.

    A mask without columns belongs to all of them.
    """
    masks = {name: getattr(data, name, None) for name in MASKS}
    found = {name: np.asarray(mask.cpu()) for name, mask in masks.items() if isinstance(mask, Tensor)}
    counts = {mask.shape[1] for mask in found.values() if mask.ndim == 2}
    if not counts:
        return None
    if len(counts) > 1 or any(mask.ndim > 2 or mask.dtype != np.bool_ for mask in found.values()):
        shapes = ", ".join(f"{name} {mask.dtype} {list(mask.shape)}" for name, mask in found.items())
        raise DataError(f"Data: masks of k splits must be bool [nodes, k], got {shapes}.")
    nodes = len(next(iter(found.values())))
    parts = [found.get(name, np.zeros(nodes, np.bool_)) for name in MASKS]
    return {
        str(i): Split(*(mask[:, i].copy() if mask.ndim == 2 else mask for mask in parts)) for i in range(counts.pop())
    }


def without_masks(data: Any) -> Any:
    """A shallow copy of the data without its masks."""
    copied = copy.copy(data)
    for name in MASKS:
        setattr(copied, name, None)
    return copied


def judgeable(split: Split) -> Split:
    """The split that is trained on: without test nodes, the validation nodes stand for them."""
    return split if split.test.any() else Split(split.train, split.val, split.val)


def folds(y: NDArray[np.int64], count: int) -> dict[str, Split]:
    """Folds of the labeled nodes, classes spread evenly: each tests once, the next one validates, the others train.

    Example:
        >>> split = folds(np.array([0, 0, 0, 1, 1, 1, -1]), 3)["fold-0"]
        >>> [int(mask.sum()) for mask in (split.train, split.val, split.test)]
        [2, 2, 2]
    """
    place, rank = np.full(len(y), -1), ranks(len(y), 0)
    begin = 0
    for c in np.unique(y[y >= 0]):
        nodes = np.flatnonzero(y == c)
        place[nodes[np.argsort(rank[nodes], kind="stable")]] = (begin + np.arange(len(nodes))) % count
        begin += len(nodes)
    parts = {}
    for i in range(count):
        test, val = place == i, place == (i + 1) % count
        parts[f"fold-{i}"] = Split((place >= 0) & ~test & ~val, val, test)
    return parts


def _cross_validation(graph: Graph, asked: Mapping[str, Any]) -> dict[str, Split]:
    for name in ("train_per_class", "val_per_class"):
        if asked[name] is not None:
            raise ValueError(f"{name} does not apply with test='cv', which divides all labeled nodes: leave it out.")
    count = whole("splits", FOLDS if asked["splits"] is None else asked["splits"], 3, " (folds, with test='cv')")
    labeled = int((graph.y >= 0).sum())
    if labeled < 2 * count:
        raise DataError(f"{labeled} labeled nodes are too few for {count} folds: label more, or pass fewer splits.")
    return _checked(folds(graph.y, count), graph)


def _random(graph: Graph, count: int, train: int, val: int) -> dict[str, Split]:
    train, val = whole("train_per_class", train, 1), whole("val_per_class", val, 1)
    if graph.targets is not None:
        return {f"random-{i}": Split(*random_shares(graph.y, i)) for i in range(count)}
    try:
        return {f"random-{i}": random_split(graph.y, train, val, i) for i in range(count)}
    except DataError as error:  # its advice names an option that fit does not have
        problem, few, _ = str(error).partition(" Ask for fewer")
        raise DataError(f"{problem}{few} with train_per_class and val_per_class, or pass splits of your own.") from None
