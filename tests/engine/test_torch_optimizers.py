"""AdamW, SGD and optimizers of torch in a batch, against torch's own, one replica at a time."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from engine.test_optimizers import DECAY, LR, SHAPES, by_torch, close, gradient, start
from propreg.engine.training.optimizers import SGD, AdamW, EachItsOwn

STEPS = 20


def batch(kind: Any, p: dict[str, Tensor]) -> Any:
    lr, decay = torch.tensor(LR, dtype=torch.float64), torch.tensor(DECAY, dtype=torch.float64)
    return kind(p, lr, dict.fromkeys(p, decay))


def step(optimizer: Any, p: dict[str, Tensor], number: int, rows: list[int]) -> None:
    optimizer.advance()
    gradients = {
        name: torch.stack([gradient(name, number, row) for row in w]) for name, w in p.items() if len(w) == len(rows)
    }
    optimizer.step(p, gradients)


@pytest.mark.parametrize(("kind", "torchs"), [(AdamW, torch.optim.AdamW), (SGD, torch.optim.SGD)])
def test_each_replica_is_torchs_also_after_others_left(kind: Any, torchs: type[torch.optim.Optimizer]) -> None:
    p = start()
    optimizer = batch(kind, p)
    for number in range(STEPS // 2):
        step(optimizer, p, number, [0, 1, 2, 3])
    kept = torch.tensor([0, 2])
    p = {name: w[kept] for name, w in p.items()}
    optimizer.keep(kept)
    for number in range(STEPS // 2, STEPS):
        step(optimizer, p, number, [0, 2])
    for row, place in enumerate(kept.tolist()):
        close(p, row, by_torch(place, dict.fromkeys(SHAPES, DECAY[place]), range(STEPS), torchs))


MAKERS: list[Callable[[Any], torch.optim.Optimizer]] = [
    lambda params: torch.optim.SGD(params, lr=0.05, momentum=0.9, nesterov=True),
    lambda params: torch.optim.RMSprop(params, lr=0.01, weight_decay=0.1),
    lambda params: torch.optim.Adafactor(params, lr=0.1),  # looks at whole tensors: not elementwise
]


@pytest.mark.parametrize("make", MAKERS)
def test_any_optimizer_sees_one_replica(make: Callable[[Any], torch.optim.Optimizer]) -> None:
    p = {name: w.requires_grad_() for name, w in start().items()}
    optimizer = batch(lambda *given: EachItsOwn(make, *given), p)
    for number in range(STEPS // 2):
        step(optimizer, p, number, [0, 1, 2, 3])
    p = {name: w.detach()[1:].requires_grad_() for name, w in p.items()}
    optimizer.keep(torch.tensor([1, 2, 3]))
    for number in range(STEPS // 2, STEPS):
        step(optimizer, p, number, [1, 2, 3])
    alone = {name: nn.Parameter(w[2].clone()) for name, w in start().items()}
    theirs = make(list(alone.values()))
    for number in range(STEPS):
        for name, w in alone.items():
            w.grad = gradient(name, number, w)
        theirs.step()
    close(p, 1, {name: w.detach() for name, w in alone.items()})
