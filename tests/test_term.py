"""A term with its strength: schedule, state, logs, and nothing computed at 0."""

import copy
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from propreg import PReg, Term, annealed, linear_warmup, preg
from propreg._term import LEARNED
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


def linear(mu: Any = "learned") -> tuple[Term, Tensor, Tensor]:
    """A term, a weight, and logits that depend on it: two nodes, each the other's neighbor."""
    weight = torch.tensor([[1.0], [3.0]], requires_grad=True)
    return Term(PReg("squared_error"), mu), weight, torch.eye(2) @ weight


PAIR = torch.tensor([[0, 1], [1, 0]])


@pytest.mark.parametrize(("wanted", "sign"), [(4.0, -1), (0.5, 1)])
def test_a_learned_strength_follows_the_hypergradient_of_the_validation_loss(wanted: float, sign: int) -> None:
    """By hand: the term is ½((3−1)² + (1−3)²)/2 = 2, its gradient (−2, 2); the loss pulls node 1 from 3 to wanted."""
    term, weight, z = linear()
    assert term.mu == 0.5
    loss = (z[1] - wanted).square().sum()
    gradient = torch.autograd.grad(loss, weight, retain_graph=True)[0].flatten()
    pull = torch.tensor([-2.0, 2.0])
    cosine = float(gradient @ pull / gradient.norm() / pull.norm())
    assert cosine * sign > 0
    expected = 0.5 * math.exp(0.1 * cosine)
    assert term.learn(loss, [weight], z, PAIR, rate=0.1) == pytest.approx(expected, rel=1e-6)
    assert term.strength == term.mu


def test_its_sign_is_that_of_one_step_of_gradient_descent() -> None:
    """A finite difference: the validation loss after one small step, for two strengths."""
    torch.manual_seed(0)
    layer = nn.Linear(4, 3, dtype=torch.float64)
    parameters = list(layer.parameters())
    x, y, train, val = gaussian(6, 4), torch.tensor([0, 1, 2, 0, 1, 2]), [0, 1, 2], [3, 4, 5]

    def after(mu: float, eta: float = 1e-4) -> float:
        z = layer(x)
        loss = nn.functional.cross_entropy(z[train], y[train]) + mu * preg(z, ODD.edge_index)
        moved = [p - eta * g for p, g in zip(parameters, torch.autograd.grad(loss, parameters), strict=True)]
        return nn.functional.cross_entropy((x @ moved[0].t() + moved[1])[val], y[val]).item()

    term, z = Term(PReg(), mu="learned"), layer(x)
    before = term.mu
    term.learn(nn.functional.cross_entropy(z[val], y[val]), layer.parameters(), z, ODD.edge_index)
    assert (term.mu > before) == (after(before + 0.1) < after(before))


def test_a_learned_strength_stays_in_its_bounds_and_is_saved() -> None:
    term, weight, z = linear()
    for _ in range(5):
        term.learn((z[1] - 0).square().sum(), [weight], z, PAIR, rate=100.0)
    assert term.mu == LEARNED[1]
    for _ in range(5):
        term.learn((z[1] - 9).square().sum(), [weight], z, PAIR, rate=100.0)
    assert term.mu == LEARNED[0]
    after = linear()[0]
    after.load_state_dict(term.state_dict())
    assert after.mu == term.mu
    assert "mu=0.001, learned" in repr(after)
    same = after.mu
    assert after.learn(0 * z.sum(), [weight], z, PAIR) == same  # no gradient, no step
    for loss, parameters, words in (
        (1.0, [weight], "validation_loss must be one number with a gradient"),
        (z.detach().sum(), [weight], "validation_loss must be one number with a gradient"),
        (z.flatten(), [weight], "validation_loss must be one number with a gradient"),
        (z.sum(), [], "parameters is empty"),
        (z.sum(), [torch.ones(2, requires_grad=True)], "neither loss depends on parameters"),
    ):
        with pytest.raises(ValueError, match=words):
            linear("learned")[0].learn(loss, parameters, z, PAIR)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"the strength is 0.5, not learned: make the term with mu='learned'"):
        linear(0.5)[0].learn(z.sum(), [weight], z, PAIR)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: Term(PReg(), mu=-1), ValueError, "mu must be a finite number of at least 0, got -1"),
        (lambda: Term(PReg(), mu=float("nan")), ValueError, "mu must be a finite number"),
        (lambda: Term(PReg(), mu="0.5"), TypeError, "mu must be a number or 'learned', got '0.5'"),  # type: ignore[arg-type]
        (lambda: Term("preg"), TypeError, "regularizer must be callable"),  # type: ignore[arg-type]
        (lambda: Term(PReg), TypeError, r"regularizer is the class PReg: pass an instance, PReg\(\)"),  # type: ignore[arg-type]
        (lambda: Term(PReg(), schedule=0.5), TypeError, "schedule must be a function"),  # type: ignore[arg-type]
    ],
)
def test_bad_settings_are_one_sentence(make: Callable[[], Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        make()
