"""What of a user's own model cannot be trained or handed back: refused in one sentence, before anything is trained."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from fitting.own_modules import DATA, GRAPH, QUICK, Base
from propreg.fitting.fit import fit


class NeverUsedLazy(Base):
    """A lazy layer that gets no input."""

    def __init__(self) -> None:
        super().__init__()
        self.c = nn.LazyLinear(2)


class Remembers(Base):
    """What it computes depends on how often it was called in training."""

    calls = 0

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        self.calls += self.training
        return super().forward(x * (1 + self.calls), edge_index)


class InPlace(Base):
    """Writes zeros into the features in training."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return super().forward(nn.functional.dropout(x, 0.5, self.training, inplace=True), edge_index)


class InPlaceAlways(Base):
    """Scales the features it is given, and not a copy."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return super().forward(x.mul_(1.5), edge_index)


class IntoEdges(Base):
    """Turns every edge round, in place."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        edge_index.copy_(edge_index.flip(0))
        return super().forward(x, edge_index)


class Later(Base):
    """Writes into the edges when the trial before the training is over."""

    calls = 0

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        type(self).calls += 1
        if type(self).calls > 40:
            edge_index[0] = 0
        return super().forward(x, edge_index)


class Changes(Base):
    """Its evaluations are as they should be for a while; then ``change`` is done to them."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        z = super().forward(x, edge_index)
        self.calls += not self.training
        return z if self.training or self.calls < 8 else self.change(z)

    def change(self, z: Tensor) -> Tensor:
        return z


class FewerLater(Changes):
    """One node less."""

    def change(self, z: Tensor) -> Tensor:
        return z[1:]


class DoubleLater(Changes):
    """Another precision."""

    def change(self, z: Tensor) -> Tensor:
        return z.double()


class NotANumberLater(Changes):
    """A node without a finite logit, which no loss of a plain model shows."""

    def change(self, z: Tensor) -> Tensor:
        return z.index_fill(0, torch.tensor([119]), float("nan"))


class NotANumber(Changes):
    """As above, from the beginning."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return super().forward(x, edge_index).index_fill(0, torch.tensor([119]), float("inf"))


class Sparse(Base):
    """A table of which only some rows get a gradient."""

    def __init__(self) -> None:
        super().__init__()
        self.names = nn.Embedding(120, 8, sparse=True)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return super().forward(x + self.names.weight, edge_index)


class Detached(Base):
    """Nothing flows back."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return super().forward(x, edge_index).detach()


class Grows(Base):
    """A buffer whose size changes."""

    seen: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(1))

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        if self.training:
            self.seen = torch.cat([self.seen, torch.zeros(1)])
        return super().forward(x, edge_index)


class Nothing(nn.Module):
    """No parameter at all."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:  # noqa: ARG002
        return x[:, :3]


class DoubleLogits(Base):
    """Logits in double precision."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return super().forward(x, edge_index).double()


SHARED, SHARED_LAYER = Base(), nn.Linear(8, 6)


def sharing_a_layer() -> nn.Module:
    module = Base()
    module.a = SHARED_LAYER
    return module


def of_any_width(widths: list[int]) -> Any:
    def make() -> nn.Module:
        widths.append(widths[-1] + 1)
        module = Base()
        module.a, module.b = nn.Linear(8, widths[-1]), nn.Linear(widths[-1], 3)
        return module

    return make


@pytest.mark.parametrize(
    ("factory", "error", "says"),
    [
        (lambda: SHARED, ValueError, r"two calls share their parameters: build it inside the function"),
        (sharing_a_layer, ValueError, r"two calls share their parameters"),
        (of_any_width([4]), ValueError, "the same architecture at every call"),
        (Nothing, ValueError, "no parameter that requires a gradient"),
        (lambda: Base().requires_grad_(False), ValueError, "no parameter that requires a gradient"),
        (lambda: Base().double(), TypeError, r"'a.weight' of model is torch.float64, but fit trains in torch.float32"),
        (DoubleLogits, TypeError, "logits in torch.float32, got torch.float64"),
        (NeverUsedLazy, ValueError, "'c.weight' of model is lazy, and forward does not use it"),
        (Remembers, ValueError, "could not be returned: a new module with the same parameters and buffers"),
        (Grows, ValueError, "could not be returned, since its state cannot be set"),
        (Detached, ValueError, "no gradient flows from"),
        (InPlace, ValueError, "changes x in place, which all runs share"),
        (InPlaceAlways, ValueError, "changes x in place, which all runs share"),
        (IntoEdges, ValueError, "changes edge_index in place, which all runs share"),
        (Sparse, ValueError, "'names' of model has sparse gradients, which fit does not take"),
        (NotANumber, ValueError, "NaN or infinite logits for 1 of 120 nodes, first node 119"),
        (lambda: 3, TypeError, "must make a torch.nn.Module, but it made a int"),
        (lambda: Base().b, TypeError, "positional argument"),
    ],
)
def test_what_cannot_be_trained_or_handed_back_is_refused_at_once(
    factory: Any, error: type[Exception], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: Any) -> Any:
        raise AssertionError("it was trained")

    monkeypatch.setattr("propreg.fitting.fit.train_all", never)
    features, edges = np.array(GRAPH.x), GRAPH.edge_index.copy()
    with pytest.raises(error, match=says) as caught:
        fit(GRAPH, factory, **QUICK)
    assert "\n" not in str(caught.value)
    np.testing.assert_array_equal(GRAPH.x, features)
    np.testing.assert_array_equal(GRAPH.edge_index, edges)


def test_what_a_model_writes_into_while_it_trains_is_no_result_and_not_the_callers() -> None:
    edges, mine = GRAPH.edge_index.copy(), DATA.edge_index.clone()
    for data in (GRAPH, DATA):
        Later.calls = 0
        with pytest.raises(ValueError, match="changes edge_index in place, which all runs share"):
            fit(data, Later, **QUICK)
    assert Later.calls > 40
    np.testing.assert_array_equal(GRAPH.edge_index, edges)
    assert torch.equal(DATA.edge_index, mine)


@pytest.mark.parametrize(
    ("factory", "error", "says"),
    [
        (FewerLater, ValueError, r"must return logits of shape \(120, 3\), got \(119, 3\)"),
        (DoubleLater, TypeError, "logits in torch.float32, got torch.float64"),
        (NotANumberLater, ValueError, "NaN or infinite logits for 1 of 120 nodes, first node 119"),
    ],
)
def test_logits_are_checked_at_every_epoch(factory: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        fit(GRAPH, factory, **QUICK)


def test_dropout_belongs_to_the_module() -> None:
    with pytest.raises(ValueError, match="set it inside your own module"):
        fit(GRAPH, Base, dropout=0.2, **QUICK)
