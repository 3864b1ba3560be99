"""Random graphs of any size with planted classes: for benchmarks, and for what no published dataset shows."""

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from propreg.data.errors import DataError
from propreg.data.own.pyg import data_class

if TYPE_CHECKING:
    from torch_geometric.data import Data

_ROUNDS = 60
_BLOCK = 1 << 18  # rows of features at a time


def random_graph(
    num_nodes: int,
    num_edges: int,
    num_features: int = 100,
    num_classes: int = 10,
    *,
    homophily: float = 0.7,
    exponent: float = 2.5,
    feature_accuracy: float = 0.5,
    label_noise: float = 0.1,
    train: float = 0.1,
    val: float = 0.1,
    seed: int = 0,
    device: torch.device | str = "cpu",
) -> "Data":
    """Draw an undirected graph from a degree-corrected block model, with features and labels that follow its classes.

    Each node has one of ``num_classes`` classes, an expected degree from a power law, and features that are its class's
    mean plus Gaussian noise. An edge joins two nodes drawn by their expected degrees, of the same class in a share
    ``homophily`` of the edges. No loops, no duplicates. It takes time and memory in proportion to the edges.

    Args:
        num_nodes: The number of nodes.
        num_edges: The number of directed edges, two for each undirected one.
        num_features: The number of features.
        num_classes: The number of classes, of about the same size.
        homophily: The share of edges within a class, at least that of chance.
        exponent: The exponent of the power law; 2.5 and 3 are common. The smaller, the larger the hubs.
        feature_accuracy: The best accuracy that a node's own features allow, before label noise, with at least as many
            features as classes. With fewer features it is lower.
        label_noise: The share of labels that are replaced by a random class: the labels' best accuracy is about
            1 − ``label_noise``.
        train, val: The shares of nodes in the masks; all other nodes are for testing.
        seed: The seed of all draws. A GPU draws a different graph than a CPU.
        device: The device on which the graph is drawn and stays.

    Returns:
        ``Data`` with ``x``, ``edge_index`` sorted by source and target, ``y`` and masks.

    Raises:
        DataError: If no such graph is found because it would be too dense.

    Example:
        >>> random_graph(1000, 10_000, num_features=16, num_classes=4)
        Data(x=[1000, 16], edge_index=[2, 10000], y=[1000], train_mask=[1000], val_mask=[1000], test_mask=[1000])
    """
    _check(num_nodes, num_edges, num_features, num_classes, exponent, train, val)
    for name, share in (("homophily", homophily), ("label_noise", label_noise)):
        if not 0 <= share <= 1:
            raise ValueError(f"{name} is a share from 0 to 1, got {share!r}.")
    generator = torch.Generator(device).manual_seed(seed)
    planted = torch.randint(num_classes, (num_nodes,), generator=generator, device=device)
    edge_index = _edges(planted, num_edges, num_classes, homophily, exponent, generator)
    x = _features(planted, num_features, num_classes, _separation(feature_accuracy, num_classes), generator)
    noisy = torch.rand(num_nodes, generator=generator, device=device) < label_noise
    y = torch.where(noisy, torch.randint(num_classes, (num_nodes,), generator=generator, device=device), planted)
    rank = torch.rand(num_nodes, generator=generator, device=device)
    masks = {"train_mask": rank < train, "val_mask": (rank >= train) & (rank < train + val)}
    return data_class()(x=x, edge_index=edge_index, y=y, **masks, test_mask=rank >= train + val)


def _edges(
    planted: Tensor, num_edges: int, num_classes: int, homophily: float, exponent: float, generator: torch.Generator
) -> Tensor:
    """Both directions of each edge, sorted."""
    nodes, count = len(planted), num_edges // 2
    by_class = planted.argsort(stable=True)
    weight = _expected_degrees(nodes, num_edges, exponent, generator)
    ends = weight.cumsum(0)  # node by_class[i] owns the numbers from ends[i - 1] to ends[i]
    limits = torch.bincount(planted, minlength=num_classes).cumsum(0)
    high = torch.where(limits > 0, ends[(limits - 1).clamp(min=0)], 0.0)
    low = torch.cat([high.new_zeros(1), high[:-1]])
    chance = float((((high - low) / ends[-1]) ** 2).sum())
    if homophily < chance:
        raise ValueError(
            f"homophily must be at least that of chance, {chance:.3f} with these classes, got {homophily}."
        )
    within = (homophily - chance) / (1 - chance) if chance < 1 else 1.0

    def drawn(start: Tensor | float, end: Tensor, size: int) -> Tensor:
        place = start + (end - start) * torch.rand(size, generator=generator, device=ends.device, dtype=torch.float64)
        return torch.searchsorted(ends, place, right=True).clamp(max=nodes - 1)

    keys = by_class.new_empty(0)
    for _ in range(_ROUNDS):
        missing = count - len(keys)
        if not missing:
            return _both_directions(keys, nodes)
        first = drawn(0.0, ends[-1], missing)
        same = torch.rand(missing, generator=generator, device=ends.device) < within
        group = planted[by_class[first]]
        second = drawn(torch.where(same, low[group], 0.0), torch.where(same, high[group], ends[-1]), missing)
        a, b = by_class[first], by_class[second]
        del first, second, group, same
        key = torch.minimum(a, b) * nodes + torch.maximum(a, b)
        keys = torch.cat([keys, key[a != b]]).sort().values
        keys = keys[torch.cat([keys.new_ones(1, dtype=torch.bool), keys[1:] != keys[:-1]])[: len(keys)]]
    raise DataError(
        f"only {2 * len(keys)} of {num_edges} edges could be drawn: use fewer edges, more nodes or a larger exponent."
    )


def _expected_degrees(nodes: int, num_edges: int, exponent: float, generator: torch.Generator) -> Tensor:
    """Weights from a power law, cut where two hubs would have more than one edge in common."""
    uniform = 1 - torch.rand(nodes, generator=generator, device=generator.device, dtype=torch.float64)
    weight = uniform ** (-1 / (exponent - 1))
    return weight.clamp(max=float(weight.sum()) / math.sqrt(max(num_edges, 1)))


def _both_directions(keys: Tensor, nodes: int) -> Tensor:
    keys = torch.cat([keys, keys % nodes * nodes + keys // nodes]).sort().values
    edge_index = keys.new_empty(2, len(keys))
    torch.div(keys, nodes, rounding_mode="floor", out=edge_index[0])
    torch.remainder(keys, nodes, out=edge_index[1])
    return edge_index


def _features(
    planted: Tensor, num_features: int, num_classes: int, separation: float, generator: torch.Generator
) -> Tensor:
    """Noise around one mean per class; orthogonal means are as easy to tell apart as the integral says."""
    device = planted.device
    means = torch.randn(num_features, num_classes, generator=generator, device=device)
    means = torch.linalg.qr(means).Q if num_features >= num_classes else means / means.norm(dim=0)
    means = separation * means.T
    x = torch.randn(len(planted), num_features, generator=generator, device=device)
    for first in range(0, len(planted), _BLOCK):
        x[first : first + _BLOCK] += means[planted[first : first + _BLOCK]]
    return x


def _separation(accuracy: float, num_classes: int) -> float:
    r"""The length of orthogonal means at which the best classifier is right with this probability.

    It picks the largest of one normal number around the length and C − 1 around 0:
    :math:`\int \varphi(t - s)\, \Phi(t)^{C-1} dt`.
    """
    if not 1 / num_classes <= accuracy < 1:
        raise ValueError(
            f"feature_accuracy must be at least that of guessing, {1 / num_classes:.3g}, and below 1, got {accuracy!r}."
        )
    t = torch.linspace(-8, 18, 5201, dtype=torch.float64)
    others = (0.5 * torch.erfc(-t / math.sqrt(2))) ** (num_classes - 1)

    def right(s: float) -> float:
        return float(torch.trapezoid(torch.exp(-0.5 * (t - s) ** 2) / math.sqrt(2 * math.pi) * others, t))

    low, high = 0.0, 10.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if right(middle) < accuracy else (low, middle)
    return low


def _check(nodes: int, edges: int, features: int, classes: int, exponent: float, train: float, val: float) -> None:
    for name, value, least in (
        ("num_nodes", nodes, 2),
        ("num_edges", edges, 0),
        ("num_features", features, 1),
        ("num_classes", classes, 2),
    ):
        if type(value) is not int or value < least:
            raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}.")
    if edges % 2 or edges > nodes * (nodes - 1):
        raise ValueError(
            f"num_edges counts both directions of each edge: an even number of at most {nodes * (nodes - 1)} for "
            f"{nodes} nodes, got {edges}."
        )
    if not exponent > 2:
        raise ValueError(f"exponent must be above 2, so that degrees have a mean, got {exponent!r}.")
    if not (train >= 0 and val >= 0 and train + val <= 1):
        raise ValueError(f"train and val are shares of the nodes and at most 1 together, got {train!r} and {val!r}.")
