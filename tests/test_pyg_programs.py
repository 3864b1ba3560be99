"""The programs that people write with PyG, each with the one line added: it trains as with the term written out.

Each takes the line and returns the losses of a few epochs. By hand the term is dense and slow; without it the losses
are others.
"""

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import propreg
from communities import communities
from propreg.data.own.pyg import to_data
from samples import torch_uses_jit

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # PyG's own import warns of its use of torch.jit
    from torch_geometric.data import Data, HeteroData
    from torch_geometric.loader import DataLoader
    from torch_geometric.nn import APPNP, BatchNorm, GATConv, GCNConv, GINConv, HeteroConv, SAGEConv
    from torch_geometric.utils import k_hop_subgraph, to_torch_csr_tensor

Line = Callable[..., Tensor]
EPOCHS = 3
DATA = to_data(communities())
DATA.train_mask = torch.arange(120) < 30


def by_hand(z: Tensor, graph: Any, phi: str = "cross_entropy", mask: Tensor | None = None) -> Tensor:
    """The mean over the nodes of φ(Z, ÂZ), with a dense Â."""
    if graph.is_sparse or graph.layout != torch.strided:
        matrix = graph.to_dense().to(z)
    else:
        matrix = z.new_zeros(len(z), len(z))
        matrix.index_put_((graph[1], graph[0]), z.new_ones(()), accumulate=True)
    degree = matrix.sum(1, keepdim=True)
    mean = matrix @ z / degree.clamp(min=1)
    if phi == "bernoulli":
        each = F.binary_cross_entropy_with_logits(mean, z.sigmoid(), reduction="none").sum(1)
    else:
        each = -(z.softmax(1) * mean.log_softmax(1)).sum(1)
    each = torch.where(degree[:, 0] > 0, each, 0)
    return each.mean() if mask is None else each[mask].mean()


def loop(model: nn.Module, forward: Callable[[], Tensor], loss_of: Callable[[Tensor], Tensor]) -> list[float]:
    """What every script's ``train()`` does."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    losses = []
    for _ in range(EPOCHS):
        model.train()
        optimizer.zero_grad()
        loss = loss_of(forward())
        torch.autograd.backward(loss)
        optimizer.step()
        losses.append(loss.item())
    return losses


def supervised(z: Tensor) -> Tensor:
    return F.cross_entropy(z[DATA.train_mask], DATA.y[DATA.train_mask])


class Net(nn.Module):
    """Two convolutions."""

    def __init__(self, first: nn.Module, second: nn.Module, dropout: float = 0.5) -> None:
        super().__init__()
        self.first, self.second, self.dropout = first, second, dropout

    def forward(self, x: Tensor, edge_index: Any) -> Tensor:
        x = F.dropout(x, self.dropout, self.training)
        x = F.dropout(F.elu(self.first(x, edge_index)), self.dropout, self.training)
        z: Tensor = self.second(x, edge_index)
        return z


def full_batch(model: nn.Module, line: Line) -> list[float]:
    z = lambda: model(DATA.x, DATA.edge_index)  # noqa: E731
    return loop(model, z, lambda z: supervised(z) + 0.5 * line(z, DATA.edge_index))


def gcn(line: Line) -> list[float]:
    return full_batch(Net(GCNConv(8, 16, cached=True), GCNConv(16, 3, cached=True)), line)


def gat(line: Line) -> list[float]:
    return full_batch(Net(GATConv(8, 4, heads=4, dropout=0.6), GATConv(16, 3, concat=False, dropout=0.6)), line)


def graph_sage(line: Line) -> list[float]:
    return full_batch(Net(SAGEConv(8, 16), SAGEConv(16, 3)), line)


def appnp(line: Line) -> list[float]:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two, self.propagate = nn.Linear(8, 16), nn.Linear(16, 3), APPNP(5, 0.1)

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            z: Tensor = self.propagate(self.two(F.dropout(self.one(x).relu(), 0.5, self.training)), edge_index)
            return z

    return full_batch(Net(), line)


def gin(line: Line) -> list[float]:
    layers = nn.Sequential(nn.Linear(8, 16), BatchNorm(16), nn.ReLU(), nn.Linear(16, 16))
    return full_batch(Net(GINConv(layers, train_eps=True), SAGEConv(16, 3)), line)


def sparse_adjacency(line: Line) -> list[float]:
    """``adj_t`` of ``T.ToSparseTensor``, as torch's CSR tensor, in the place of ``edge_index``."""
    model, adj_t = Net(GCNConv(8, 16), GCNConv(16, 3)), to_torch_csr_tensor(DATA.edge_index.flip(0), size=(120, 120))
    return loop(model, lambda: model(DATA.x, adj_t), lambda z: supervised(z) + 0.5 * line(z, adj_t))


def hetero(line: Line) -> list[float]:
    """Papers and authors: one term for the edges between papers."""
    data = HeteroData()
    data["paper"].x, data["author"].x = DATA.x, torch.eye(10)
    writes = torch.stack([torch.arange(120) % 10, torch.arange(120)])
    data["paper", "cites", "paper"].edge_index = DATA.edge_index
    data["author", "writes", "paper"].edge_index = writes
    data["paper", "by", "author"].edge_index = writes.flip(0)
    conv, out = HeteroConv({kind: SAGEConv((-1, -1), 16) for kind in data.edge_types}), nn.Linear(16, 3)
    model = nn.ModuleList([conv, out])
    conv(data.x_dict, data.edge_index_dict)  # initializes the lazy layers

    def forward() -> Tensor:
        z: Tensor = out(conv(data.x_dict, data.edge_index_dict)["paper"].relu())
        return z

    cites = data["paper", "cites", "paper"].edge_index
    return loop(model, forward, lambda z: supervised(z) + 0.5 * line(z, cites))


def mini_batches(line: Line) -> list[float]:
    """Subgraphs of a hop more than layers, where pyg-lib and its loaders are missing."""
    model, losses = Net(SAGEConv(8, 16), SAGEConv(16, 3), dropout=0.0), list[float]()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for nodes in torch.arange(120).chunk(4):
        around, edges, inner, _ = k_hop_subgraph(nodes, 3, DATA.edge_index, relabel_nodes=True)
        z = model(DATA.x[around], edges)
        mask = torch.zeros(len(around), dtype=torch.bool).index_fill_(0, inner, True)
        loss = F.cross_entropy(z[inner], DATA.y[around][inner]) + 0.5 * line(z, edges, mask=mask)
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()
        losses.append(loss.item())
    return losses


def many_graphs(line: Line) -> list[float]:
    """``ppi.py``: batches of graphs with several labels for each node."""
    graphs = [
        Data(x=DATA.x, edge_index=DATA.edge_index, y=F.one_hot((DATA.y + shift) % 3).float()) for shift in range(4)
    ]
    model, losses = Net(GATConv(8, 4, heads=2), GATConv(8, 3)), list[float]()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
    for batch in DataLoader(graphs, batch_size=2, shuffle=True):
        z = model(batch.x, batch.edge_index)
        loss = F.binary_cross_entropy_with_logits(z, batch.y) + 0.5 * line(z, batch.edge_index, phi="bernoulli")
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()
        losses.append(loss.item())
    return losses


def distributed(line: Line) -> list[float]:
    """``DistributedDataParallel`` with gloo, in a group of one process."""
    meeting = f"file://{Path('store').resolve()}"  # in the test's own folder
    torch.distributed.init_process_group("gloo", init_method=meeting, rank=0, world_size=1)
    try:
        return full_batch(nn.parallel.DistributedDataParallel(Net(GCNConv(8, 16), GCNConv(16, 3))), line)
    finally:
        torch.distributed.destroy_process_group()


def compiled(line: Line) -> list[float]:
    model = Net(SAGEConv(8, 16), SAGEConv(16, 3), dropout=0.0)
    loss_of = torch.compile(lambda z: supervised(z) + 0.5 * line(z, DATA.edge_index), backend="aot_eager")
    return loop(model, lambda: model(DATA.x, DATA.edge_index), loss_of)


def functional(line: Line) -> list[float]:
    """``torch.func``: per-model gradients of an ensemble, by ``vmap`` over stacked parameters."""
    models = [nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3)) for _ in range(2)]
    parameters, _ = torch.func.stack_module_state(models)

    def loss_of(p: dict[str, Tensor]) -> Tensor:
        z = torch.func.functional_call(models[0], p, (DATA.x,))
        return supervised(z) + 0.5 * line(z, DATA.edge_index)

    losses = []
    for _ in range(EPOCHS):
        gradients, values = torch.func.vmap(torch.func.grad_and_value(loss_of))(parameters)
        parameters = {name: (p - 0.5 * gradients[name]).detach() for name, p in parameters.items()}
        losses += values.tolist()
    return losses


def mixed_precision(line: Line) -> list[float]:
    model = Net(GCNConv(8, 16), GCNConv(16, 3))

    def forward() -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            z: Tensor = model(DATA.x, DATA.edge_index)
        return z.float()

    return loop(model, forward, lambda z: supervised(z) + 0.5 * line(z, DATA.edge_index))


def lightning(line: Line) -> list[float]:
    given = pytest.importorskip("lightning")
    losses: list[float] = []

    class Module(given.LightningModule):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.net = Net(GCNConv(8, 16), GCNConv(16, 3))

        def training_step(self, data: Data) -> Tensor:
            z = self.net(data.x, data.edge_index)
            loss = F.cross_entropy(z[data.train_mask], data.y[data.train_mask]) + 0.5 * line(z, data.edge_index)
            losses.append(loss.item())
            return loss

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.Adam(self.parameters(), lr=0.01)

    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    trainer = given.Trainer(max_epochs=EPOCHS, accelerator="cpu", enable_model_summary=False, **quiet)
    trainer.fit(Module(), DataLoader([DATA], batch_size=1))
    return losses


PROGRAMS: list[Callable[[Line], list[float]]] = [
    gcn, gat, graph_sage, appnp, gin, sparse_adjacency, hetero, mini_batches, many_graphs, distributed, compiled,
    functional, mixed_precision, lightning,
]  # fmt: skip


@pytest.fixture(autouse=True)
def _quiet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Programs leave nothing behind: neither files nor torch's random state."""
    monkeypatch.chdir(tmp_path)
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of PyG, Lightning and torch: not ours to mend
        yield
    torch.compiler.reset()


@torch_uses_jit
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_with_the_line_trains_as_with_the_term_written_out(program: Callable[[Line], list[float]]) -> None:
    def run(line: Line) -> list[float]:
        torch.manual_seed(0)
        return program(line)

    found = run(propreg.preg)
    assert found == pytest.approx(run(by_hand), rel=1e-4)
    without = run(lambda z, *_, **__: 0 * z.sum())
    assert len(found) == len(without)
    assert all(abs(one - other) > 1e-3 for one, other in zip(found, without, strict=True))


@torch_uses_jit
def test_a_model_that_was_trained_with_the_line_is_exported_without_it() -> None:
    """Nothing of the term is left at inference, and the loss itself can be exported, too."""
    torch.manual_seed(0)
    model = Net(GCNConv(8, 16), GCNConv(16, 3))
    full_batch(model, propreg.preg)
    inputs = DATA.x, DATA.edge_index
    exported = torch.export.export(model.eval(), inputs).module()
    torch.testing.assert_close(exported(*inputs), model(*inputs))

    class Loss(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.term = propreg.PReg()

        def forward(self, z: Tensor, edge_index: Tensor) -> Tensor:
            loss: Tensor = supervised(z) + 0.5 * self.term(z, edge_index)
            return loss

    z = model(*inputs).detach()
    loss = torch.export.export(Loss(), (z, DATA.edge_index)).module()
    torch.testing.assert_close(loss(z, DATA.edge_index), supervised(z) + 0.5 * by_hand(z, DATA.edge_index))
