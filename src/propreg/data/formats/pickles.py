"""Pickles read as plain data: nothing is imported, nothing is called.

Python's own unpickler calls the functions that the file names. Here a name is only compared with a list of allowed
names, and a call becomes a :class:`Made` record of function and arguments, from which the readers build NumPy arrays.
Values nest at most 16 deep, unfold to a bounded number of parts (a few hundred bytes of tuples that share tuples unfold
to 2¹⁰⁰) and never hold themselves. Protocols 0 to 2 are read, which the benchmark files use. (``pickle.Unpickler`` with
a harmless ``find_class`` runs no code either, but one damaged memo index makes it allocate gigabytes.)
"""

import codecs
import math
import struct
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from propreg.data.errors import DataError
from propreg.data.features import checked_csr
from propreg.data.graph import SparseFeatures

_MAX_LINE = 1 << 16
_MAX_DEPTH = 16  # the files need 7
_MARK = object()


@dataclass(frozen=True)
class Global:
    """A class or function, by name only."""

    module: str
    name: str


@dataclass(eq=False)
class Made:
    """The object that a call would make: the callee, its arguments, the state set afterward, the items added."""

    of: Global
    args: tuple[Any, ...]
    state: Any = None
    items: dict[Any, Any] = field(default_factory=dict)


@dataclass(eq=False)
class Persistent:
    """A reference to something stored outside the pickle."""

    key: Any


def load_pickle(
    data: bytes, where: str, allow: Callable[[str, str], bool], *, start: int = 0, max_opcodes: int = 2_000_000
) -> tuple[Any, int]:
    """Read one pickle as inert data.

    Args:
        data: The file.
        where: The file's name for error messages.
        allow: Whether the global (module, name) may occur.
        start: The place of the pickle's first byte.
        max_opcodes: The most instructions, and the most parts that any value may unfold to.

    Returns:
        The value, and the place behind the pickle.

    Example:
        >>> import pickle
        >>> load_pickle(pickle.dumps({"a": [1, 2]}, 2), "a file", lambda module, name: False)[0]
        {'a': [1, 2]}
        >>> load_pickle(b"cos\\nsystem\\n(S'true'\\ntR.", "a file", lambda module, name: False)
        Traceback (most recent call last):
        ...
        propreg.data.errors.DataError: a file: names os.system, which this kind of file has no use for: ...
    """
    machine = _Machine(data, where, allow, start, max_opcodes)
    try:
        return machine.run(), machine.place
    except (IndexError, ValueError, struct.error, TypeError, KeyError, AttributeError, OverflowError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{where}: its pickle is damaged at byte {machine.place}: get the file again.") from error


class _Machine:
    def __init__(self, data: bytes, where: str, allow: Callable[[str, str], bool], start: int, most: int) -> None:
        self.data, self.where, self.allow, self.place, self.most = data, where, allow, start, most
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        # By id, with the value itself: a freed one would leave its id to another.
        self.sizes: dict[int, tuple[Any, int, int]] = {}
        self.held: dict[int, Any] = {}

    def run(self) -> Any:
        data, stack = self.data, self.stack
        for _ in range(self.most):
            code = data[self.place]
            self.place += 1
            if code in _NUMBERS:  # by far the most frequent
                shape = _NUMBERS[code]
                stack.append(shape.unpack_from(data, self.place)[0])
                self.place += shape.size
            elif code == 0x2E:  # STOP
                value = self.pop()
                if stack:
                    raise ValueError("more than one value")
                return value
            else:
                _DO[code](self)
        raise DataError(f"{self.where}: has more than {self.most} pickle instructions: this is not the expected file.")

    def take(self, count: int) -> bytes:
        if not 0 <= count <= len(self.data) - self.place:
            raise DataError(f"{self.where}: declares {count} bytes where it ends: it is truncated, get it again.")
        self.place += count
        return self.data[self.place - count : self.place]

    def line(self) -> bytes:
        end = self.data.index(b"\n", self.place, self.place + _MAX_LINE)
        text = self.data[self.place : end]
        self.place = end + 1
        return text

    def push(self, value: Any) -> None:
        self.stack.append(value)

    def to_mark(self) -> list[Any]:
        for depth in range(len(self.stack) - 1, -1, -1):
            if self.stack[depth] is _MARK:
                items = self.stack[depth + 1 :]
                del self.stack[depth:]
                return items
        raise ValueError("no mark")

    def pop(self) -> Any:
        value = self.stack.pop()
        if value is _MARK:
            raise ValueError("a mark is no value")
        return value

    def hold(self, whole: Any, parts: Collection[Any]) -> None:
        """Count ``parts`` as parts of ``whole``; they cannot change afterward, so depth and size stay true."""
        _, depth, size = self.sizes.get(id(whole), (whole, 1, 1))
        size += len(parts)
        for part in parts if not _PLAIN.issuperset(map(type, parts)) else ():
            if type(part) not in _PLAIN:
                self.held[id(part)] = part
                _, below, within = self.sizes.get(id(part), (part, 1, 1))
                depth, size = max(depth, below + 1), size + within
        if id(whole) in self.held:
            raise ValueError("a change of a value that another one holds")
        if depth > _MAX_DEPTH or size > self.most:
            raise DataError(
                f"{self.where}: nests its values over {_MAX_DEPTH} deep, or expands to more than {self.most}: do not "
                "trust the file, get it again from its publisher."
            )
        self.sizes[id(whole)] = whole, depth, size

    def whole(self, value: Any, parts: Collection[Any]) -> None:
        """Push a new value made of ``parts``."""
        if parts:  # there is only one empty tuple
            self.hold(value, parts)
        self.push(value)

    def global_(self) -> None:
        module, name = (self.line().decode("ascii") for _ in range(2))
        if not self.allow(module, name):
            raise DataError(
                f"{self.where}: names {module[:60]}.{name[:60]}, which this kind of file has no use for: "
                "it was not run; do not trust the file, get it again from its publisher."
            )
        self.push(Global(module, name))

    def call(self) -> None:
        args, of = self.pop(), self.pop()
        if not isinstance(of, Global) or not isinstance(args, tuple):
            raise ValueError("a call of something else")
        self.whole(Made(of, args), [args])

    def build(self) -> None:
        state = self.pop()
        if not isinstance(self.stack[-1], Made):
            raise ValueError("state for something else")
        self.hold(self.stack[-1], [state])
        self.stack[-1].state = state

    def extend(self, items: list[Any]) -> None:
        target = self.stack[-1]
        if type(target) is not list:
            raise ValueError("items for something else than a list")
        self.hold(target, items)
        target.extend(items)

    def update(self, items: list[Any]) -> None:
        target = self.stack[-1]
        target = target.items if isinstance(target, Made) else target
        if type(target) is not dict:
            raise ValueError("items for something else than a dictionary")
        pairs = _pairs(items)
        self.hold(self.stack[-1], items)
        target.update(pairs)

    def tuple_(self, count: int) -> None:
        values = [self.pop() for _ in range(count)][::-1]
        self.whole(tuple(values), values)

    def made_of(self, make: Callable[[list[Any]], Any]) -> None:
        items = self.to_mark()
        self.whole(make(items), items)

    def put(self, index: int) -> None:
        if self.stack[-1] is _MARK:
            raise ValueError("a mark is no value")
        self.memo[index] = self.stack[-1]

    def get(self, index: int) -> None:
        self.push(self.memo[index])


def _pairs(items: list[Any]) -> dict[Any, Any]:
    if len(items) % 2 or not all(isinstance(key, int | str | bytes) for key in items[::2]):
        raise ValueError("keys that are no keys")
    return dict(zip(items[::2], items[1::2], strict=True))


def _number(text: bytes) -> int:
    if len(text) > 32:
        raise ValueError("too long a number")
    return int(text.rstrip(b"L"))


def _protocol(machine: _Machine) -> None:
    if machine.take(1)[0] > 2:
        raise ValueError("a protocol that the files do not use")


def _persistent(machine: _Machine) -> None:
    key = machine.pop()
    machine.whole(Persistent(key), [key])


def _int_line(machine: _Machine) -> None:
    text = machine.line()
    machine.push(text == b"01" if text in (b"00", b"01") else _number(text))


def _quoted(machine: _Machine) -> None:
    text = machine.line()
    if len(text) < 2 or text[:1] != text[-1:] or text[:1] not in b"'\"":
        raise ValueError("a text without quotes")
    machine.push(codecs.escape_decode(text[1:-1])[0])


def _sized(width: int, decode: Callable[[bytes], Any] = bytes) -> Callable[[_Machine], None]:
    def do(machine: _Machine) -> None:
        count = int.from_bytes(machine.take(width), "little")
        machine.push(decode(machine.take(count)))

    return do


def _big(data: bytes) -> int:
    return int.from_bytes(data, "little", signed=True)


_PLAIN = frozenset({int, float, bool, str, bytes, type(None), Global})
_NUMBERS = {ord("K"): struct.Struct("<B"), ord("M"): struct.Struct("<H"), ord("J"): struct.Struct("<i"),
            ord("G"): struct.Struct(">d")}  # fmt: skip
_DO: dict[int, Callable[[_Machine], None]] = {
    0x80: _protocol,
    ord("("): lambda m: m.push(_MARK),
    ord("N"): lambda m: m.push(None),
    0x88: lambda m: m.push(True),
    0x89: lambda m: m.push(False),
    ord("I"): _int_line,
    ord("L"): lambda m: m.push(_number(m.line())),
    ord("F"): lambda m: m.push(float(m.line())),
    0x8A: _sized(1, _big),
    ord("S"): _quoted,
    ord("T"): _sized(4),
    ord("U"): _sized(1),
    ord("V"): lambda m: m.push(m.line().decode("raw-unicode-escape")),
    ord("X"): _sized(4, lambda data: data.decode("utf-8")),
    ord(")"): lambda m: m.push(()),
    ord("t"): lambda m: m.made_of(tuple),
    0x85: lambda m: m.tuple_(1),
    0x86: lambda m: m.tuple_(2),
    0x87: lambda m: m.tuple_(3),
    ord("]"): lambda m: m.push([]),
    ord("l"): lambda m: m.made_of(list),
    ord("a"): lambda m: m.extend([m.pop()]),
    ord("e"): lambda m: m.extend(m.to_mark()),
    ord("}"): lambda m: m.push({}),
    ord("d"): lambda m: m.made_of(_pairs),
    ord("s"): lambda m: m.update([m.pop(), m.pop()][::-1]),
    ord("u"): lambda m: m.update(m.to_mark()),
    ord("c"): _Machine.global_,
    ord("R"): _Machine.call,
    0x81: _Machine.call,  # NEWOBJ
    ord("b"): _Machine.build,
    ord("Q"): _persistent,
    ord("p"): lambda m: m.put(_number(m.line())),
    ord("q"): lambda m: m.put(m.take(1)[0]),
    ord("r"): lambda m: m.put(int.from_bytes(m.take(4), "little")),
    ord("g"): lambda m: m.get(_number(m.line())),
    ord("h"): lambda m: m.get(m.take(1)[0]),
    ord("j"): lambda m: m.get(int.from_bytes(m.take(4), "little")),
}


RECONSTRUCT = Global("numpy.core.multiarray", "_reconstruct")
NDARRAY = Global("numpy", "ndarray")
DTYPE = Global("numpy", "dtype")
CSR = Global("scipy.sparse.csr", "csr_matrix")

_TYPES = {b"b1", b"i1", b"i2", b"i4", b"i8", b"u1", b"u2", b"u4", b"u8", b"f4", b"f8"}
_MAX_BYTES = 256 << 20


def to_array(made: Any, where: str) -> NDArray[Any]:
    """The array that a pickle describes, in native byte order."""
    if not isinstance(made, Made) or made.of != RECONSTRUCT or made.args[:1] != (NDARRAY,):
        raise DataError(f"{where}: does not hold an array: get the file again.")
    match made.state:
        case (int(), tuple() as shape, Made() as kind, bool() | 0 | 1 as fortran, bytes() as raw):
            dtype = _dtype(kind, where)
        case _:
            raise DataError(f"{where}: an array's state is damaged: get the file again.")
    if len(shape) > 2 or not all(type(n) is int and 0 <= n < 2**40 for n in shape):
        raise DataError(f"{where}: an array's shape does not belong here: get the file again.")
    size = math.prod(shape) * dtype.itemsize
    if size != len(raw) or size > _MAX_BYTES:
        raise DataError(f"{where}: an array declares {size} bytes but holds {len(raw)}: get the file again.")
    array = np.frombuffer(raw, dtype).reshape(shape, order="F" if fortran else "C")
    return array.astype(dtype.newbyteorder("="), copy=False)


def to_csr(made: Any, where: str) -> SparseFeatures:
    """The sparse matrix that a pickle describes, checked and in canonical form."""
    if not isinstance(made, Made) or made.of != CSR or not isinstance(made.state, dict):
        raise DataError(f"{where}: does not hold a sparse matrix: get the file again.")
    state = {key.decode("latin-1") if isinstance(key, bytes) else key: value for key, value in made.state.items()}
    shape = state.get("_shape")
    if not isinstance(shape, tuple) or len(shape) != 2 or not all(type(n) is int for n in shape):
        raise DataError(f"{where}: its matrix has no shape: get the file again.")
    indptr, indices, values = (to_array(state.get(part), where) for part in ("indptr", "indices", "data"))
    return checked_csr(indptr, indices, values, shape, where)


def _dtype(made: Made, where: str) -> np.dtype[Any]:
    match made.args, made.state:
        case (bytes() as code, *_), (int(), b"<" | b">" | b"|" | b"=" as order, *rest):
            if made.of == DTYPE and code in _TYPES and all(part in (None, -1, 0) for part in rest):
                dtype: np.dtype[Any] = np.dtype((order + code).decode("ascii"))
                return dtype
    raise DataError(f"{where}: an array is not of plain numbers: get the file again.")
