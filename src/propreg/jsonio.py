"""Frozen dataclasses as canonical JSON and back, and files that are written whole or not at all."""

import json
import math
import os
import secrets
from collections.abc import Hashable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeVar, get_args, get_origin, get_type_hints

from propreg.data.errors import DataError

LARGEST = 2**53
"""The largest whole number that every program which reads JSON holds exactly."""
T = TypeVar("T")


def canonical(value: object) -> str:
    """The one JSON text of a value: sorted keys, no spaces, no NaN.

    Example:
        >>> canonical({"b": 1, "a": [0.15, None]})
        '{"a":[0.15,null],"b":1}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def parse(text: str | bytes) -> Any:
    """JSON in which every number is one that every program holds: no NaN, no infinity, no whole number beyond 2⁵³.

    Raises:
        ValueError: If it is not JSON, or has another number.
        RecursionError: If it nests too deep.

    Example:
        >>> parse('{"a": [1, 0.5]}')
        {'a': [1, 0.5]}
        >>> parse("1e999")
        Traceback (most recent call last):
        ...
        ValueError: a number is far too large
    """
    return json.loads(text, parse_int=_whole, parse_float=_real, parse_constant=_real)


def _whole(digits: str) -> int:
    if len(digits) > 20 or abs(int(digits)) > LARGEST:
        raise ValueError("a number is far too large")
    return int(digits)


def _real(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError("a number is far too large")
    return value


def to_json(value: Any) -> dict[str, Any]:
    """A dataclass as a dict of the fields that differ from their defaults, so that a new field changes no old text.

    A field called ``name`` is always written, and a dataclass inside another one only if something of it is. A field
    with ``metadata={"written": {value: other}}`` has such values written as others, which its class reads.

    Example:
        >>> from propreg.engine.spec import Method
        >>> to_json(Method("preg", norm="sym"))
        {'name': 'preg', 'norm': 'sym'}
    """
    found: dict[str, Any] = {}
    kind: Any = type(value)
    for name, default, written in _fields(kind):
        mine: Any = getattr(value, name)
        if is_dataclass(mine):
            part: Any = mine
            if inner := _part_to_json(part):
                found[name] = inner
        elif name == "name" or mine != default:
            found[name] = written.get(mine, mine) if written else mine
    return found


def from_json(kind: type[T], value: object, error: type[Exception] = ValueError) -> T:
    """A dataclass from what :func:`to_json` made of it.

    Fields may already be instances of their types; all others must be JSON of the field's type.

    Args:
        kind: The dataclass.
        value: The parsed JSON.
        error: The exception to raise.

    Raises:
        ValueError: Or ``error``: the value is no JSON object of this dataclass's fields.
    """
    if not isinstance(value, dict):
        raise error(f"{kind.__name__} must be a JSON object, got {str(value)[:60]!r}.")
    known = {each.name: each for each in fields(kind)}  # type: ignore[arg-type]
    for name in value:
        if name not in known:
            raise error(f"{kind.__name__} has no setting {name!r}: it comes from a newer propreg, or is misspelled.")
    for name, each in known.items():
        if name in value:
            if not is_dataclass(value[name]):
                _check_type(kind, name, value[name], error)
        elif each.default is MISSING and each.default_factory is MISSING:
            raise error(f"{kind.__name__} needs {name!r}, which is missing.")
    return kind(**value)


@cache
def _part_to_json(part: Hashable) -> dict[str, Any]:
    return to_json(part)


@cache
def _fields(kind: Hashable) -> tuple[tuple[str, Any, dict[Any, Any]], ...]:
    return tuple((f.name, f.default, f.metadata.get("written", {})) for f in fields(kind))  # type: ignore[arg-type]


_WORDS = {str: "text", bool: "true or false", int: "a whole number", float: "a number", type(None): "null"}


def _check_type(kind: type, name: str, value: object, error: type[Exception]) -> None:
    """Refuse a value of another type than the field's; which values of the type are allowed is not checked."""
    known = _types(kind)[name]
    if type(value) not in known and not (type(value) is int and float in known):
        words = " or ".join(word for each, word in _WORDS.items() if each in known)
        raise error(f"{name} must be {words}, got {_WORDS.get(type(value), 'something else')}.")
    if isinstance(value, int) and abs(value) > LARGEST:
        raise error(f"{name} is far too large.")


@cache
def _types(kind: type) -> dict[str, set[type]]:
    """The types of a dataclass's fields."""
    return {name: _leaves(hint) for name, hint in get_type_hints(kind).items()}


def _leaves(hint: Any) -> set[type]:
    if get_origin(hint) is Literal:
        return {type(value) for value in get_args(hint)}
    return {leaf for inner in get_args(hint) for leaf in _leaves(inner)} or {hint}


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a temporary file beside ``path`` for writing, and move it into place if the block ends without an error.

    Args:
        path: The file to create or replace.

    Yields:
        The binary file to write to. If the block raises, the temporary file is removed and ``path`` stays as it was.

    Raises:
        DataError: If the file cannot be written.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with atomic_write(f"{folder}/a.bin") as file:
        ...         _ = file.write(b"whole")
        ...     (Path(folder) / "a.bin").read_bytes(), len(os.listdir(folder))
        (b'whole', 1)
    """
    target = Path(path)
    # Not tempfile.mkstemp: its files are private to the user whatever the umask.
    temporary = target.with_name(f".{target.name[:100]}.{secrets.token_hex(6)}.tmp")
    try:
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
        _sync_folder(target.parent)
    except OSError as error:
        raise DataError(f"{target}: cannot be written: {error.strerror or error}.") from error
    finally:
        with suppress(OSError):  # already moved if all went well
            temporary.unlink()


def _sync_folder(folder: Path) -> None:
    """Sync the folder, so that the new name survives a power cut; not every system can open a folder."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
