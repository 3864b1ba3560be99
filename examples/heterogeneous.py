"""A heterogeneous graph: one P-reg term per edge type between nodes of the predicted type, with its own strength."""

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import HeteroData
from torch_geometric.nn import HeteroConv, SAGEConv

import propreg

digits = propreg.load_dataset("digits", split=0)
data = HeteroData()  # images, and the 64 pixels that they ink
data["image"].x, data["pixel"].x = digits.x / 16, torch.eye(64)
image, pixel = (digits.x > 8).nonzero().t()
data["pixel", "inks", "image"].edge_index = torch.stack([pixel, image])
data["image", "inked_by", "pixel"].edge_index = torch.stack([image, pixel])
for half, name in ((slice(0, 32), "same_top"), (slice(32, 64), "same_bottom")):  # the 5 nearest by half of the pixels
    near = torch.cdist(digits.x[:, half], digits.x[:, half]).fill_diagonal_(1e9).topk(5, largest=False).indices
    each = torch.arange(len(near)).repeat_interleave(5)
    data["image", name, "image"].edge_index = torch.stack([near.flatten(), each])

torch.manual_seed(0)
first, second = HeteroConv({kind: SAGEConv((-1, -1), 32) for kind in data.edge_types}), torch.nn.Linear(32, 10)
strengths = {("image", "same_top", "image"): 0.2, ("image", "same_bottom", "image"): 0.4}


def logits() -> Tensor:
    return second(first(data.x_dict, data.edge_index_dict)["image"].relu())  # type: ignore[no-any-return]


logits()  # initializes the lazy layers
optimizer = torch.optim.Adam([*first.parameters(), *second.parameters()], lr=0.01)
for _ in range(60):
    z, train = logits(), digits.train_mask
    loss = F.cross_entropy(z[train], digits.y[train])
    loss = loss + sum(mu * propreg.preg(z, data[kind].edge_index) for kind, mu in strengths.items())
    optimizer.zero_grad()
    torch.autograd.backward(loss)
    optimizer.step()
print(f"test accuracy {(logits().argmax(-1) == digits.y)[digits.test_mask].float().mean():.1%}")
