"""Training on molecules: the engine's time per run and step, against OGB's example loop written in PyG.

The loop is what a user of OGB runs: PyG's DataLoader, one model, one mini-batch of 32 at a time, plain or with P-reg in
the paper form through ``propreg.preg``. Both train on the same dataset with the same model; times are per run and step,
evaluation left out. The engine's numbers of runs are 10 seeds times so many strengths; on a CPU 12 strengths of
one seed, as ``fit_graphs`` trains them.

On a CPU times are of the processor, of all threads together: other programs do not count. There the matrix products of
a step are timed alone, too: no program can be faster. Their share decides how much there is to gain.

``--forms`` measures only what P-reg costs: the engine's step in the paper form and in the official-code form, which
takes three passes, against that of the plain model.
"""

import itertools
import time
from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GINEConv, MessagePassing, global_add_pool, global_mean_pool
from torch_geometric.utils import degree

import propreg
from common import Record, parser, settled, show
from propreg.data.benchmarks.molecules import MoleculeDataset
from propreg.data.graph_list import ATOM_DIMS, BOND_DIMS
from propreg.engine.models.molecules import MoleculeModel
from propreg.molecules.regularizers import Form
from propreg.molecules.steps import MoleculeProtocol
from propreg.molecules.tasks import MoleculeTask
from propreg.molecules.train import MoleculeRun, Training

DROPOUT, BATCH = 0.5, 32
SEEDS = 10
PUBLISHED, SMALL = (300, 5), (64, 3)  # width and layers: OGB's, and the defaults of fit_graphs


class Encoder(nn.Module):
    """OGB's atom or bond encoder."""

    def __init__(self, dims: tuple[int, ...], width: int) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(dim, width) for dim in dims)

    def forward(self, x: Tensor) -> Tensor:
        return torch.stack([table(x[:, i]) for i, table in enumerate(self.tables)]).sum(0)


class GcnConv(MessagePassing):  # type: ignore[misc]
    """OGB's GCN convolution."""

    def __init__(self, width: int) -> None:
        super().__init__(aggr="add")
        self.linear, self.root = nn.Linear(width, width), nn.Embedding(1, width)

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor) -> Tensor:
        x = self.linear(x)
        deg = degree(edge_index[0], len(x), dtype=x.dtype) + 1
        norm = (deg[edge_index[0]] * deg[edge_index[1]]).rsqrt()
        out: Tensor = self.propagate(edge_index, x=x, edge_attr=edge_attr, norm=norm)
        own: Tensor = (x + self.root.weight).relu() / deg.view(-1, 1)
        return out + own

    def message(self, x_j: Tensor, edge_attr: Tensor, norm: Tensor) -> Tensor:
        sent: Tensor = norm.view(-1, 1) * (x_j + edge_attr).relu()
        return sent


def mlp(width: int) -> nn.Sequential:
    """300 → 600 → 300 with batch norm and ReLU between."""
    return nn.Sequential(nn.Linear(width, 2 * width), nn.BatchNorm1d(2 * width), nn.ReLU(), nn.Linear(2 * width, width))


class Gnn(nn.Module):
    """OGB's example network; returns its outputs and the last node embeddings."""

    def __init__(self, model: MoleculeModel, tasks: int) -> None:
        super().__init__()
        w, count, gin = model.hidden, model.layers, model.name == "mol-gin"
        self.atoms, self.head, self.virtual = Encoder(ATOM_DIMS, w), nn.Linear(w, tasks), model.virtual_node
        self.bonds = nn.ModuleList(Encoder(BOND_DIMS, w) for _ in range(count))
        self.convs = nn.ModuleList(GINEConv(mlp(w), train_eps=True) if gin else GcnConv(w) for _ in range(count))
        self.norms = nn.ModuleList(nn.BatchNorm1d(w) for _ in range(count))
        self.token = nn.Embedding(1, w)
        self.virtuals = nn.ModuleList(nn.Sequential(mlp(w), nn.BatchNorm1d(w), nn.ReLU()) for _ in range(count - 1))

    def forward(self, batch: Data) -> tuple[Tensor, Tensor]:
        h, graph = self.atoms(batch.x), batch.batch
        virtual = self.token.weight.expand(batch.num_graphs, -1)
        last = len(self.convs) - 1
        for i in range(last + 1):
            h = h + virtual[graph] if self.virtual else h
            before = h
            h = self.norms[i](self.convs[i](h, batch.edge_index, self.bonds[i](batch.edge_attr)))
            h = nn.functional.dropout(h if i == last else h.relu(), DROPOUT, self.training)
            if self.virtual and i < last:
                virtual = self.virtuals[i](global_add_pool(before, graph) + virtual)
                virtual = nn.functional.dropout(virtual, DROPOUT, self.training)
        return self.head(global_mean_pool(h, graph)), h


def endless(loader: DataLoader) -> Iterator[Data]:
    """Mini-batches, epoch after epoch."""
    while True:
        yield from loader


def loop(data: MoleculeDataset, spec: MoleculeModel, form: Form, device: str, steps: int) -> float:
    """Seconds per step of OGB's example loop."""
    torch.manual_seed(0)
    model = Gnn(spec, data.num_tasks).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
    graphs = list(data[data.split["train"]])
    loader = endless(DataLoader(graphs, batch_size=BATCH, shuffle=True, drop_last=True))
    lossy = nn.BCEWithLogitsLoss() if data.metric == "rocauc" else nn.MSELoss()

    def step() -> None:
        batch = next(loader).to(device)
        out, h = model(batch)
        known = batch.y == batch.y
        loss = lossy(out[known], batch.y[known].to(out.dtype))
        if form == "paper":
            loss = loss + 0.5 * propreg.preg(h, batch.edge_index)
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()

    return timed(step, device, steps)


def engine(
    data: MoleculeDataset, model: MoleculeModel, form: Form, seeds: int, members: int, device: str, steps: int
) -> float:
    """Seconds per run and step of the engine."""
    task = MoleculeTask(data.arrays, data.task_type, torch.device(device))
    runs = [MoleculeRun(seed, 0.1 * place) for seed in range(seeds) for place in range(members)]
    training = Training(task, model, form, runs, MoleculeProtocol(epochs=1))
    batches = itertools.cycle(training.steps.orders(1))
    number = itertools.count(1)

    def step() -> None:
        training.train_on(next(batches), next(number))

    warm = 20 if device == "cuda" else 1
    return timed(step, device, steps, warm) / len(runs)


def products(data: MoleculeDataset, model: MoleculeModel, steps: int) -> float:
    """Processor seconds of the matrix products of one step alone, forward and backward."""
    train = data.arrays.num_nodes[data.arrays.split["train"]]
    h, gin = torch.randn(int(BATCH * train.mean()), model.hidden), model.name == "mol-gin"
    maps = [(model.hidden, 2 * model.hidden), (2 * model.hidden, model.hidden)] if gin else [(model.hidden,) * 2]
    weights = [torch.randn(shape) for shape in maps]

    def step() -> None:
        x = h
        for _ in range(model.layers):
            for weight in weights:
                out = x @ weight
                x.t() @ out, out @ weight.t()
                x = out * 0.01

    return timed(step, "cpu", steps)


def forms(data: MoleculeDataset, models: list[MoleculeModel], device: str) -> Iterator[Record]:
    """The step of each form against the plain one, all with as many runs."""
    seeds, members, steps = (SEEDS, 11, 40) if device == "cuda" else (1, 12, 6)
    for model in models:
        plain = 0.0
        for form in ("plain", "paper", "reference"):
            taken = engine(data, model, form, seeds, members, device, steps)
            plain = plain or taken
            yield Record(name_of(model), device, f"step, {form}", 1e3 * taken, "ms", "plain", taken / plain)
            if device == "cuda":
                torch.cuda.empty_cache()


def name_of(model: MoleculeModel) -> str:
    """The model, with its size if that is not OGB's."""
    size = "" if (model.hidden, model.layers) == PUBLISHED else f" of {model.layers} layers of {model.hidden}"
    return f"{model.name}{size}{' + virtual node' if model.virtual_node else ''}"


def timed(step: object, device: str, steps: int, warm: int = 5) -> float:
    """Seconds per call; on a CPU the least of the processor's."""
    assert callable(step)
    for _ in range(warm):
        step()
    if device == "cpu":
        taken = []
        for _ in range(steps):
            start = time.process_time()
            step()
            taken.append(time.process_time() - start)
        return min(taken)
    if device == "cuda":
        torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(steps):
        step()
    if device == "cuda":
        torch.cuda.synchronize()
    return (time.perf_counter() - start) / steps


def main() -> None:
    """Measure and print."""
    options = parser(__doc__ or "")
    options.add_argument("--dataset", default="ogbg_moltox21")
    options.add_argument("--forms", action="store_true", help="only what each form of P-reg costs")
    given = settled(options)
    gpu = given.device == "cuda"
    data = propreg.load_dataset(given.dataset)
    if not isinstance(data, MoleculeDataset):
        raise SystemExit(f"{given.dataset} is no molecule dataset.")
    if gpu:
        torch.zeros(1, device="cuda")
    records = []
    models = [MoleculeModel("mol-gin", virtual_node=True), MoleculeModel("mol-gcn")]
    if gpu and not given.quick:
        models += [MoleculeModel("mol-gin"), MoleculeModel("mol-gcn", virtual_node=True)]
    if not gpu:
        models = [MoleculeModel(name, *size) for size in (PUBLISHED, SMALL) for name in ("mol-gin", "mol-gcn")]
    if given.forms:
        return show(list(forms(data, models, given.device)), given.device, given.json, given.save)
    for model in models:
        for form in ("plain", "paper") if gpu and not given.quick else ("paper",):
            title = f"{name_of(model)}, {form}"
            base = loop(data, model, form, given.device, 100 if gpu else 12)
            records.append(Record(title, given.device, "step of the loop", 1e3 * base, "ms"))
            if not gpu:
                least = products(data, model, 20)
                records.append(Record(title, "cpu", "its matrix products", 1e3 * least, "ms", "the loop", base / least))
            numbers = (
                [(SEEDS, 1), *([(SEEDS, 11), (SEEDS, 22)] if form == "paper" else [])] if gpu else [(1, 1), (1, 12)]
            )
            for seeds, members in numbers:
                ours = engine(data, model, form, seeds, members, given.device, 40 if gpu else 6)
                metric = f"step of the engine, {seeds * members} run{'s' * (seeds * members > 1)}"
                records.append(Record(title, given.device, metric, 1e3 * ours, "ms", "the loop", base / ours))
                if gpu:
                    torch.cuda.empty_cache()
    show(records, given.device, given.json, given.save)


if __name__ == "__main__":
    main()
