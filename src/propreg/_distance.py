"""The paper's ω: how tight the classes are in a model's output."""

import torch
from torch import Tensor

from propreg import _errors


def intra_class_distance(z: Tensor, y: Tensor) -> Tensor:
    r"""The average intra-class distance ω of section 4.2.3,

    .. math::
        \omega = \frac1N \sum_{k=1}^{C} \sum_{i \in S_k} \| z_i - c_k \|_2, \qquad
        c_k = \frac{1}{|S_k|} \sum_{i \in S_k} z_i .

    Args:
        z: Outputs or embeddings, one row per node.
        y: The class of each node, int64.

    Shape:
        - z: :math:`(N, F)`; y: :math:`(N)`; returns a scalar.

    Example:
        >>> import torch
        >>> z = torch.tensor([[0.0, 0.0], [2.0, 0.0], [5.0, 5.0]])
        >>> intra_class_distance(z, torch.tensor([0, 0, 1])).item()
        0.6666666865348816
    """
    _errors.logits("z", z)
    if not isinstance(y, Tensor) or y.shape != z.shape[:1]:
        shape = tuple(y.shape) if isinstance(y, Tensor) else type(y).__name__
        raise ValueError(f"y must hold one class per row of z, shape ({z.shape[0]},), got {shape}.")
    if y.dtype != torch.int64:
        raise TypeError(f"y must be int64 class numbers, but its dtype is {y.dtype}: use y.long().")
    _errors.same_device("z", z, "y", y)
    z = _errors.at_least_float32(z)
    checked = _errors.values_are_checked(None, z, y)
    if checked:
        _errors.finite_rows("z", z)
    if checked and int(y.min()) < 0:
        raise ValueError(
            f"y has the negative class {int(y.min())}: leave nodes without a label out, z[y >= 0] and y[y >= 0]."
        )
    classes = int(y.max()) + 1
    sums = z.new_zeros(classes, z.shape[1]).index_add(0, y, z)
    sizes = z.new_zeros(classes).index_add(0, y, torch.ones_like(y, dtype=z.dtype))
    centers = sums / sizes.clamp(min=1).unsqueeze(-1)
    distances: Tensor = torch.linalg.vector_norm(z - centers.index_select(0, y), dim=-1)
    return distances.mean()
