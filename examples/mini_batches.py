"""P-reg in mini-batches with sampled neighbors, for graphs whose whole does not fit: the added lines are marked."""

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.nn import SAGEConv

import propreg
from propreg.scale import Loader


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
regularizer = propreg.PReg()
# ← One hop more than the model has layers: all neighbors first, then sampled ones.
loader = Loader(data, [-1, 5, 5], batch_size=300)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(25):
    for batch in loader:
        z = model(batch.x, batch.edge_index)
        train = batch.train_mask[: batch.batch_size]
        loss = F.cross_entropy(z[: batch.batch_size][train], batch.y[: batch.batch_size][train])
        loss = loss + 0.2 * regularizer.on_batch(z, batch, layers=2)  # ←
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()

right = model.eval()(data.x, data.edge_index).argmax(-1) == data.y
print(f"test accuracy {right[data.test_mask].float().mean():.1%}")
