"""Finished runs of a fit on disk: what the same fit goes on from after an interruption, an error or a kill.

A folder holds one folder per fit, named by the SHA-256 of its graph, model, regularizer, protocol, versions and device,
and in it one safetensors file per run, named by that of its replica and split. Each is written the moment the run is
finished, whole or not at all: weights and history as tensors; scores and reports as JSON, with a SHA-256 of everything,
in the metadata.
"""

import hashlib
import inspect
import json
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from types import CodeType
from typing import Any

import torch
from torch import nn

from propreg import __version__, methods, scale
from propreg.data.digests import digest_splits
from propreg.data.errors import DataError
from propreg.data.formats.safetensors import read_safetensors, write_safetensors
from propreg.data.graph import Split
from propreg.devices import processor
from propreg.engine.models.module_inputs import digest_of
from propreg.engine.models.user_module import OwnNetwork
from propreg.engine.spec import Measures, Method, Model, PartMeasures, Protocol, Replica, Report, Result
from propreg.engine.tasks.node import Problem, graph_digest
from propreg.fitting.saved_file import Arrays, content_digest
from propreg.jsonio import canonical, to_json
from propreg.scale.trainer import MiniBatches
from propreg.store.provenance import engine_digest

FORMAT = "propreg-run-1"
_WEIGHT, _HISTORY = "weight ", "history "
_SCORES = ("val", "test", "epoch", "epochs", "failed_at", "before")


class KeptRuns:
    """The finished runs of one fit.

    Args:
        folder: The folder of the caller; that of the fit is made inside when there is something to keep.
        settings: What all runs of the fit depend on, see :func:`settings_of`.
        splits: The splits by name.
    """

    def __init__(
        self, folder: str | os.PathLike[str], settings: Mapping[str, Any], splits: Mapping[str, Split]
    ) -> None:
        if os.path.exists(folder) and not os.path.isdir(folder):
            raise DataError(f"{folder}: is not a folder: name another one with resume.")
        self.settings = canonical(settings)
        self.folder = Path(folder) / _digest(self.settings)[:16]
        self._splits = {name: digest_splits([split]) for name, split in splits.items()}
        self._full = False

    def find(self, replica: Replica) -> Result | None:
        """The finished run of a replica; None, with a warning, if its file is damaged."""
        path = self._path(replica)
        if not path.exists():
            return None
        try:
            tensors, texts = read_safetensors(path)
            about = {name: texts.get(name, "") for name in ("format", "run", "result")}
            if about["format"] != FORMAT or about["run"] != self._run(replica):
                raise DataError(f"{path}: holds a different run than its name claims.")
            if texts.get("sha256") != content_digest(about, tensors):
                raise DataError(f"{path}: its content does not match its SHA-256.")
            return _result(replica, json.loads(about["result"]), tensors)
        except DataError as error:
            warnings.warn(f"{error} The run is trained again.", stacklevel=2)
            return None

    def keep(self, result: Result) -> None:
        """Write a finished run. If that fails, as on a full disk, the fit goes on, with one warning."""
        if result.error:
            return
        values = {"reports": [asdict(report) for report in result.reports]}
        values |= {name: getattr(result, name) for name in _SCORES}
        about = {"format": FORMAT, "run": self._run(result.replica), "result": json.dumps(values)}
        try:
            tensors = {f"{_WEIGHT}{name}": t.numpy() for name, t in result.weights.items()}
            tensors |= {f"{_HISTORY}{name}": values for name, values in result.history.items()}
            self.folder.mkdir(parents=True, exist_ok=True)
            write_safetensors(self._path(result.replica), tensors, about | {"sha256": content_digest(about, tensors)})
        except (DataError, OSError, TypeError) as error:  # the last of a type that NumPy has not
            if not self._full:
                why = str(error).rstrip(".")
                warnings.warn(
                    f"Finished runs cannot be kept ({why}): the fit continues without keeping them.", stacklevel=2
                )
            self._full = True

    def _path(self, replica: Replica) -> Path:
        return self.folder / f"{_digest(self._run(replica))[:32]}.safetensors"

    def _run(self, replica: Replica) -> str:
        mine = {name: value for name, value in vars(replica).items() if name != "own" or value}  # fit never has some
        return canonical({"settings": _digest(self.settings), "nodes": self._splits[replica.split], **mine})


def settings_of(
    problem: Problem,
    model: Model,
    network: OwnNetwork | None,
    method: Method,
    protocol: Protocol,
    trainer: MiniBatches | None = None,
) -> dict[str, Any]:
    """What the runs of a fit depend on beside their replicas and splits."""
    graph = replace(problem.graph, digests={}, split=None)  # by its arrays: digests may be of an earlier form of it
    device, extra = problem.device, digest_of(problem.graph)
    return {
        "propreg": [__version__, engine_digest(), engine_digest(Path(methods.__file__).parent)],
        "torch": str(torch.__version__),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else f"{device.type} {processor()}",
        "graph": [graph_digest(graph), problem.digest],
        "model": model.identity() | to_json(model) if network is None else module_digest(network.module({}, 0)),
        "method": to_json(method),
        "protocol": to_json(protocol),
        **({"inputs": [asdict(network.inputs), extra]} if network and network.inputs and extra else {}),
        **({"class_weight": "balanced"} if problem.balanced else {}),
        **({} if trainer is None else {"mini-batches": _batches(trainer)}),
    }


def _batches(trainer: MiniBatches) -> list[Any]:
    """What mini-batches depend on: their code and sizes, and the scaling of their rows."""
    scaling = trainer.whole.scaling
    parts = {name: t for name, t in (("mean", scaling.mean), ("deviation", scaling.deviation)) if t is not None}
    code = engine_digest(Path(scale.__file__).parent)
    return [code, trainer.size, trainer.num_neighbors, trainer.cost, content_digest({"scale": scaling.kind}, parts)]


def module_digest(module: nn.Module) -> str:
    """A digest of a user's module: its structure, the values of its parameters and buffers, and its classes' code.

    Example:
        >>> def made(width):
        ...     _ = torch.manual_seed(0)
        ...     return nn.Linear(2, width)
        >>> module_digest(made(3)) == module_digest(made(3)), module_digest(made(3)) == module_digest(made(4))
        (True, False)
    """
    sha = hashlib.sha256(repr(module).encode())
    for kind in dict.fromkeys(kind for part in module.modules() for kind in type(part).__mro__):
        for name, member in sorted(vars(kind).items(), key=lambda item: item[0]):
            if inspect.isfunction(member):
                sha.update(f"{name} {_code(member.__code__)}".encode())
    for name, t in [*module.named_parameters(), *module.named_buffers()]:
        sha.update(f"{name} {t.dtype} {tuple(t.shape)} ".encode())
        if t.layout == torch.strided:
            sha.update(t.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return sha.hexdigest()


def _code(code: CodeType) -> str:
    """The instructions of a function and those inside it, without places in files and memory."""
    constants = [_constant(each) for each in code.co_consts]
    return f"{code.co_code.hex()} {code.co_names} {code.co_varnames} {code.co_freevars} {constants}"


def _constant(value: object) -> str:
    if isinstance(value, CodeType):
        return _code(value)
    return repr(sorted(map(repr, value))) if isinstance(value, frozenset) else repr(value)  # no set has an order


def missing_groups(known: Sequence[bool], size: int) -> list[int]:
    """The numbers of all runs in groups of ``size`` of which one is not known.

    Runs of a group are one program on a CPU: trained together again, they have the bits of an undisturbed fit.

    Example:
        >>> missing_groups([True, True, True, False, True], 2)
        [2, 3]
    """
    starts = [at for at in range(0, len(known), size) if not all(known[at : at + size])]
    return [number for at in starts for number in range(at, min(at + size, len(known)))]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _result(replica: Replica, values: Mapping[str, Any], tensors: Arrays) -> Result:
    weights = {name.removeprefix(_WEIGHT): torch.from_numpy(t) for name, t in tensors.items() if name[0] == _WEIGHT[0]}
    history = {name.removeprefix(_HISTORY): t for name, t in tensors.items() if name[0] == _HISTORY[0]}
    reports = tuple(_report(each) for each in values["reports"])
    scores = {name: values[name] for name in _SCORES if name in values}  # earlier files have no "before"
    return Result(replica, history=history, weights=weights, reports=reports, **scores)


def _report(values: dict[str, Any]) -> Report:
    measures = values["measures"]
    parts = None if measures is None else Measures(*(_part(measures[part]) for part in ("val", "test")))
    return Report(**{**values, "measures": parts})


def _part(values: dict[str, Any]) -> PartMeasures:
    counts = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
    bins = tuple((int(nodes), int(right), float(sure)) for nodes, right, sure in values["bins"])
    return PartMeasures(**{**values, **counts, "bins": bins})
