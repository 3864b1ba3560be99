"""P-reg in a plain PyG training loop: the added line is marked."""

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.nn import GCNConv

import propreg

data = propreg.load_dataset("digits", split=0)


class GCN(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = GCNConv(data.num_features, 64), GCNConv(64, 10)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        h = F.dropout(self.first(x, edge_index).relu(), 0.5, self.training)
        return self.second(h, edge_index)  # type: ignore[no-any-return]


torch.manual_seed(0)
model, regularizer = GCN(), propreg.PReg()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(60):
    optimizer.zero_grad()
    z = model(data.x, data.edge_index)
    loss = F.cross_entropy(z[data.train_mask], data.y[data.train_mask])
    loss = loss + 0.5 * regularizer(z, data.edge_index)  # ← this line
    torch.autograd.backward(loss)
    optimizer.step()

model.eval()
right = model(data.x, data.edge_index).argmax(-1) == data.y
print(f"test accuracy {right[data.test_mask].float().mean():.1%}")
