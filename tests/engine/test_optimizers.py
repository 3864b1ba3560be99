"""The batch's Adam and RMSprop against torch's, one replica at a time."""

from collections.abc import Iterable

import pytest
import torch
from torch import Tensor

from propreg.engine.ops.adam import Adam
from propreg.engine.ops.rmsprop import RMSprop
from samples import gaussian

LR = (0.01, 0.1, 0.003, 1.0)
DECAY = (5e-4, 0.0, 0.3, 1e-2)
SHAPES = {"w0": (6, 5), "b0": (5,), "source0": (2, 4), "w1": (5, 3)}
STEPS = 50


def gradient(name: str, step: int, p: Tensor) -> Tensor:
    """Noise of very unequal sizes, a pull that depends on the weights, and entries that are always 0."""
    noise = gaussian(*SHAPES[name], seed=1000 * step + len(name))
    sizes = 10.0 ** gaussian(*SHAPES[name], seed=7).mul(3).clamp(-9, 3)
    return (noise * sizes + p.detach().sin()) * (gaussian(*SHAPES[name], seed=5) > -1)


def start() -> dict[str, Tensor]:
    """Weights [R, …], of which some are 0."""
    return {name: gaussian(len(LR), *shape, seed=len(shape)).round(decimals=1) for name, shape in SHAPES.items()}


def by_torch(
    place: int,
    decay: dict[str, float],
    steps: Iterable[int] = range(STEPS),
    kind: type[torch.optim.Optimizer] = torch.optim.Adam,
) -> dict[str, Tensor]:
    """One replica with torch's optimizer, with the gradients of these steps."""
    p = {name: w[place].clone().requires_grad_() for name, w in start().items()}
    adam = kind([{"params": [p[n]], "weight_decay": decay[n]} for n in p], lr=LR[place])  # type: ignore[call-arg]
    for step in steps:
        for name, w in p.items():
            w.grad = gradient(name, step, w)
        adam.step()
    return {name: w.detach() for name, w in p.items()}


def step_batch(adam: Adam | RMSprop, p: dict[str, Tensor], step: int) -> None:
    """The same gradients for a batch."""
    adam.advance()
    adam.step(p, {name: torch.stack([gradient(name, step, row) for row in p[name]]) for name in p})


def close(p: dict[str, Tensor], row: int, expected: dict[str, Tensor]) -> None:
    """To a few roundings, relative to each weight's size."""
    for name, w in expected.items():
        torch.testing.assert_close(p[name][row].detach(), w, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("scoped", [False, True])
def test_each_replica_is_torchs(scoped: bool) -> None:
    p = {name: w.requires_grad_() for name, w in start().items()}
    none = [0.0] * len(DECAY)
    decay = {name: none if scoped and name == "w1" else list(DECAY) for name in p}
    wide = {name: torch.tensor(d, dtype=torch.float64) for name, d in decay.items()}
    adam = Adam(p, torch.tensor(LR, dtype=torch.float64), wide)
    for step in range(STEPS):
        step_batch(adam, p, step)
    for place in range(len(LR)):
        close(p, place, by_torch(place, {name: d[place] for name, d in decay.items()}))


def test_a_batch_that_shrinks_keeps_its_moments() -> None:
    p = start()
    decay = torch.tensor(DECAY, dtype=torch.float64)
    adam = Adam(p, torch.tensor(LR, dtype=torch.float64), dict.fromkeys(p, decay))
    kept = torch.tensor([3, 1])
    for step in range(STEPS):
        if step == 20:
            adam.keep(kept)
            p = {name: w[kept] for name, w in p.items()}
        step_batch(adam, p, step)
    for row, place in enumerate(kept.tolist()):
        close(p, row, by_torch(place, dict.fromkeys(p, DECAY[place])))


def test_a_step_without_a_gradient_does_not_count() -> None:
    """As of a layer that is left out now and then: torch leaves such a parameter as it is, its step number too."""
    theirs, ours = start()["w0"][0].requires_grad_(), {"w0": start()["w0"][:1], "b0": start()["b0"][:1]}
    torchs = torch.optim.Adam([theirs], lr=LR[0], weight_decay=DECAY[0])
    decay = torch.tensor(DECAY[:1], dtype=torch.float64)
    adam = Adam(ours, torch.tensor(LR[:1], dtype=torch.float64), dict.fromkeys(ours, decay))
    for step in range(STEPS):
        adam.advance()
        if step % 3 == 1:
            adam.step({"b0": ours["b0"]}, {"b0": torch.ones_like(ours["b0"])})
            continue
        theirs.grad = gradient("w0", step, theirs)
        torchs.step()
        adam.step(ours, {"w0": gradient("w0", step, ours["w0"][0])[None], "b0": torch.ones_like(ours["b0"])})
    close(ours, 0, {"w0": theirs.detach()})


def test_a_replica_that_overflows_leaves_the_others_alone() -> None:
    p = start()
    zero = torch.zeros(len(LR), dtype=torch.float64)
    adam = Adam(p, torch.tensor([0.01, float("inf"), 0.003, 1.0], dtype=torch.float64), dict.fromkeys(p, zero))
    for step in range(5):
        step_batch(adam, p, step)
    assert not p["w0"][1].isfinite().any()
    for place in (0, 2, 3):
        close(p, place, by_torch(place, dict.fromkeys(p, 0.0), range(5)))


PAIRS: dict[str, tuple[type[Adam | RMSprop], type[torch.optim.Optimizer]]] = {
    "adam": (Adam, torch.optim.Adam),
    "rmsprop": (RMSprop, torch.optim.RMSprop),
}


@pytest.mark.parametrize("name", PAIRS)
def test_replicas_go_back_to_steps_of_their_own(name: str) -> None:
    """Each to what it was after so many steps, and then on with later gradients; twice, and some leave in between."""
    ours, theirs = PAIRS[name]
    p, decay = start(), torch.tensor(DECAY, dtype=torch.float64)
    optimizer = ours(p, torch.tensor(LR, dtype=torch.float64), dict.fromkeys(p, decay))
    took: list[list[int]] = [[] for _ in LR]
    here, step = list(range(len(LR))), 0
    for after, length in (([1, 12, 20, 7], 20), ([3, 9], 10)):
        kept: dict[str, Tensor] = {}
        for number in range(1, length + 1):
            step_batch(optimizer, p, step)
            now = {**p, **optimizer.tensors()}
            chosen = torch.tensor([number == last for last in after])
            for key, t in now.items():
                kept.setdefault(key, t.clone())[chosen] = t[chosen]
            for i, last in zip(here, after, strict=True):
                took[i] += [step] if number <= last else []
            step += 1
        for key, t in p.items():
            t.copy_(kept[key])
        optimizer.restore({key: kept[key] for key in optimizer.tensors()}, torch.tensor(after).neg() + length)
        if len(here) == len(LR):
            here, stay = [3, 1], torch.tensor([3, 1])
            optimizer.keep(stay)
            p = {key: t[stay] for key, t in p.items()}
    for number in range(5):
        step_batch(optimizer, p, step + number)
    for row, i in enumerate(here):
        steps = [*took[i], *range(step, step + 5)]
        close(p, row, by_torch(i, dict.fromkeys(p, DECAY[i]), steps, theirs))


def test_rmsprop_is_torchs() -> None:
    p, decay = start(), torch.tensor(DECAY, dtype=torch.float64)
    optimizer = RMSprop(p, torch.tensor(LR, dtype=torch.float64), dict.fromkeys(p, decay))
    for step in range(STEPS):
        step_batch(optimizer, p, step)
    for place in range(len(LR)):
        close(p, place, by_torch(place, dict.fromkeys(p, DECAY[place]), kind=torch.optim.RMSprop))
