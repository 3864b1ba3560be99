"""Training, validation and test nodes: drawn at random, grown, official, checked.

The draw is a rank: every node gets 64 random bits from a counter-based generator (Philox) keyed by the seed, and
the lowest ranks come first. So a split depends on its arguments alone, with every machine and NumPy, and a
larger training set contains every smaller one of the same seed.
"""

import os
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from propreg._choices import one_of
from propreg.data.errors import DataError
from propreg.data.graph import PARTS, Split

RANDOM_SPLITS = 6
"""Where splits are drawn and nobody says how many: with six, 2.6 standard errors are significant, with three 4.3."""

SmallClasses = Literal["error", "skip", "shrink"]


def random_split(
    y: Any,
    train_per_class: int = 20,
    val_per_class: int = 30,
    seed: int = 0,
    *,
    small_classes: SmallClasses = "error",
    natural: bool = False,
) -> Split:
    """Draw a fixed number of training and validation nodes per class; all other labeled nodes are for testing.

    Args:
        y: The class of each node, integers [N] (an array, a tensor or a list); −1 for no label.
            Unlabeled nodes are in none of the three sets.
        train_per_class: Training nodes drawn from each class; the paper takes 20.
        val_per_class: Validation nodes drawn from each class; the paper takes 30.
        seed: The number of the draw, 0 … 2⁶³ − 1.
        small_classes: A class that has too few nodes for both and at least one test node:

            * ``"error"`` raises and names the classes;
            * ``"skip"`` leaves its nodes out of all three sets, as the paper's own code does;
            * ``"shrink"`` tests on half of its nodes (rounded down) and divides the rest between training and
              validation in the same proportion, with at least one training node.
        natural: Draw as many nodes altogether, whatever their class: classes are then as frequent in all three sets.

    Returns:
        The three masks.

    Raises:
        ValueError: If a number is out of range or ``small_classes`` is unknown.
        DataError: If the labels are not classes, or a class is too small and ``small_classes="error"``.

    Example:
        >>> import numpy as np
        >>> y = np.repeat([0, 1, 2], 100)
        >>> split = random_split(y, train_per_class=5, val_per_class=10, seed=1)
        >>> int(split.train.sum()), int(split.val.sum()), int(split.test.sum())
        (15, 30, 255)
        >>> bool((split.train == random_split(y, 5, 10, seed=1).train).all())
        True
    """
    labels = as_labels(y)
    _check_count("train_per_class", train_per_class, 1)
    _check_count("val_per_class", val_per_class, 0)
    one_of("small_classes", small_classes, ("error", "skip", "shrink"))
    classes, counts = np.unique(labels[labels >= 0], return_counts=True)
    rank = ranks(len(labels), seed)
    if natural:
        return _natural_split(labels, rank, train_per_class * len(classes), val_per_class * len(classes))
    needed = train_per_class + val_per_class + 1
    small = {int(c): int(n) for c, n in zip(classes, counts, strict=True) if n < needed}
    if small and small_classes == "error":
        named = ", ".join(f"{c} ({n} nodes)" for c, n in list(small.items())[:5]) + (", …" if len(small) > 5 else "")
        raise DataError(
            f"{len(small)} of {len(classes)} classes have fewer than the {needed} labeled nodes that "
            f"{train_per_class} for training, {val_per_class} for validation and one test node take: class {named}. "
            "Ask for fewer, or pass small_classes='shrink' to take a share of them or 'skip' to leave them out."
        )
    train, val, test = (np.zeros(len(labels), bool) for _ in range(3))
    for c in classes:
        nodes = np.flatnonzero(labels == c)
        takes = (train_per_class, val_per_class)
        if int(c) in small:
            if small_classes == "skip":
                continue
            takes = _shares(len(nodes), *takes)
        first = nodes[_lowest(rank[nodes], sum(takes))]
        test[nodes] = True
        test[first] = False
        train[first[: takes[0]]] = True
        val[first[takes[0] :]] = True
    return Split(train, val, test)


def _natural_split(labels: NDArray[np.int64], rank: NDArray[np.uint64], train: int, val: int) -> Split:
    """A split of so many nodes: those of the lowest ranks."""
    labeled = np.flatnonzero(labels >= 0)
    if train + val >= len(labeled):
        raise DataError(
            f"a natural split takes {train} training, {val} validation and at least one test node, but {len(labeled)} "
            "nodes have a label: ask for fewer per class."
        )
    masks = np.zeros((3, len(labels)), bool)
    masks[2, labeled] = True
    first = labeled[_lowest(rank[labeled], train + val)]
    masks[:, first] = False
    masks[0, first[:train]] = masks[1, first[train:]] = True
    return Split(*masks)


def grow_train(
    split: Split, y: Any, *, per_class: int | None = None, total: int | None = None, seed: int = 0, keep: bool = True
) -> Split:
    """The same validation and test nodes with another number of training nodes (the paper's Fig. 2a).

    The training nodes are drawn from all labeled nodes that are neither for validation nor for testing:
    ``per_class`` of each class, or ``total`` at random. Larger sets of one seed contain the smaller ones.

    Args:
        split: The split whose ``val`` and ``test`` stay. The public splits leave most nodes free; splits with 20
            and 30 nodes per class test on all others, so that only their own training nodes can be drawn.
        y: The class of each node, −1 for no label.
        per_class: The number of training nodes of each class. Pass this or ``total``.
        total: The number of training nodes altogether.
        seed: The number of the draw.
        keep: Take the split's own training nodes first, as the paper does; False draws all anew.

    Raises:
        ValueError: If not exactly one of ``per_class`` and ``total`` is given.
        DataError: If there are not enough free nodes.

    Example:
        >>> import numpy as np
        >>> y = np.repeat([0, 1], 50)
        >>> split = Split(np.zeros(100, bool), np.arange(100) % 5 == 0, np.arange(100) % 5 == 1)
        >>> few, more = (grow_train(split, y, total=n, seed=3).train for n in (10, 40))
        >>> int(few.sum()), int(more.sum()), bool((few & ~more).any())
        (10, 40, False)
    """
    if (per_class is None) == (total is None):
        raise ValueError("grow_train takes exactly one of per_class and total.")
    labels = as_labels(y)
    if not len(labels) == len(split.train) == len(split.val) == len(split.test):
        raise ValueError(
            f"y has {len(labels)} nodes but the split has {len(split.val)}: pass labels and split of one graph."
        )
    free = np.flatnonzero((labels >= 0) & ~split.val & ~split.test)
    own_first = ~split.train[free] if keep else np.zeros(len(free), bool)
    free = free[np.lexsort((ranks(len(labels), seed)[free], own_first))]
    train = np.zeros(len(labels), bool)
    if total is not None:
        _check_count("total", total, 1)
        if total > len(free):
            raise DataError(f"total is {total}, but only {len(free)} labeled nodes are neither in val nor in test.")
        train[free[:total]] = True
    elif per_class is not None:
        _check_count("per_class", per_class, 1)
        for c in np.unique(labels[labels >= 0]):
            nodes = free[labels[free] == c]
            if per_class > len(nodes):
                raise DataError(
                    f"per_class is {per_class}, but class {c} has only {len(nodes)} nodes outside val and test."
                )
            train[nodes[:per_class]] = True
    return Split(train, split.val, split.test)


def official_splits(name: str, root: str | os.PathLike[str] | None = None) -> list[Split]:
    """The ten official splits of a node dataset; the paper uses the first five of its own.

    The paper's authors published them: 20 training and 30 validation nodes per class, all others for testing (on
    CiteSeer with ``labels="authors"``). On digits they are ten seeded splits, 5 and 30 per class. Of the graphs beyond
    the paper, the heterophilous ones have ten of their own publishers; blogcatalog, flickr and acm have one published
    training and test set, and ten drawn validation sets (:mod:`propreg.data.benchmarks.am_gcn`).

    Args:
        name: The dataset.
        root: The folder to search first, and to download to.

    Raises:
        DataError: If the dataset is unknown, or its splits cannot be downloaded or are not the published ones.

    Example:
        >>> len(official_splits("digits"))
        10
    """
    from propreg.data.benchmarks.catalog import AM_GCN, HETEROPHILOUS, NodeSet, find
    from propreg.data.benchmarks.verify import verify_splits

    entry = find(name)
    if not isinstance(entry, NodeSet):
        raise DataError(f"{entry.name} has one split, OGB's: it comes with propreg.load_dataset({entry.name!r}).")
    if not entry.file:
        from propreg.data.benchmarks.digits import digits_splits, read_digits

        return verify_splits(digits_splits(read_digits()[1]), entry, "scikit-learn's digits")
    from propreg.data.benchmarks import am_gcn, cache, heterophilous
    from propreg.data.benchmarks.download import ensure_splits

    path = ensure_splits(entry, root)
    readers = {HETEROPHILOUS: heterophilous.read_splits, AM_GCN: am_gcn.read_splits}
    read = readers.get(entry.source, cache.read_splits)
    return verify_splits(read(path, entry.file, entry.nodes), entry, str(path))


def check_split(
    split: object,
    y: NDArray[Any],
    where: str,
    *,
    names: Sequence[str] = PARTS,
    may_be_empty: bool = False,
    may_overlap: bool = False,
) -> Split:
    """The split as arrays, if it is one of the nodes of a graph.

    Args:
        split: Masks over the nodes. Each node in them has a label.
        y: The class of each node, −1 for none.
        where: What to call the split in an error.
        names: What to call its parts there.
        may_be_empty: Accept a part without nodes.
        may_overlap: Accept nodes in two parts.

    Raises:
        TypeError: If it is no :class:`~propreg.data.graph.Split`.
        DataError: If a mask does not fit the nodes.

    Example:
        >>> mask = np.array([True, False])
        >>> check_split(Split(mask, ~mask, ~mask), np.array([0, 1]), "split 'mine'")
        Traceback (most recent call last):
        ...
        propreg.data.errors.DataError: split 'mine': node 1 is in two of the masks: put it in one of them.
    """
    if not isinstance(split, Split):
        got = repr(split) if isinstance(split, str) else f"a {type(split).__name__}"
        raise TypeError(f"{where} must be a propreg Split, got {got}.")
    masks = [np.asarray(getattr(split, part)) for part in PARTS]
    for name, mask in zip(names, masks, strict=True):
        if mask.dtype != np.bool_ or mask.shape != y.shape:
            raise DataError(
                f"{where}: {name} must be bool [{len(y)}], a mask over the nodes, got {mask.dtype} {list(mask.shape)}: "
                f"of several splits, pick one; for node numbers, mask = np.zeros({len(y)}, bool); mask[numbers] = True."
            )
        if not may_be_empty and not mask.any():
            raise DataError(f"{where} has no {name} nodes: give each of {', '.join(names)} at least one.")
        unlabeled = np.flatnonzero(mask & (y < 0))
        if len(unlabeled):
            raise DataError(
                f"{where}: node {int(unlabeled[0])} is in {name} but has no label (y = −1): "
                "give it a label, or take it out of the mask."
            )
    train, val, test = masks
    twice = np.flatnonzero((train & val) | (train & test) | (val & test))
    if len(twice) and not may_overlap:
        raise DataError(f"{where}: node {int(twice[0])} is in two of the masks: put it in one of them.")
    return Split(train, val, test)


def ranks(num_nodes: int, seed: int) -> NDArray[np.uint64]:
    """64 random bits per node, from the raw stream of a bit generator: NumPy never changes it."""
    _check_count("seed", seed, 0)
    if seed >= 2**63:
        raise ValueError(f"seed must be below 2**63, got {seed}.")
    return np.random.Philox(key=np.array([seed, 0x5051], np.uint64)).random_raw(num_nodes)


def as_labels(y: Any) -> NDArray[np.int64]:
    """Labels as int64 [N], if they are classes."""
    labels = np.asarray(y)
    if labels.ndim != 1 or labels.dtype.kind not in "iu" or len(labels) == 0:
        raise DataError(
            f"y must hold one integer class per node, got {labels.dtype} of shape {labels.shape}: "
            "pass y of shape [N], -1 for no label."
        )
    if int(labels.min()) < -1 or int(labels.max()) >= 2**31:
        raise DataError(f"y must hold classes from 0, or -1 for none, got {int(labels.min())} … {int(labels.max())}.")
    if int(labels.max()) < 0:
        raise DataError("y has no labeled node: at least one class is needed to draw a split.")
    return labels.astype(np.int64)


def _lowest(rank: NDArray[np.uint64], count: int) -> NDArray[np.intp]:
    """The places of the ``count`` lowest ranks, in order; of equal ranks the first. Sorts these few only."""
    last = min(count, len(rank)) - 1
    candidates = np.flatnonzero(rank <= np.partition(rank, last)[last])
    return candidates[np.argsort(rank[candidates], kind="stable")][:count]


def _shares(n: int, train: int, val: int) -> tuple[int, int]:
    rest = n - n // 2
    first = max(1, rest * train // (train + val))
    return first, rest - first


def _check_count(name: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name} must be an integer, got {value!r}.")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {value}.")
