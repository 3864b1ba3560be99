"""A term with its strength: schedule, state, logs, and nothing computed at 0."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from propreg import PReg, Term, annealed, linear_warmup, preg
from samples import ODD, gaussian

Z = gaussian(6, 3)


def test_it_is_the_strength_times_the_regularizer() -> None:
    term, z = Term(PReg(), mu=0.3), Z.clone().requires_grad_()
    loss = term(z, ODD.edge_index)
    loss.backward()
    by_hand = Z.clone().requires_grad_()
    (0.3 * preg(by_hand, ODD.edge_index)).backward()  # type: ignore[no-untyped-call]
    assert torch.equal(loss, 0.3 * preg(Z, ODD.edge_index))
    assert z.grad is not None
    assert by_hand.grad is not None
    torch.testing.assert_close(z.grad, by_hand.grad)
    assert term.last is not None
    assert not term.last.requires_grad
    assert torch.equal(term.last, preg(Z, ODD.edge_index))


def test_the_schedule_counts_epochs_from_1() -> None:
    term = Term(preg, mu=0.25, schedule=annealed)
    seen = []
    for _ in range(3):
        seen.append((term.epoch, term.strength))
        term.step()
    assert seen == [(epoch, annealed(0.25, epoch)) for epoch in (1, 2, 3)]


def test_a_resumed_training_goes_on_with_the_right_strength() -> None:
    def made(mu: float) -> Term:
        return Term(PReg(), mu=mu, schedule=lambda strength, epoch: linear_warmup(strength, epoch, epochs=10))

    before = made(0.8)
    for _ in range(4):
        before.step()
    after = made(0.1)
    after.load_state_dict(before.state_dict())
    assert (after.mu, after.epoch, after.strength) == (0.8, 5, before.strength)
    twin = copy.deepcopy(before)
    twin.step()
    assert (before.epoch, twin.epoch) == (5, 6)


def test_nothing_is_computed_at_strength_0() -> None:
    calls = []

    def counted(z: Tensor, _: Tensor) -> Tensor:
        calls.append(1)
        return z.sum()

    term, z = Term(counted, mu=0.0), Z.clone().requires_grad_()
    term(z, ODD.edge_index).backward()
    assert calls == []
    assert term.last is None
    assert z.grad is not None
    assert (z.grad == 0).all()


def test_it_is_a_part_of_a_module() -> None:
    model = nn.Sequential(nn.Linear(2, 2))
    model.term = Term(PReg(), mu=0.5)
    assert "mu=0.5" in repr(model)
    assert {name for name in model.state_dict() if name.startswith("term")} == {"term._extra_state"}
    assert "schedule=annealed" in repr(Term(preg, mu=0.5, schedule=annealed))


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: Term(PReg(), mu=-1), ValueError, "mu must be a finite number of at least 0, got -1"),
        (lambda: Term(PReg(), mu=float("nan")), ValueError, "mu must be a finite number"),
        (lambda: Term(PReg(), mu="0.5"), TypeError, "mu must be a number, got '0.5'"),  # type: ignore[arg-type]
        (lambda: Term("preg"), TypeError, "regularizer must be callable"),  # type: ignore[arg-type]
        (lambda: Term(PReg(), schedule=0.5), TypeError, "schedule must be a function"),  # type: ignore[arg-type]
    ],
)
def test_bad_settings_are_one_sentence(make: Callable[[], Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        make()
