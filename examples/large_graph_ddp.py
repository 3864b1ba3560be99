"""Train on a large graph with several processes: ``torchrun --nproc-per-node 2 large_graph_ddp.py --epochs 5``."""

import argparse
import os
import signal
import sys
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel
from torch_geometric.nn import SAGEConv

from propreg import DataError
from propreg.data.own import open_stored
from propreg.data.synthetic import random_graph
from propreg.scale import Loader, MiniBatchPReg
from propreg.scale.checkpoint import load_training, save_training

LOST = "A process of this training ended, and the others with it: start it again with --resume."


class Sage(torch.nn.Module):
    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.first, self.second = SAGEConv(features, 64), SAGEConv(64, classes)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        h = F.dropout(self.first(x, edge_index).relu(), 0.5, self.training)
        return self.second(h, edge_index)  # type: ignore[no-any-return]


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graph", type=Path, help="a folder that propreg data convert wrote; default: one is drawn")
    parser.add_argument("--nodes", type=int, default=5_000, help="of the graph that is drawn; 20 edges for each")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--parts", type=int, default=2, help="batches in a step, over all processes")
    parser.add_argument("--batch-size", type=int, default=100)
    parser.add_argument("--mu", type=float, default=0.2)
    parser.add_argument("--checkpoint", type=Path, default=Path("large_graph.safetensors"))
    parser.add_argument("--resume", action="store_true", help="resume from the checkpoint")
    return parser.parse_args()


def graph(given: argparse.Namespace, device: torch.device) -> tuple[Any, Tensor, int, int]:
    """What the loader takes, the training nodes, and the numbers of features and classes."""
    if given.graph is None:
        data = random_graph(given.nodes, 20 * given.nodes, 64, 10, homophily=0.5).to(str(device))
        return data, data.train_mask, 64, 10
    arrays = open_stored(given.graph).arrays  # mapped, not read: each batch takes its rows from the files
    if "train_mask" not in arrays:
        raise ValueError(f"--graph {given.graph} has no split: convert a graph that has one.")
    return given.graph, torch.from_numpy(arrays["train_mask"]), arrays["x"].shape[1], int(arrays["y"].max()) + 1


def train(given: argparse.Namespace, rank: int, world: int) -> None:
    device = torch.device("cpu")
    if torch.cuda.is_available():
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    if given.parts % world:
        raise ValueError(
            f"--parts {given.parts} cannot be divided among {world} processes: give a multiple of {world}."
        )
    mine = given.parts // world
    data, nodes, features, classes = graph(given, device)
    torch.manual_seed(0)
    model, regularizer = Sage(features, classes).to(device), MiniBatchPReg(cost=1.25)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    done = load_training(given.checkpoint, model, optimizer) if given.resume else 0
    parallel = DistributedDataParallel(model)
    # The batches are those of one process, whatever the number of them: each takes its share of every step.
    share: dict[str, Any] = {"batch_size": given.batch_size, "rank": rank, "world_size": world}
    loader = Loader(data, [5, 5], input_nodes=nodes, preg=regularizer, **share)
    for epoch in range(done, given.epochs):
        loader.epoch = epoch
        total, steps = torch.zeros((), device=device), 0
        for step, batches in enumerate(zip(*[iter(loader)] * mine, strict=False)):
            for i, here in enumerate(batches):
                batch = here.to(str(device))
                torch.manual_seed((epoch * 10_000 + step) * given.parts + i * world + rank)  # dropout, by batch
                z = parallel(batch.x, batch.edge_index)
                loss = F.cross_entropy(z[: batch.batch_size], batch.y[: batch.batch_size])
                loss = (loss + given.mu * regularizer(z, batch)) / mine
                torch.autograd.backward(loss)
                total += loss.detach() / world
            optimizer.step()
            optimizer.zero_grad()
            steps += 1
        dist.all_reduce(total)
        if rank == 0:
            save_training(given.checkpoint, model, optimizer, epoch + 1)
            print(f"epoch {epoch + 1}: loss {total / steps:.6f}", flush=True)


def lost(*_: object) -> None:
    """End at once: leaving the group in good order may wait forever for the process that is gone."""
    os.write(2, f"{LOST}\n".encode())
    os._exit(1)


def main() -> None:
    given = options()
    if "RANK" not in os.environ:
        sys.exit("This program is started by torchrun: torchrun --nproc-per-node 1 large_graph_ddp.py")
    signal.signal(signal.SIGTERM, lost)  # from torchrun, when another process has ended
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    try:
        train(given, dist.get_rank(), dist.get_world_size())
    except (DataError, ValueError) as error:
        sys.exit(str(error))
    except RuntimeError as error:
        if any(word in str(error) for word in ("gloo", "NCCL", "onnection")):
            lost()
        raise
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
