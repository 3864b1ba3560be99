"""On a GPU: the sampler, the loader, P-reg on its batches, and the graphs that are drawn there."""

import warnings

import pytest
import torch

from propreg import PReg, preg
from propreg.data.csr import InEdges
from propreg.data.synthetic import random_graph
from propreg.scale import Loader, MiniBatchPReg
from propreg.scale.torch_sampler import TorchSampler, in_edges

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
CUDA = torch.device("cuda")


def test_samples_are_real_edges_and_repeat_with_their_seed() -> None:
    data = random_graph(5000, 100_000, 8, 4, device="cuda")
    start, source, _ = in_edges(data.edge_index, 5000, None)
    edges = InEdges.of(data.edge_index.cpu().numpy(), 5000)
    assert start.tolist() == edges.start.tolist()
    assert source.tolist() == edges.source.tolist()
    target = torch.from_numpy(edges.targets()).to(CUDA)
    for fanouts, replace in (([10, 5], False), ([10, 5], True), ([-1, 3], False)):
        sampler = TorchSampler(start, source, fanouts, replace=replace)
        seeds = torch.randperm(5000, device=CUDA)[:500]
        drawn = [sampler(seeds, torch.Generator(CUDA).manual_seed(1)) for _ in range(2)]
        first = drawn[0]
        for name in ("nodes", "edge_index", "edge"):
            assert torch.equal(getattr(first, name), getattr(drawn[1], name)), name
        assert torch.equal(first.nodes[:500], seeds)
        assert len(set(first.nodes.tolist())) == len(first.nodes)
        assert torch.equal(first.nodes[first.edge_index[0]], source[first.edge].long())
        assert torch.equal(first.nodes[first.edge_index[1]], target[first.edge])
        assert not replace or first.num_edges[0] == 500 * 10 - 10 * int((start.diff()[seeds] == 0).sum())
        if not replace:
            pairs = first.edge_index[1] * len(source) + first.edge
            assert len(set(pairs.tolist())) == len(pairs)


def test_nothing_waits_for_the_gpu_between_hops() -> None:
    data = random_graph(5000, 100_000, 8, 4, device="cuda")
    start, source, _ = in_edges(data.edge_index, 5000, None)
    sampler, cut = TorchSampler(start, source, [5, 5]), TorchSampler._cut
    seeds, generator = torch.arange(500, device=CUDA), torch.Generator(CUDA)
    sampler(seeds, generator)

    def end(self: TorchSampler, *parts: object) -> object:
        torch.cuda.set_sync_debug_mode("default")  # the sizes are asked for once
        return cut(self, *parts)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TorchSampler, "_cut", end)
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message="Synchronization debug mode is a prototype feature")
                torch.cuda.set_sync_debug_mode("error")
            sampler(seeds, generator)
        finally:
            torch.cuda.set_sync_debug_mode("default")


def test_batches_average_to_the_term() -> None:
    data = random_graph(2000, 20_000, 8, 4, device="cuda")
    z = torch.randn(2000, 4, device=CUDA, dtype=torch.float64, generator=torch.Generator(CUDA).manual_seed(0))
    every = MiniBatchPReg(norm="sym", seeds=2000)
    batch = next(iter(Loader(data, [3], batch_size=50, preg=every)))
    assert batch.x.is_cuda
    torch.testing.assert_close(every(z[batch.n_id], batch), preg(z, data.edge_index, norm="sym"))
    some = MiniBatchPReg(seeds=2000, num_neighbors=4)
    loader = Loader(data, [], batch_size=40, preg=some)
    values = torch.stack([some(z[batch.n_id], batch) for batch in loader])
    assert abs(values.mean() - preg(z, data.edge_index)) < 4 * values.std() / len(values) ** 0.5
    total = torch.zeros((), device=CUDA, dtype=torch.float64)
    for batch in Loader(data, [-1, 2], batch_size=300):
        total += batch.batch_size / 2000 * PReg().on_batch(z[batch.n_id], batch)
    torch.testing.assert_close(total, preg(z, data.edge_index), rtol=1e-6, atol=0)


def test_a_graph_drawn_there_is_as_asked() -> None:
    data = random_graph(20_000, 200_000, 32, 8, homophily=0.6, label_noise=0.0, device="cuda")
    source, target = data.edge_index
    assert ((source * 20_000 + target).diff() > 0).all()
    assert (data.y[source] == data.y[target]).double().mean().item() == pytest.approx(0.6, abs=0.03)
