"""A training in progress as one safetensors file, written whole or not at all, so that it can go on later."""

import os
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from propreg.data.errors import DataError
from propreg.data.formats.safetensors import read_safetensors, write_safetensors
from propreg.jsonio import canonical, parse

FORMAT = "propreg-training-1"


def save_training(path: str | os.PathLike[str], model: nn.Module, optimizer: Optimizer, epoch: int) -> None:
    """Write the model, the optimizer and the number of finished epochs.

    Args:
        path: The file to create or replace.
        model: Its ``state_dict`` is written.
        optimizer: Its state is written, with the numbers of its groups.
        epoch: The number of finished epochs.

    Raises:
        DataError: If the file cannot be written.

    Example:
        >>> import tempfile
        >>> model = nn.Linear(2, 1)
        >>> optimizer = torch.optim.Adam(model.parameters())
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     save_training(f"{folder}/a.safetensors", model, optimizer, epoch=3)
        ...     load_training(f"{folder}/a.safetensors", model, optimizer)
        3
    """
    state = optimizer.state_dict()
    tensors = {f"model/{name}": value for name, value in model.state_dict().items()}
    for number, values in state["state"].items():
        tensors |= {f"optimizer/{number}/{name}": torch.as_tensor(value) for name, value in values.items()}
    arrays = {name: tensor.detach().cpu().numpy() for name, tensor in tensors.items()}
    about = {"format": FORMAT, "epoch": str(epoch), "groups": canonical(_plain(state["param_groups"]))}
    write_safetensors(path, arrays, about)


def load_training(path: str | os.PathLike[str], model: nn.Module, optimizer: Optimizer) -> int:
    """Set the model and the optimizer to what :func:`save_training` wrote, and return the number of finished epochs.

    Raises:
        DataError: If the file is missing or damaged, or of another model or optimizer.
    """
    arrays, about = read_safetensors(path)
    if about.get("format") != FORMAT or not about.get("epoch", "").isdecimal():
        raise DataError(f"{path}: is not a training of format {FORMAT!r}: give a file that save_training wrote.")
    tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
    state: dict[int, dict[str, Any]] = {}
    try:
        for name in [name for name in tensors if name.startswith("optimizer/")]:
            _, number, key = name.split("/", 2)
            state.setdefault(int(number), {})[key] = tensors.pop(name)
        groups = parse(about["groups"])
        now = optimizer.state_dict()["param_groups"]
        both = [{**mine, **saved} for mine, saved in zip(now, groups, strict=True)]
        if [group["params"] for group in both] != [group["params"] for group in now]:
            raise ValueError("its optimizer has other parameters")
        _check_shapes(state, optimizer)
        model.load_state_dict({name.removeprefix("model/"): tensor for name, tensor in tensors.items()})
        optimizer.load_state_dict({"state": state, "param_groups": both})
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise DataError(f"{path}: does not fit this model and optimizer ({reason}): start anew.") from error
    return int(about["epoch"])


def _check_shapes(state: dict[int, dict[str, Any]], optimizer: Optimizer) -> None:
    """The optimizer would take any shape and fail in its next step."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    for number, values in state.items():
        for name, value in values.items():
            if value.ndim and value.shape != parameters[number].shape:
                raise ValueError(f"{name} of parameter {number} has shape {tuple(value.shape)}")


def _plain(groups: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What JSON holds: numbers, texts and lists of them."""
    return [
        {name: list(value) if isinstance(value, tuple) else value for name, value in group.items()} for group in groups
    ]
