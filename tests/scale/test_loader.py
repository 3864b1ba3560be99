"""The loader: batches as PyG has them, the same whoever makes them."""

import pickle
from typing import Any

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data

from propreg import preg
from propreg.scale import Loader, MiniBatchPReg
from propreg.scale import batches as batches_module
from propreg.scale.randomness import torch_generator
from propreg.scale.source import source_of
from propreg.scale.torch_sampler import TorchSampler

NODES = 300


def graph(*, weighted: bool = False) -> Data:
    generator = torch.Generator().manual_seed(0)
    edges = torch.randint(NODES, (2, 2000), generator=generator)
    data = Data(x=torch.arange(NODES).float().unsqueeze(-1), edge_index=edges, y=torch.arange(NODES))
    data.train_mask = torch.arange(NODES) % 3 == 0
    if weighted:
        data.edge_weight = edges[0] * 1000.0 + edges[1] + 1
    return data


def same(first: Data, second: Data) -> bool:
    assert first.keys() == second.keys()
    return all(
        torch.equal(first[key], second[key]) if isinstance(first[key], Tensor) else first[key] == second[key]
        for key in first.keys()  # noqa: SIM118  (of a Data)
    )


def test_a_batch_holds_what_its_nodes_have() -> None:
    data = graph(weighted=True)
    degree = torch.zeros(NODES).index_add(0, data.edge_index[1], data.edge_weight)
    seen = []
    for batch in Loader(data, [4, 2], batch_size=32, input_nodes=data.train_mask):
        n = batch.n_id
        seen += n[: batch.batch_size].tolist()
        assert batch.x.flatten().tolist() == n.tolist() == batch.y.tolist()
        assert torch.equal(batch.train_mask, data.train_mask[n])
        source, target = n[batch.edge_index]
        assert (batch.edge_weight == source * 1000 + target + 1).all(), "the weights of these edges"
        assert (batch.degree == degree[n]).all()
        assert sum(batch.num_sampled_nodes) == len(n)
        assert batch.to("cpu").num_nodes == len(n)
    assert sorted(seen) == data.train_mask.nonzero().flatten().tolist()


def test_epochs_are_shuffled_anew_and_can_be_resumed() -> None:
    def loader(seed: int = 0) -> Loader:
        return Loader(graph(), [3], batch_size=100, seed=seed)

    one = loader()
    first, second = list(one), list(one)
    assert len(one) == len(first) == 3
    assert not torch.equal(first[0].n_id[:100], second[0].n_id[:100])
    resumed = loader()
    resumed.epoch = 1
    assert all(same(a, b) for a, b in zip(second, resumed, strict=True))
    assert not same(first[0], next(iter(loader(seed=1))))
    in_order = Loader(graph(), [3], batch_size=100, shuffle=False)
    assert torch.cat([b.n_id[: b.batch_size] for b in in_order]).tolist() == list(range(NODES))


def test_batches_do_not_depend_on_workers_or_on_torchs_own_random_numbers() -> None:
    data = graph()

    def batches(workers: int) -> list[Data]:
        regularizer = MiniBatchPReg(seeds=5)
        return list(Loader(data, [3, 3], batch_size=64, preg=regularizer, num_workers=workers))

    torch.manual_seed(0)
    alone = batches(0)
    torch.manual_seed(1)
    before = torch.get_rng_state()
    helped = batches(2)
    assert torch.equal(torch.get_rng_state(), before)
    assert len(alone) == len(helped) == 5
    assert all(same(a, b) for a, b in zip(alone, helped, strict=True))


def test_batches_travel_to_spawned_workers() -> None:
    """Where processes are not forked, they get what makes batches pickled."""
    loader = Loader(graph(weighted=True), [3], preg=MiniBatchPReg(seeds=5))
    seeds = torch.arange(10)
    copy = pickle.loads(pickle.dumps(loader._batches))
    assert same(Data(**copy[0, 0, seeds]), Data(**loader._batches[0, 0, seeds]))


def test_ranks_share_the_batches_of_one_process() -> None:
    def batches(rank: int = 0, world_size: int = 1) -> list[Data]:
        return list(Loader(graph(), [2], batch_size=50, rank=rank, world_size=world_size))

    alone, parts = batches(), [batches(rank, 2) for rank in range(2)]
    assert all(same(a, parts[i % 2][i // 2]) for i, a in enumerate(alone))
    assert [len(batches(rank, 4)) for rank in range(4)] == [1] * 4, "6 batches: each rank as many"


def test_on_a_device_the_torch_sampler_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a GPU runs, here on the CPU: the same seeds, neighborhoods and nodes for P-reg."""
    data = graph()

    def on_device(self: Any, num_neighbors: list[int], *, replace: bool) -> TorchSampler:
        return TorchSampler(self._source.start, self._source.source, num_neighbors, replace=replace)

    monkeypatch.setattr(batches_module.Batches, "_sampler", on_device)
    monkeypatch.setattr(
        batches_module.Batches,
        "_rng",
        lambda self, *key: torch_generator((self._seed, *key), torch.device("cpu")),
    )
    z = torch.randn(NODES, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    for regularizer in (MiniBatchPReg(seeds=5), MiniBatchPReg("squared_error", seeds=NODES, num_neighbors=50)):
        loader = Loader(data, [-1], batch_size=64, preg=regularizer)
        for batch in loader:
            source, target = batch.n_id[batch.edge_index]
            pairs = {*zip(source.tolist(), target.tolist(), strict=True)}
            assert pairs <= {*zip(*data.edge_index.tolist(), strict=True)}
            assert batch.preg_seeds == loader.preg_seeds
            assert len(batch.n_id.unique()) == len(batch.n_id)
    expected = preg(z, data.edge_index, phi="squared_error")
    torch.testing.assert_close(regularizer(z[batch.n_id], batch), expected)  # all nodes, and none has 50 neighbors


def test_impossible_settings_are_refused() -> None:
    data = graph()
    for options, says in (
        ({"batch_size": 0}, "batch_size must be a whole number of at least 1"),
        ({"rank": 2, "world_size": 2}, "world_size must be a whole number of at least 3"),
        ({"input_nodes": data.x}, "input_nodes must be a bool mask or int64"),
        ({"input_nodes": torch.tensor([NODES])}, "input_nodes holds node 300: node numbers go from 0 to 299"),
        ({"input_nodes": torch.zeros(7, dtype=torch.bool)}, "a mask of 7 entries for 300 nodes"),
        ({"input_nodes": torch.zeros(NODES, dtype=torch.bool)}, "input_nodes is empty"),
        ({"batch_size": 200, "world_size": 3}, "too few for 3 batches of 200"),
    ):
        with pytest.raises((ValueError, TypeError), match=says):
            Loader(data, [2], **options)
    with pytest.raises(TypeError, match="data must be a PyG Data"):
        Loader(3, [2])
    data.x = data.x.to_sparse()
    with pytest.raises(TypeError, match=r"data.x is sparse, and a batch takes rows of it"):
        source_of(data)
