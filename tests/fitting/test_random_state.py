"""``fit`` draws what it needs, and its caller's own random numbers are those it would have had without it."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from communities import communities
from propreg.fitting.fit import fit

GRAPH = communities()
QUICK: dict[str, Any] = {
    "mu": [0.5], "splits": 1, "seeds": 2, "train_per_class": 5, "val_per_class": 10, "max_epochs": 4, "progress": False
}  # fmt: skip


class Dropping(nn.Module):
    """Random weights and dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 3)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:  # noqa: ARG002
        out: Tensor = self.layer(nn.functional.dropout(x, 0.5, self.training))
        return out


class Wide(Dropping):
    """One output too many."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 4)


@pytest.mark.parametrize("model", ["gcn", "gat", Dropping])
def test_the_callers_random_numbers_are_left_alone(model: Any) -> None:
    torch.manual_seed(5)
    expected = torch.rand(4)
    torch.manual_seed(5)
    fit(GRAPH, model, **QUICK)
    assert torch.equal(torch.rand(4), expected)


def test_they_are_left_alone_by_a_fit_that_fails() -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    with pytest.raises(ValueError, match="must return logits of shape"):
        fit(GRAPH, Wide, **QUICK)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_fit_does_not_depend_on_the_callers_random_numbers() -> None:
    torch.manual_seed(1)
    first = fit(GRAPH, Dropping, **QUICK)
    torch.manual_seed(2)
    second = fit(GRAPH, Dropping, **QUICK)
    for one, other in zip(first.runs, second.runs, strict=True):
        np.testing.assert_array_equal(one.history["loss"], other.history["loss"])
    assert not np.array_equal(first.runs[0].history["loss"], first.runs[1].history["loss"])
