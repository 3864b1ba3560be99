"""A model of your own in ``fit``: it is tuned and compared as the built-in ones are."""

import torch
from torch import Tensor
from torch_geometric.nn import SAGEConv

import propreg

data = propreg.load_dataset("digits", split=0)
data.x = data.x / 16


class Residual(torch.nn.Module):
    """Any module whose forward takes (x, edge_index) and returns logits."""

    def __init__(self) -> None:
        super().__init__()
        self.lift = torch.nn.Linear(data.num_features, 32)
        self.conv, self.out = SAGEConv(32, 32), torch.nn.Linear(32, 10)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        h = self.lift(x).relu()
        logits: Tensor = self.out(h + self.conv(h, edge_index).relu())
        return logits


# The class itself: every run makes a module of its own, after torch.manual_seed(its seed).
result = propreg.fit(data, Residual, mu=[0.2, 0.5], seeds=3, max_epochs=40, lr=0.02, progress=False)
print(result.summary())
right = result.model(data.x, data.edge_index).argmax(-1) == data.y
print(f"the chosen model, mu = {result.mu:g}: test accuracy {right[data.test_mask].float().mean():.1%}")
