"""P-reg in mini-batches, each on the subgraph around some nodes: for graphs too large to train as a whole."""

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.nn import SAGEConv
from torch_geometric.utils import k_hop_subgraph

import propreg


class Sage(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = SAGEConv(64, 64), SAGEConv(64, 10)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        h = F.dropout(self.first(x, edge_index).relu(), 0.5, self.training)
        return self.second(h, edge_index)  # type: ignore[no-any-return]


torch.manual_seed(0)
data, model = propreg.load_dataset("digits", split=0), Sage()
data.x /= 16
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(12):
    for nodes in torch.randperm(data.num_nodes).chunk(6):
        # Two layers, and P-reg needs the neighbors' logits: with three hops the term equals that of the whole graph.
        around, edges, inner, _ = k_hop_subgraph(nodes, 3, data.edge_index, relabel_nodes=True)
        z = model(data.x[around], edges)
        labeled = inner[data.train_mask[nodes]]
        loss = F.cross_entropy(z[labeled], data.y[around[labeled]], reduction="sum") / len(nodes)
        loss = loss + 0.02 * propreg.preg(z, edges, mask=inner)  # only the batch's nodes: their neighbors are all here
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()

right = model.eval()(data.x, data.edge_index).argmax(-1) == data.y
print(f"test accuracy {right[data.test_mask].float().mean():.1%}")
