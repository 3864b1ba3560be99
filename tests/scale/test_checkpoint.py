"""A training that goes on from a file goes on as if it had not stopped."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from propreg import DataError
from propreg.data.formats.safetensors import write_safetensors
from propreg.scale.checkpoint import load_training, save_training


def made(kind: Any = torch.optim.Adam, width: int = 3, **options: Any) -> Any:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, width), nn.BatchNorm1d(width), nn.Linear(width, 1))
    return model, kind(model.parameters(), lr=0.1, **options)


def steps(model: nn.Module, optimizer: torch.optim.Optimizer, count: int) -> None:
    x = torch.arange(8.0).reshape(4, 2)
    for _ in range(count):
        optimizer.zero_grad()
        loss: Tensor = model(x).square().mean()
        torch.autograd.backward(loss)
        optimizer.step()


@pytest.mark.parametrize(
    ("kind", "options"), [(torch.optim.Adam, {"betas": (0.8, 0.9)}), (torch.optim.SGD, {"momentum": 0.9})]
)
def test_a_resumed_training_is_the_same(tmp_path: Path, kind: Any, options: Any) -> None:
    through, optimizer = made(kind, **options)
    steps(through, optimizer, 3)
    save_training(tmp_path / "a", through, optimizer, 3)
    steps(through, optimizer, 2)
    resumed, again = made(kind, **options)
    assert load_training(tmp_path / "a", resumed, again) == 3
    steps(resumed, again, 2)
    for name, value in through.state_dict().items():
        assert torch.equal(value, resumed.state_dict()[name]), name


def test_what_does_not_fit_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    model, optimizer = made()
    steps(model, optimizer, 1)
    save_training(tmp_path / "a", model, optimizer, 1)
    other, its = made(width=4)
    before = {name: value.clone() for name, value in other.state_dict().items()}
    with pytest.raises(DataError, match="does not fit this model and optimizer"):
        load_training(tmp_path / "a", other, its)
    assert all(torch.equal(value, before[name]) for name, value in other.state_dict().items())
    write_safetensors(tmp_path / "b", {}, {"format": "another"})
    with pytest.raises(DataError, match="is not a training of format"):
        load_training(tmp_path / "b", model, optimizer)
    with pytest.raises(DataError, match="there is no such file"):
        load_training(tmp_path / "c", model, optimizer)
