"""What is learned about graphs: the loss, the score and its direction."""

import hashlib
import json

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from propreg.data.benchmarks.molecules import Molecules, digest_molecules
from propreg.data.digests import join_digests
from propreg.data.graph_list import GraphList
from propreg.engine.models.molecules import MoleculeModel
from propreg.molecules.packing import Batch, Packed
from propreg.molecules.scores import accuracy, mean_over_tasks, rmse_by_task, roc_auc_by_task

METRICS = {"binary classification": "rocauc", "regression": "rmse", "classification": "accuracy"}
"""The score of each kind of task: yes/no questions, numbers, or one of several classes."""


def _digest(data: Molecules | GraphList) -> str:
    return data.digest if isinstance(data, GraphList) else join_digests(data.digests or digest_molecules(data))


class MoleculeTask:
    """A dataset of graphs on its device.

    Args:
        data: The graphs, with a split.
        task: One of :data:`METRICS`.
        device: Where.
        dtype: Of the training.
        standardize: Whether a regression learns targets less their mean and by their standard deviation over the
            training graphs; scores and :meth:`numbers` are in the targets' own units.
    """

    def __init__(
        self,
        data: Molecules | GraphList,
        task: str,
        device: torch.device,
        dtype: torch.dtype = torch.float32,
        *,
        standardize: bool = False,
    ) -> None:
        self.data, self.task, self.device, self.dtype = data, task, device, dtype
        self.digest = _digest(data)
        self.packed = Packed.of(data, device, dtype)
        self.metric = METRICS[task]
        self.maximize = self.metric != "rmse"
        classes = int(self.packed.y.max()) + 1 if task == "classification" else 0
        self.outputs = classes or data.y.shape[1]
        self.units = self._units() if standardize and task == "regression" else None

    def stream(self, seed: int, model: MoleculeModel, name: str) -> int:
        """A 64-bit key of one stream of one seed: strength and form of P-reg have no part in it."""
        text = json.dumps([self.digest, seed, model.identity(), name], sort_keys=True, separators=(",", ":"))
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")

    def loss(self, out: Tensor, batch: Batch) -> Tensor:
        """Mean over the labeled entries of each mini-batch, [S, M]."""
        y, labeled = batch.y.unsqueeze(1), batch.labeled.unsqueeze(1)
        if self.metric == "rocauc":
            each = binary_cross_entropy_with_logits(out, y.expand_as(out), reduction="none")
        elif self.metric == "rmse":
            each = (out - (y if self.units is None else (y - self.units[0]) / self.units[1])).square()
        else:
            classes = y.squeeze(-1).long().expand(out.shape[:3])
            each = cross_entropy(out.movedim(-1, 1), classes, reduction="none").unsqueeze(-1)
        return (each * labeled).sum((2, 3)) / labeled.sum((2, 3)).clamp(min=1)

    def numbers(self, out: Tensor) -> Tensor:
        """Outputs of a regression in the targets' units; others as they are."""
        return out if self.units is None else out * self.units[1] + self.units[0]

    def score(self, out: Tensor, part: str) -> Tensor:
        """The score of outputs [R, graphs, outputs] on a part of the split. [R]."""
        return mean_over_tasks(*self.score_by_task(out, part))

    def score_by_task(self, out: Tensor, part: str) -> tuple[Tensor, Tensor]:
        """The score of each task [R, tasks], and which tasks count, [tasks]."""
        chosen = torch.from_numpy(self.data.split[part]).to(self.device)
        y, labeled = self.packed.y[chosen], self.packed.labeled[chosen] > 0
        if self.metric == "accuracy":
            return accuracy(out, y, labeled).unsqueeze(1), labeled.any(0)
        return (roc_auc_by_task if self.metric == "rocauc" else rmse_by_task)(self.numbers(out), y, labeled)

    def _units(self) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation of each target over the training graphs; 0 and 1 where there is none."""
        chosen = torch.from_numpy(self.data.split["train"]).to(self.device)
        y, labeled = self.packed.y[chosen], self.packed.labeled[chosen]
        count = labeled.sum(0).clamp(min=1)
        mean = (y * labeled).sum(0) / count
        deviation = (((y - mean) * labeled).square().sum(0) / count).sqrt()
        return mean, torch.where(deviation > torch.finfo(y.dtype).eps * mean.abs(), deviation, 1.0)
