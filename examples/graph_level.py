"""Graph classification with P-reg on the node embeddings: a batch of graphs is one block-diagonal graph."""

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GINConv, global_mean_pool

import propreg


def wheel(spokes: int, hub: bool) -> Data:
    """A ring with or without a hub; the features of a node are its degree and noise."""
    ring = torch.arange(spokes)
    pairs = torch.stack([ring, ring.roll(1)])
    if hub:
        pairs = torch.cat([pairs, torch.stack([ring, torch.full_like(ring, spokes)])], dim=1)
    edges, nodes = torch.cat([pairs, pairs.flip(0)], dim=1), spokes + hub
    x = torch.stack([edges[1].bincount(minlength=nodes) / 5, torch.randn(nodes)], dim=1)
    return Data(x=x, edge_index=edges, y=torch.tensor([int(hub)]), num_nodes=nodes)


torch.manual_seed(0)
graphs = [wheel(int(torch.randint(5, 12, ())), number % 2 == 0) for number in range(300)]
encoder = GINConv(torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.ReLU(), torch.nn.Linear(16, 16)))
head, regularizer = torch.nn.Linear(16, 2), propreg.PReg()
optimizer = torch.optim.Adam([*encoder.parameters(), *head.parameters()], lr=0.01)
for _ in range(10):
    for batch in DataLoader(graphs[:200], batch_size=32, shuffle=True):
        h = encoder(batch.x, batch.edge_index)  # node embeddings, which the paper's graph-level runs regularize
        loss = F.cross_entropy(head(global_mean_pool(h, batch.batch)), batch.y)
        loss = loss + 0.1 * regularizer(h, batch.edge_index)
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()

test = next(iter(DataLoader(graphs[200:], batch_size=100)))
z: Tensor = head(global_mean_pool(encoder(test.x, test.edge_index), test.batch))
print(f"test accuracy {(z.argmax(-1) == test.y).float().mean():.1%}")
