"""Mini-batch P-reg against the whole graph's: over all batches there are, value and gradient are the same."""

import math
from collections import Counter
from collections.abc import Iterator
from itertools import combinations, permutations, product
from typing import Any, cast

import numpy as np
import pytest
import torch
from scipy.stats import chisquare
from torch import Tensor
from torch_geometric.data import Data

from propreg import Term, preg
from propreg._options import PhiName
from propreg._phi import PHIS
from propreg._propagation import Norm
from propreg.scale import Loader, MiniBatchPReg
from propreg.scale import batches as batches_module
from propreg.scale import outer as outer_module
from propreg.scale.outer import some_edges_into

NODES, CLASSES = 6, 3
# Directed; node 5 has no edge in, node 0 five, one of them twice; node 2 has a loop.
EDGES = torch.tensor([[1, 2, 3, 4, 4, 0, 2, 3, 2, 5, 1, 0, 3], [0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 3, 4, 4]])


def graph(*, weighted: bool, loops: bool = True) -> Data:
    generator = torch.Generator().manual_seed(1)
    edges = EDGES if loops else EDGES[:, EDGES[0] != EDGES[1]]
    weight = torch.rand(edges.shape[1], generator=generator) + 0.2
    data = Data(x=torch.eye(NODES), edge_index=edges, y=torch.zeros(NODES, dtype=torch.int64))
    if weighted:
        data.edge_weight = weight
    return data


def logits() -> Tensor:
    return (
        2 * torch.randn(NODES, CLASSES, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    ).requires_grad_()


def all_batches(
    data: Data, regularizer: MiniBatchPReg, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[float, Data]]:
    """Every batch that can be drawn, and its probability: seeds, orders of their neighbors, doublings."""
    assert regularizer.seeds is not None
    loader = Loader(data, [], batch_size=1, preg=regularizer)
    k, degree = regularizer.num_neighbors, torch.bincount(data.edge_index[1], minlength=NODES)
    doubled = regularizer.options.phi != "squared_error"
    sets = list(combinations(range(NODES), regularizer.seeds))
    for seeds in sets:
        counts = [int(degree[s]) for s in seeds]
        many = [0 < k < d for d in counts]
        levels = [doublings(d, k) if more and doubled else [(0, 1.0)] for d, more in zip(counts, many, strict=True)]
        orders = [
            ([*permutations(range(d))] if doubled else [*firsts(d, k)]) if more else [tuple(range(d))]
            for d, more in zip(counts, many, strict=True)
        ]
        for order, level in product(product(*orders), product(*levels)):
            with monkeypatch.context() as patch:
                patch.setattr(batches_module, "distinct_numbers", lambda *_, s=seeds: torch.tensor(s))
                ranks = torch.tensor([rank for each in order for rank in each])
                patch.setattr(outer_module, "_shuffled", lambda *_, r=ranks: r)
                drawn = torch.tensor([each for each, _ in level])
                patch.setattr(outer_module, "doublings", lambda *_, d=drawn: d)
                share = math.prod(p for _, p in level) / math.prod(map(len, orders)) / len(sets)
                yield share, next(iter(loader))


def doublings(degree: int, k: int) -> list[tuple[int, float]]:
    """How often the part of a node can be doubled, and with which probabilities."""
    most = math.ceil(math.log2(degree / k))
    drawn = [(level, 2 ** (-1.5 * level)) for level in range(1, most + 1)]
    return [(0, 1 - sum(p for _, p in drawn)), *drawn]


def firsts(degree: int, k: int) -> Iterator[tuple[int, ...]]:
    """Ranks that have each set of k neighbors first."""
    for kept in combinations(range(degree), k):
        rest = iter(range(k, degree))
        yield tuple(kept.index(i) if i in kept else next(rest) for i in range(degree))


def mean_over_batches(
    z: Tensor, data: Data, regularizer: MiniBatchPReg, monkeypatch: pytest.MonkeyPatch
) -> tuple[Tensor, Tensor]:
    batches = all_batches(data, regularizer, monkeypatch)
    mean = torch.stack([share * regularizer(z[batch.n_id], batch) for share, batch in batches]).sum()
    return mean.detach(), torch.autograd.grad(mean, z)[0]


def whole(z: Tensor, data: Data, phi: PhiName, norm: Norm, loops: bool, detach: Any = None) -> tuple[Tensor, Tensor]:
    value = preg(
        z, data.edge_index, getattr(data, "edge_weight", None), phi=phi, norm=norm, add_self_loops=loops, detach=detach
    )
    return value.detach(), torch.autograd.grad(value, z)[0]


@pytest.mark.parametrize("norm", ["rw", "sym"])
@pytest.mark.parametrize("phi", list(PHIS))
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loops", [False, True])
def test_exact_neighbors_make_no_bias(
    phi: PhiName, norm: Norm, weighted: bool, loops: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, z = graph(weighted=weighted), logits()
    found = mean_over_batches(z, data, MiniBatchPReg(phi, norm, loops, seeds=2), monkeypatch)
    torch.testing.assert_close(found, whole(z, data, phi, norm, loops))


@pytest.mark.parametrize("norm", ["rw", "sym"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("loops", "detach"), [(False, None), (True, None), (False, "neighbors"), (False, "self")])
def test_the_squared_error_of_sampled_neighbors_is_corrected(
    norm: Norm, weighted: bool, loops: bool, detach: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, z = graph(weighted=weighted, loops=not loops), logits()
    regularizer = MiniBatchPReg("squared_error", norm, loops, detach=detach, seeds=2, num_neighbors=2)
    found = mean_over_batches(z, data, regularizer, monkeypatch)
    torch.testing.assert_close(found, whole(z, data, "squared_error", norm, loops, detach))


@pytest.mark.parametrize(
    ("phi", "norm", "weighted", "loops", "detach"),
    [
        ("cross_entropy", "rw", False, False, None),
        ("cross_entropy", "sym", True, True, "neighbors"),
        ("l2_probability", "rw", True, False, "self"),
    ],
)
@pytest.mark.parametrize("size", [1.0, 30.0])
def test_any_other_phi_of_sampled_neighbors_is_corrected(
    phi: PhiName, norm: Norm, weighted: bool, loops: bool, detach: Any, size: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the logits of a confident model, too, where a correction to second order has nothing to hold on to."""
    data, z = graph(weighted=weighted, loops=not loops), (size * logits().detach()).requires_grad_()
    regularizer = MiniBatchPReg(phi, norm, loops, detach=detach, seeds=1, num_neighbors=2)
    found = mean_over_batches(z, data, regularizer, monkeypatch)
    torch.testing.assert_close(found, whole(z, data, phi, norm, loops, detach))


def test_neighbors_are_drawn_and_doubled_as_the_correction_counts_on() -> None:
    """Every order of a node's edges is equally likely, and parts are doubled with the probabilities given."""
    start, own = torch.tensor([0, 9, 9, 12]), torch.tensor([2, 0])
    rng, orders, levels = np.random.default_rng(0), Counter[Any](), Counter[int]()
    for _ in range(6000):
        drawn = some_edges_into(start, own, 2, rng, doubled=True)
        assert drawn.rank is not None
        assert drawn.level is not None
        of_first = drawn.target == 0
        kept = drawn.rank[of_first].tolist()
        assert sorted(kept) == list(range(min(2 << int(drawn.level[0]), 3)))
        if len(kept) == 3:
            orders[tuple(kept)] += 1
        assert int((~of_first).sum()) == min(2 << int(drawn.level[1]), 9)
        assert len(set(drawn.edge.tolist())) == len(drawn.edge)
        assert (drawn.edge[of_first] >= 9).all()
        levels[int(drawn.level[1])] += 1
    assert chisquare([orders[each] for each in permutations(range(3))]).pvalue > 1e-3
    expected = dict(doublings(9, 2))
    assert levels.keys() == expected.keys()
    assert chisquare([levels[i] for i in expected], [6000 * p for p in expected.values()]).pvalue > 1e-3


def test_less_than_three_times_as_many_neighbors_are_kept() -> None:
    degree = torch.full((100_000,), 1 << 20)
    level = outer_module.doublings(degree, 10, torch.rand(len(degree), generator=torch.Generator().manual_seed(0)))
    kept = torch.minimum(10 << level, degree)
    assert 2.5 < kept.double().mean() / 10 < 3


def test_batches_as_they_come_average_to_the_term() -> None:
    """Drawn, not enumerated; the z-test of a wrong mean would fail: seeds=40 of 400 nodes, 200 batches."""
    generator = torch.Generator().manual_seed(0)
    edges = torch.randint(400, (2, 3000), generator=generator)
    z = torch.randn(400, 5, dtype=torch.float64, generator=generator)
    data = Data(x=torch.zeros(400, 1), edge_index=edges, y=torch.zeros(400, dtype=torch.int64))
    for regularizer in (
        MiniBatchPReg(seeds=40),
        MiniBatchPReg("squared_error", "sym", seeds=40, num_neighbors=3),
        MiniBatchPReg(seeds=40, num_neighbors=3),
    ):
        loader = Loader(data, [2], batch_size=20, preg=regularizer)
        values = torch.stack([regularizer(z[b.n_id], b) for _ in range(10) for b in loader])
        o = regularizer.options
        expected = preg(z, edges, phi=o.phi, norm=o.norm)
        assert abs(values.mean() - expected) < 3 * values.std() / len(values) ** 0.5
        assert values.std() > 0.01 * expected, "nothing was drawn"


def test_it_goes_with_a_strength_and_another_pass() -> None:
    data, z = graph(weighted=False), logits()
    regularizer = MiniBatchPReg(seeds=NODES)
    batch = next(iter(Loader(data, [], batch_size=1, preg=regularizer)))
    expected = whole(z, data, "cross_entropy", "rw", False)[0]
    torch.testing.assert_close(Term(regularizer, mu=0.5)(z[batch.n_id], batch), 0.5 * expected, check_dtype=False)
    other = torch.randn_like(z)
    found = regularizer(z[batch.n_id], batch, source=other[batch.n_id])
    torch.testing.assert_close(found, preg(z, data.edge_index, source=other))
    half = MiniBatchPReg("squared_error", seeds=NODES, num_neighbors=2)
    batch = next(iter(Loader(data, [], batch_size=1, preg=half)))
    assert half(z[batch.n_id].bfloat16(), batch).dtype == torch.float32


def test_the_seeds_follow_the_cost() -> None:
    generator = torch.Generator().manual_seed(0)
    edges = torch.randint(5000, (2, 50_000), generator=generator)
    data = Data(x=torch.zeros(5000, 1), edge_index=edges, y=torch.zeros(5000, dtype=torch.int64))

    def size(regularizer: MiniBatchPReg | None) -> tuple[int, float, float]:
        loader = Loader(data, [5, 5], batch_size=100, preg=regularizer)
        sizes = [(len(batch.n_id), batch.edge_index.shape[1]) for batch in loader]
        nodes, edges = (sum(each) / len(each) for each in zip(*sizes, strict=True))
        return loader.preg_seeds, nodes, edges

    _, plain_nodes, plain_edges = size(None)
    few, some = size(MiniBatchPReg(cost=1.25)), size(MiniBatchPReg(cost=2.0))
    assert 1 <= few[0] < some[0]
    for (_, more_nodes, more_edges), cost in ((few, 1.25), (some, 2.0)):
        larger = max(more_nodes / plain_nodes, more_edges / plain_edges)
        assert 0.9 * cost < larger < 1.02 * cost


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"cost": 1.0}, "cost must be a number above 1"),
        ({"cost": "big"}, "cost must be a number above 1"),
        ({"seeds": 0}, "seeds must be a whole number of at least 1"),
        ({"num_neighbors": 1}, "num_neighbors must be -1 for all neighbors or at least 2"),
        ({"phi": "squared"}, "phi must be"),
    ],
)
def test_impossible_options_are_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        MiniBatchPReg(**options)


def test_batches_that_do_not_fit_are_refused() -> None:
    data, z = graph(weighted=False), logits()
    regularizer = MiniBatchPReg(seeds=2)
    plain = next(iter(Loader(data, [1], batch_size=1)))
    with pytest.raises(ValueError, match="pass preg= this regularizer"):
        regularizer(z[plain.n_id], plain)
    batch = next(iter(Loader(data, [1], batch_size=1, preg=regularizer)))
    with pytest.raises(ValueError, match="pass logits of the whole batch"):
        regularizer(z[batch.n_id][:1], batch)
    sampled = MiniBatchPReg(add_self_loops=True, seeds=2, num_neighbors=2)
    with pytest.raises(ValueError, match="a graph without loops of its own"):
        Loader(data, [1], preg=sampled)
    zero = cast(Data, graph(weighted=True).clone())
    zero.edge_weight[0] = 0
    with pytest.raises(ValueError, match="needs edges of positive weight"):
        Loader(zero, [1], preg=MiniBatchPReg(seeds=2, num_neighbors=2))
