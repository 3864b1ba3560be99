"""Pickles read as plain data: nothing is imported, nothing is called.

Python's own unpickler builds objects by calling what the file names. Here a name is only compared with a list of
allowed ones, and a call becomes a :class:`Made` record of what was to be called with what; the readers then build
NumPy arrays from such records themselves. Protocols 0 to 2 are understood: those the benchmark files use.
"""

import codecs
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from propreg.data.errors import DataError

_MAX_LINE = 1 << 16
_MARK = object()


@dataclass(frozen=True)
class Global:
    """A class or function, by name only."""

    module: str
    name: str


@dataclass(eq=False)
class Made:
    """What a call would have made: the callee, its arguments, the state set afterwards, and the items put in."""

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
        where: What to call it in an error.
        allow: Whether the global (module, name) may occur.
        start: Where the pickle begins.
        max_opcodes: The most instructions it may have.

    Returns:
        The value, and where the pickle ended.

    Raises:
        DataError: If it is damaged, too long, or names anything that is not allowed.

    Example:
        >>> import pickle
        >>> load_pickle(pickle.dumps({"a": [1, 2]}, 2), "a file", lambda module, name: False)[0]
        {'a': [1, 2]}
        >>> load_pickle(b"cos\\nsystem\\n(S'true'\\ntR.", "a file", lambda module, name: False)
        Traceback (most recent call last):
        ...
        propreg.data.errors.DataError: a file: names os.system, which this kind of file has no use for: ...
    """
    machine = _Machine(data, where, allow, start)
    try:
        return machine.run(max_opcodes), machine.place
    except (IndexError, ValueError, struct.error, TypeError, KeyError, AttributeError, OverflowError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{where}: its pickle is damaged at byte {machine.place}: get the file again.") from error


class _Machine:
    def __init__(self, data: bytes, where: str, allow: Callable[[str, str], bool], start: int) -> None:
        self.data, self.where, self.allow, self.place = data, where, allow, start
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    def run(self, max_opcodes: int) -> Any:
        data, stack = self.data, self.stack
        for _ in range(max_opcodes):
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
        raise DataError(f"{self.where}: has more than {max_opcodes} pickle instructions: it is not what it should be.")

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
        self.push(Made(of, args))

    def build(self) -> None:
        state = self.pop()
        if not isinstance(self.stack[-1], Made):
            raise ValueError("state for something else")
        self.stack[-1].state = state

    def extend(self, items: list[Any]) -> None:
        target = self.stack[-1]
        if type(target) is not list:
            raise ValueError("items for something else than a list")
        target.extend(items)

    def update(self, items: list[Any]) -> None:
        target = self.stack[-1]
        target = target.items if isinstance(target, Made) else target
        if type(target) is not dict:
            raise ValueError("items for something else than a dictionary")
        target.update(_pairs(items))

    def tuple_(self, count: int) -> None:
        values = [self.pop() for _ in range(count)]
        self.push(tuple(reversed(values)))

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


_NUMBERS = {ord("K"): struct.Struct("<B"), ord("M"): struct.Struct("<H"), ord("J"): struct.Struct("<i"),
            ord("G"): struct.Struct(">d")}  # fmt: skip
_DO: dict[int, Callable[[_Machine], None]] = {
    0x80: lambda m: None if m.take(1)[0] <= 2 else m.pop(),  # PROTO
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
    ord("t"): lambda m: m.push(tuple(m.to_mark())),
    0x85: lambda m: m.tuple_(1),
    0x86: lambda m: m.tuple_(2),
    0x87: lambda m: m.tuple_(3),
    ord("]"): lambda m: m.push([]),
    ord("l"): lambda m: m.push(m.to_mark()),
    ord("a"): lambda m: m.extend([m.pop()]),
    ord("e"): lambda m: m.extend(m.to_mark()),
    ord("}"): lambda m: m.push({}),
    ord("d"): lambda m: m.push(_pairs(m.to_mark())),
    ord("s"): lambda m: m.update([m.pop(), m.pop()][::-1]),
    ord("u"): lambda m: m.update(m.to_mark()),
    ord("c"): _Machine.global_,
    ord("R"): _Machine.call,
    0x81: _Machine.call,  # NEWOBJ
    ord("b"): _Machine.build,
    ord("Q"): lambda m: m.push(Persistent(m.pop())),
    ord("p"): lambda m: m.put(_number(m.line())),
    ord("q"): lambda m: m.put(m.take(1)[0]),
    ord("r"): lambda m: m.put(int.from_bytes(m.take(4), "little")),
    ord("g"): lambda m: m.get(_number(m.line())),
    ord("h"): lambda m: m.get(m.take(1)[0]),
    ord("j"): lambda m: m.get(int.from_bytes(m.take(4), "little")),
}
