"""P-reg in Lightning: a callback adds the term to the loss of any module and logs it; the added lines are marked."""

import lightning
import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GCNConv

import propreg
from propreg.lightning import RegularizerCallback  # ← this line


class Net(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = GCNConv(64, 64), GCNConv(64, 10)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        h = F.dropout(self.first(x, edge_index).relu(), 0.5, self.training)
        return self.second(h, edge_index)  # type: ignore[no-any-return]

    def training_step(self, data: Data) -> Tensor:
        z = self(data.x, data.edge_index)
        return F.cross_entropy(z[data.train_mask], data.y[data.train_mask])

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), lr=0.01)


data = propreg.load_dataset("digits", split=0)
lightning.seed_everything(0, verbose=False)
quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False}
add = RegularizerCallback(propreg.Term(propreg.PReg(), mu=0.5))  # ← and this one
trainer = lightning.Trainer(max_epochs=40, accelerator="cpu", callbacks=[add], **quiet)  # type: ignore[arg-type]
trainer.fit(net := Net(), DataLoader([data], batch_size=1))
right = net.eval()(data.x, data.edge_index).argmax(-1) == data.y
print(f"test accuracy {right[data.test_mask].float().mean():.1%}")
