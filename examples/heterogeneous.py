"""A heterogeneous graph: a P-reg term per edge type and metapath between nodes to predict, each with its strength."""

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
by_pixels = (("image", "inked_by", "pixel"), ("pixel", "inks", "image"))  # 3.2 million edges as a graph, never made
regularizer = propreg.HeteroPReg({**dict.fromkeys(data.edge_types[2:], 0.3), by_pixels: 0.02})


def logits() -> Tensor:
    return second(first(data.x_dict, data.edge_index_dict)["image"].relu())  # type: ignore[no-any-return]


logits()  # initializes the lazy layers
optimizer = torch.optim.Adam([*first.parameters(), *second.parameters()], lr=0.01)
for _ in range(60):
    z, train = logits(), digits.train_mask
    loss = F.cross_entropy(z[train], digits.y[train]) + regularizer({"image": z}, data.edge_index_dict)
    optimizer.zero_grad()
    torch.autograd.backward(loss)
    optimizer.step()
print(f"test accuracy {(logits().argmax(-1) == digits.y)[digits.test_mask].float().mean():.1%}")
