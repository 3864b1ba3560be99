"""A model of your own in ``fit``, tuned and compared like the built-in ones."""

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


# Pass the class: every run constructs its own module after torch.manual_seed(seed of the run).
result = propreg.fit(data, Residual, mu=[0.2, 0.5], seeds=3, max_epochs=40, lr=0.02, progress=False)
print(result.summary())
right = result.model(data.x, data.edge_index).argmax(-1) == data.y
print(f"the chosen model, mu = {result.mu:g}: test accuracy {right[data.test_mask].float().mean():.1%}")
