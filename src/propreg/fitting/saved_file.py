"""The file of a trained model, without pickles: tensors, settings and a digest.

A file holds tensors and three texts: in safetensors as its metadata, in a ``.npz`` file as members.

============  ====================================================================================================
``format``    ``propreg-model-2``, a built-in model; or ``propreg-state-2``, a module of the user's, without its code
``settings``  JSON. Of a model: ``architecture`` (the settings of :class:`propreg.engine.Model` that its weights
              depend on, and those that are not the default), ``features``, ``classes``, ``dropout``, ``weighted``
              (whether ``forward`` takes edge weights). Of both: ``about`` (regularizer, preset and strength of the
              training), ``scale`` (what is done to the features, see :class:`propreg.data.scaling.Scaling`),
              ``class_names`` and ``feature_names`` if the graph has them, ``versions`` of the packages
``sha256``    of everything else
============  ====================================================================================================

The tensors have their names in the module: of a model its state dict in float32, of a state all parameters and dense
buffers, ``preprocessing.mean`` and ``.deviation`` of standardized features, and ``units.mean`` and ``.deviation`` of
the numbers that a regression predicts.

As members of an npz, a model's have ``__`` for each dot; a state's are ``state_0``, …, and ``names`` in its settings
lists theirs.
"""

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from propreg.data.errors import DataError
from propreg.data.formats.files import open_regular
from propreg.data.formats.npz import read_npz, write_npz
from propreg.data.formats.safetensors import read_safetensors, write_safetensors
from propreg.data.own.npz import members_digest

MODEL, STATE = "propreg-model-2", "propreg-state-2"
_TEXTS = ("format", "settings", "sha256")
Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Saved:
    """What a file holds, whatever its format: ``form`` is :data:`MODEL` or :data:`STATE`, the settings are JSON."""

    form: str
    settings: str
    tensors: Arrays


def write_saved(path: str | os.PathLike[str], saved: Saved) -> None:
    if str(path).endswith(".npz"):
        return write_npz(path, _as_members(saved))
    texts = {"format": saved.form, "settings": saved.settings}
    write_safetensors(path, saved.tensors, texts | {"sha256": content_digest(texts, saved.tensors)})


def read_saved(path: str | os.PathLike[str]) -> Saved:
    """The content of a file whose checksum holds."""
    where = str(path)
    with open_regular(path) as file:
        zipped = file.read(2) == b"PK"
    if zipped:
        return _of_members(read_npz(path), where)
    tensors, texts = read_safetensors(path)
    if not all(name in texts for name in _TEXTS):
        raise _no_model(where)
    if texts["format"].startswith("propreg-graphs-"):
        raise DataError(f"{where}: is a model of whole graphs: read it with propreg.load_graph_model.")
    _check_format(texts["format"], where)
    if texts["sha256"] != content_digest({name: texts[name] for name in _TEXTS[:2]}, tensors):
        raise _wrong_digest(where)
    return Saved(texts["format"], texts["settings"], tensors)


def content_digest(texts: Mapping[str, str], tensors: Arrays) -> str:
    """The SHA-256 of texts and tensors by name."""
    content = members_digest({f"tensor {name}": array for name, array in tensors.items()})
    return hashlib.sha256(json.dumps([content, texts], sort_keys=True).encode()).hexdigest()


def _as_members(saved: Saved) -> dict[str, NDArray[Any]]:
    settings = saved.settings
    if saved.form == MODEL:
        arrays = {name.replace(".", "__"): array for name, array in saved.tensors.items()}
    else:
        arrays = {f"state_{i}": array for i, array in enumerate(saved.tensors.values())}
        settings = json.dumps(json.loads(settings) | {"names": list(saved.tensors)}, sort_keys=True)
    arrays |= {"format": np.array(saved.form), "settings": np.array(settings)}
    return {**arrays, "sha256": np.array(members_digest(arrays))}


def _of_members(arrays: Arrays, where: str) -> Saved:
    _check_format(form := _text(arrays, "format", where), where)
    if _text(arrays, "sha256", where) != members_digest(arrays):
        raise _wrong_digest(where)
    settings = _text(arrays, "settings", where)
    if form == MODEL:
        tensors = {name.replace("__", "."): a for name, a in arrays.items() if name not in _TEXTS}
        return Saved(form, settings, tensors)
    try:
        names = json.loads(settings)["names"]
        known = isinstance(names, list) and all(isinstance(name, str) for name in names)
    except (KeyError, TypeError, ValueError, RecursionError):
        known = False
    if not known or {f"state_{i}" for i in range(len(names))} | set(_TEXTS) != arrays.keys():
        raise DataError(f"{where}: its settings cannot be used: save the model again.")
    return Saved(form, settings, {name: arrays[f"state_{i}"] for i, name in enumerate(names)})


def _check_format(form: str, where: str) -> None:
    for known in (MODEL, STATE):
        if re.fullmatch(rf"{known.removesuffix('2')}([3-9]|[1-9][0-9]{{1,5}})", form):
            raise DataError(f"{where}: has format {form!r}, which is newer than {known!r}: update propreg.")
    if form not in (MODEL, STATE):
        raise _no_model(where)


def _text(arrays: Arrays, member: str, where: str) -> str:
    if member not in arrays or arrays[member].dtype.kind != "U" or arrays[member].ndim:
        raise _no_model(where)
    return str(arrays[member][()])


def _no_model(where: str) -> DataError:
    return DataError(f"{where}: is not a model that propreg saved: give a file that FitResult.save wrote.")


def unusable(where: str, error: Exception) -> DataError:
    return DataError(f"{where}: its settings cannot be used ({error}): save the model again.")


def _wrong_digest(where: str) -> DataError:
    return DataError(f"{where}: its content does not match its SHA-256: copy or save it again.")
