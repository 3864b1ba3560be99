"""The official random splits as their authors published them: old PyTorch files, read without PyTorch.

Such a file is five pickles (a magic number, a version, a description of the machine, the object, the names of the
storages), then the bytes of each storage. The object is one of a helper class ``Mask`` with three boolean tensors.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from propreg.data.errors import DataError
from propreg.data.formats.files import read_bytes
from propreg.data.formats.pickles import Global, Made, Persistent, load_pickle
from propreg.data.graph import MASKS, Split

_MAGIC = 0x1950A86A20F9469CFC6C
_REBUILD = Global("torch._utils", "_rebuild_tensor_v2")
_STORAGES = {Global("torch", "BoolStorage"), Global("torch", "ByteStorage")}
_ALLOWED = {("torch._utils", "_rebuild_tensor_v2"), ("torch", "BoolStorage"), ("torch", "ByteStorage"),
            ("collections", "OrderedDict")}  # fmt: skip
_MAX_BYTES = 1 << 20


def read_mask(path: Path) -> Split:
    """Read one ``.mask`` file."""
    data = read_bytes(path, _MAX_BYTES)
    where, place, values = str(path), 0, []
    for _ in range(5):
        value, place = load_pickle(data, where, _allow, start=place, max_opcodes=10_000)
        values.append(value)
    if values[0] != _MAGIC or values[1] != 1001:
        raise DataError(f"{where}: is not a file of masks in PyTorch's old format: get it again.")
    storages = _storages(data, place, values[4], where)
    made = values[3]
    if not isinstance(made, Made) or not isinstance(made.state, dict):
        raise DataError(f"{where}: does not hold three masks: get the file again.")
    train, val, test = (_tensor(made.state.get(mask), storages, where) for mask in MASKS)
    if not len(train) == len(val) == len(test) or bool(((train & val) | (train & test) | (val & test)).any()):
        raise DataError(f"{where}: its masks overlap or differ in length: get the file again.")
    return Split(train, val, test)


def _allow(module: str, name: str) -> bool:
    # The helper class was pickled under the name of whatever script wrote it; it is never imported.
    return (module, name) in _ALLOWED or name == "Mask"


def _storages(data: bytes, place: int, keys: Any, where: str) -> dict[str, NDArray[np.uint8]]:
    """The raw storages: for each key its length (8 bytes), then its bytes, to the end of the file."""
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        raise DataError(f"{where}: does not name its storages: get the file again.")
    found = {}
    for key in keys:
        size = int.from_bytes(data[place : place + 8], "little")
        if size > len(data) - place - 8:
            raise DataError(f"{where}: is truncated: get the file again.")
        found[key] = np.frombuffer(data, np.uint8, size, place + 8)
        place += 8 + size
    if place != len(data):
        raise DataError(f"{where}: has {len(data) - place} bytes after its end: get the file again.")
    return found


def _tensor(made: Any, storages: dict[str, NDArray[np.uint8]], where: str) -> NDArray[np.bool_]:
    match made:
        case Made(of=of, args=(Persistent(key=tuple() as stored), int() as start, (int() as size,), (1,), *_)):
            if of == _REBUILD and len(stored) >= 5 and stored[0] == "storage" and isinstance(stored[1], Global):
                known = stored[1] in _STORAGES and isinstance(stored[2], str)
                values = storages.get(stored[2]) if known else None
                if values is not None and len(values) == stored[4] and 0 <= start <= start + size <= len(values):
                    values = values[start : start + size]
                    if int(values.max(initial=0)) <= 1:
                        return values.astype(bool)
    raise DataError(f"{where}: a mask is not a vector of truth values: get the file again.")
