"""How a fit does on each class: a confusion matrix, and precision, recall and F1."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from propreg.data.graph import Split


def confusion_of(
    y: NDArray[np.int64], predicted: NDArray[np.int64], splits: Sequence[Split], classes: int
) -> NDArray[np.int64]:
    """The confusion matrix [true, predicted] over the test nodes of all runs.

    Args:
        y: The classes of the nodes.
        predicted: By each run [splits, seeds, nodes], −1 where there is none.
        splits: In the array's order.
        classes: Their number.

    Example:
        >>> split = Split(*(np.array([part]) == [0, 1, 2, 2] for part in range(3)))
        >>> confusion_of(np.array([0, 1, 0, 1]), np.array([[[0, 0, 0, 0]]]), [split], 2).tolist()
        [[1, 0], [1, 0]]
    """
    table = np.zeros(classes * classes, np.int64)
    for split, of_seeds in zip(splits, predicted, strict=True):
        for said in of_seeds:
            nodes = np.flatnonzero(split.test & (said >= 0))
            table += np.bincount(y[nodes] * classes + said[nodes], minlength=classes * classes)
    return table.reshape(classes, classes)


def report_of(table: NDArray[np.int64], names: Sequence[str]) -> str:
    """Precision, recall, F1 and the number of test nodes of each class, their means, and the accuracy, as text.

    Example:
        >>> print(report_of(np.array([[3, 1], [0, 4]]), ["cat", "dog"]))
                  precision   recall       F1    nodes
        cat          1.0000   0.7500   0.8571        4
        dog          0.8000   1.0000   0.8889        4
        mean         0.9000   0.8750   0.8730        8
        accuracy                       0.8750        8
    """
    right, true, said = np.diag(table), table.sum(axis=1), table.sum(axis=0)
    precision, recall, f1 = (2 * right / np.maximum(n, 1) / d for n, d in ((said, 2), (true, 2), (true + said, 1)))
    used = true + said > 0
    wide = max(8, *(len(name) for name in names))
    rows = [f"{'':<{wide}}  precision   recall       F1    nodes"]
    means = precision[used].mean(), recall[used].mean(), f1[used].mean()
    numbers = [*zip(precision, recall, f1, true, strict=True), (*means, true.sum())]
    for name, (a, b, c, nodes) in zip([*names, "mean"], numbers, strict=True):
        rows.append(f"{name:<{wide}}  {a:>9.4f}  {b:>7.4f}  {c:>7.4f}  {nodes:>7}")
    rows.append(f"{'accuracy':<{wide}}  {'':>9}  {'':>7}  {right.sum() / max(true.sum(), 1):>7.4f}  {true.sum():>7}")
    return "\n".join(rows)
