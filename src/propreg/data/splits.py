"""Which nodes a model trains on, is chosen on and is tested on: drawn at random, or grown.

The draw is a rank: every node gets 64 random bits from a counter-based generator (Philox) keyed by the seed, and
the lowest ranks come first. So a split depends on nothing but its arguments, on every machine and NumPy, and a
larger training set contains every smaller one of the same seed.
"""

import os
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from propreg.data.errors import DataError
from propreg.data.graph import Split

SmallClasses = Literal["error", "skip", "shrink"]


def random_split(
    y: Any,
    train_per_class: int = 20,
    val_per_class: int = 30,
    seed: int = 0,
    *,
    small_classes: SmallClasses = "error",
) -> Split:
    """Draw a fixed number of training and validation nodes per class; all other labelled nodes are for testing.

    Args:
        y: The class of each node, integers [N] (an array, a tensor or a list); −1 where a node has no label.
            Such nodes are in none of the three sets.
        train_per_class: Training nodes drawn from each class; the paper takes 20.
        val_per_class: Validation nodes drawn from each class; the paper takes 30.
        seed: Which draw, 0 … 2⁶³ − 1.
        small_classes: What to do with a class that has too few nodes for both and at least one test node:

            * ``"error"`` refuses and names the classes;
            * ``"skip"`` leaves its nodes out of all three sets, as the paper's own code does;
            * ``"shrink"`` tests on half of its nodes (rounded down) and divides the rest between training and
              validation in the proportion asked for, with at least one training node.

    Returns:
        The three masks.

    Raises:
        ValueError: If a number is out of range or ``small_classes`` is unknown.
        DataError: If the labels cannot be used, or a class is too small and ``small_classes="error"``.

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
    if small_classes not in ("error", "skip", "shrink"):
        raise ValueError(f"small_classes must be 'error', 'skip' or 'shrink', but {small_classes!r} came.")
    classes, counts = np.unique(labels[labels >= 0], return_counts=True)
    needed = train_per_class + val_per_class + 1
    small = {int(c): int(n) for c, n in zip(classes, counts, strict=True) if n < needed}
    if small and small_classes == "error":
        named = ", ".join(f"{c} ({n} nodes)" for c, n in list(small.items())[:5]) + (", …" if len(small) > 5 else "")
        raise DataError(
            f"{len(small)} of {len(classes)} classes have fewer than the {needed} labelled nodes that "
            f"{train_per_class} for training, {val_per_class} for validation and one test node take: class {named}. "
            "Ask for fewer, or pass small_classes='shrink' to take a share of them or 'skip' to leave them out."
        )
    train, val, test = (np.zeros(len(labels), bool) for _ in range(3))
    rank = ranks(len(labels), seed)
    for c in classes:
        nodes = np.flatnonzero(labels == c)
        nodes = nodes[np.argsort(rank[nodes], kind="stable")]
        takes = (train_per_class, val_per_class)
        if int(c) in small:
            if small_classes == "skip":
                continue
            takes = _shares(len(nodes), *takes)
        train[nodes[: takes[0]]] = True
        val[nodes[takes[0] : sum(takes)]] = True
        test[nodes[sum(takes) :]] = True
    return Split(train, val, test)


def grow_train(
    split: Split, y: Any, *, per_class: int | None = None, total: int | None = None, seed: int = 0, keep: bool = True
) -> Split:
    """The same validation and test nodes with another number of training nodes (the paper's Fig. 2a).

    The training nodes are drawn from all labelled nodes that are neither for validation nor for testing:
    ``per_class`` of each class, or ``total`` at random. Larger sets of one seed contain the smaller ones.

    Args:
        split: The split whose ``val`` and ``test`` stay. The public splits leave most nodes free; those with 20 and
            30 nodes per class test on all others, so that only their own training nodes can be drawn.
        y: The class of each node, −1 where a node has no label.
        per_class: How many training nodes of each class. Give this or ``total``.
        total: How many training nodes altogether.
        seed: Which draw.
        keep: Take the split's own training nodes first, as the paper keeps adding to them; False draws all anew.

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
        raise ValueError("grow_train takes either per_class or total, and exactly one of the two.")
    labels = as_labels(y)
    if not len(labels) == len(split.train) == len(split.val) == len(split.test):
        raise ValueError(f"y has {len(labels)} nodes but the split has {len(split.val)}: pass those of one graph.")
    free = np.flatnonzero((labels >= 0) & ~split.val & ~split.test)
    own_first = ~split.train[free] if keep else np.zeros(len(free), bool)
    free = free[np.lexsort((ranks(len(labels), seed)[free], own_first))]
    train = np.zeros(len(labels), bool)
    if total is not None:
        _check_count("total", total, 1)
        if total > len(free):
            raise DataError(f"total is {total}, but only {len(free)} labelled nodes are neither in val nor in test.")
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
    """The ten random splits of a node dataset; the paper uses the first five.

    They are those that the paper's authors published, 20 training and 30 validation nodes per class, all others for
    testing (on CiteSeer that holds with ``labels="authors"``); on digits ten seeded ones, 5 and 30 per class.

    Args:
        name: The dataset.
        root: A folder to look at first, and to download to.

    Raises:
        DataError: If there is no such dataset, or the splits cannot be had or are not the published ones.

    Example:
        >>> len(official_splits("digits"))
        10
    """
    from propreg.data.catalog import NodeSet, find
    from propreg.data.verified import verify_splits

    entry = find(name)
    if not isinstance(entry, NodeSet):
        raise DataError(f"{entry.name} has one split, OGB's: it comes with propreg.load_dataset({entry.name!r}).")
    if not entry.file:
        from propreg.data.digits import digits_splits, read_digits

        return verify_splits(digits_splits(read_digits()[1]), entry, "scikit-learn's digits")
    from propreg.data.fetch import ensure_splits
    from propreg.data.stored_splits import read_splits

    path = ensure_splits(entry, root)
    return verify_splits(read_splits(path, entry.file, entry.nodes), entry, str(path))


def ranks(num_nodes: int, seed: int) -> NDArray[np.uint64]:
    """64 random bits per node; the raw stream of a bit generator is the part of NumPy that never changes."""
    _check_count("seed", seed, 0)
    if seed >= 2**63:
        raise ValueError(f"seed must be below 2**63, but {seed} came.")
    return np.random.Philox(key=np.array([seed, 0x5051], np.uint64)).random_raw(num_nodes)


def as_labels(y: Any) -> NDArray[np.int64]:
    """Labels as int64 [N], refusing what are not classes."""
    labels = np.asarray(y)
    if labels.ndim != 1 or labels.dtype.kind not in "iu" or len(labels) == 0:
        raise DataError(
            f"y must hold one integer class per node, but has type {labels.dtype} and shape {labels.shape}: "
            "pass y of shape [N], -1 where a node has no label."
        )
    if int(labels.min()) < -1 or int(labels.max()) >= 2**31:
        raise DataError(
            f"y must hold classes from 0, or -1 for none, but {int(labels.min())} … {int(labels.max())} came."
        )
    if int(labels.max()) < 0:
        raise DataError("y has no labelled node: at least one class is needed to draw a split.")
    return labels.astype(np.int64)


def _shares(n: int, train: int, val: int) -> tuple[int, int]:
    rest = n - n // 2
    first = max(1, rest * train // (train + val))
    return first, rest - first


def _check_count(name: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name} must be an integer, but {value!r} came.")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, but {value} came.")
