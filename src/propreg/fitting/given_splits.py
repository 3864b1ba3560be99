"""The splits that ``fit`` trains on: those given, the graph's own, or random ones."""

from collections.abc import Mapping, Sequence

import numpy as np

from propreg.data.errors import DataError
from propreg.data.graph import Graph, Split
from propreg.data.own_check import MASKS
from propreg.data.own_check import _split as check_masks
from propreg.data.splits import random_split
from propreg.fitting.given_numbers import whole

Splits = int | Mapping[str, Split] | Sequence[Split]


def named_splits(graph: Graph, splits: Splits | None, train: int | None, val: int | None) -> dict[str, Split]:
    """The splits by name, in order; ``train`` and ``val`` are the nodes per class of random ones.

    None is what was not asked for: five splits of 20 and 30 nodes, or the graph's own.
    """
    asked = {"splits": splits, "train_per_class": train, "val_per_class": val}
    splits = 5 if splits is None else splits
    if isinstance(splits, Split):
        raise TypeError("splits must be a number, or splits themselves, but one Split came: pass splits=[split].")
    if isinstance(splits, bool) or not isinstance(splits, int | np.integer | Mapping | Sequence):
        raise TypeError(f"splits must be a number, or splits themselves, but a {type(splits).__name__} came.")
    if isinstance(splits, Mapping):
        parts = {str(name): split for name, split in splits.items()}
        if len(parts) < len(splits):
            raise ValueError(f"splits has two names that read the same, of {list(splits)!r}: rename one.")
    elif isinstance(splits, Sequence):
        parts = {str(i): split for i, split in enumerate(splits)}
    elif graph.split is not None:
        if random := [f"{name}={value}" for name, value in asked.items() if value is not None]:
            raise ValueError(
                f"the data has a split of its own, but {', '.join(random)} asks for random ones: leave that out, take "
                "the masks out of the data, or pass splits themselves."
            )
        parts = {"own": graph.split}
    elif splits < 1:
        raise ValueError(f"splits must be at least 1, but {splits} came.")
    else:
        parts = _random(graph, int(splits), 20 if train is None else train, 30 if val is None else val)
    if not parts:
        raise ValueError("splits is empty: give at least one split.")
    return {name: _checked(name, split, graph) for name, split in parts.items()}


def _random(graph: Graph, count: int, train: int, val: int) -> dict[str, Split]:
    train, val = whole("train_per_class", train, 1), whole("val_per_class", val, 1)
    try:
        return {f"random-{i}": random_split(graph.y, train, val, i) for i in range(count)}
    except DataError as error:  # its advice names an option that fit does not have
        said, few, _ = str(error).partition(" Ask for fewer")
        raise DataError(f"{said}{few} with train_per_class and val_per_class, or pass splits of your own.") from None


def _checked(name: str, split: Split, graph: Graph) -> Split:
    if not isinstance(split, Split):
        raise TypeError(f"split {name!r} must be a propreg Split, but a {type(split).__name__} came.")
    masks = {mask: np.asarray(getattr(split, mask.removesuffix("_mask"))) for mask in MASKS}
    for mask, nodes in masks.items():
        part = mask.removesuffix("_mask")
        if nodes.shape != graph.y.shape:
            raise DataError(
                f"split {name!r}: {part} must be a mask, a bool for each of {graph.num_nodes} nodes, but has shape "
                f"{list(nodes.shape)}: of node numbers, mask = np.zeros({graph.num_nodes}, bool); mask[numbers] = True."
            )
        if not nodes.any():
            raise DataError(f"split {name!r} has no {part} nodes: give each of train, val and test at least one.")
    return check_masks(masks, graph.y, f"split {name!r}") or split
