"""Entries by name: everything that the program knows of an architecture or of a regularizer."""

from collections.abc import Iterable, Iterator, MutableMapping
from importlib import import_module
from typing import Any, Protocol, TypeVar

from propreg import _choices


class Named(Protocol):
    """An entry."""

    @property
    def name(self) -> str:
        """The name that users write."""
        ...


Entry = TypeVar("Entry", bound=Named)


class Registry(MutableMapping[str, Entry]):
    """Entries by name; an unknown name raises, listing the known ones and the nearest match.

    Args:
        kind: The kind of entry, for the error: ``"model"``.
        entries: The entries.
        more: A module whose ``ENTRIES`` are added on first use: those of a package above this one, which imports it.

    Example:
        >>> from propreg.engine.models import MODELS
        >>> MODELS["gcn"].title
        'GCN'
        >>> MODELS["gcnn"]
        Traceback (most recent call last):
            ...
        ValueError: model must be one of 'gcn', 'gat', ..., got 'gcnn'. Did you mean 'gcn'?
    """

    def __init__(self, kind: str, entries: Iterable[Entry], more: str = "") -> None:
        self._entries = {entry.name: entry for entry in entries}
        self._unlisted: dict[str, Entry] = {}
        self.kind, self._more = kind, more

    def _all(self) -> dict[str, Entry]:
        if self._more:
            module, self._more = self._more, ""  # first: that module's own imports may look a name up
            self._entries |= {entry.name: entry for entry in import_module(module).ENTRIES}
        return self._entries

    def add_unlisted(self, entry: Entry) -> None:
        """Add an entry that is found by its name and listed nowhere: what a user passes, like a function."""
        self._unlisted[entry.name] = entry

    def __getitem__(self, name: str) -> Entry:
        if name in self._unlisted:
            return self._unlisted[name]
        if name not in self._all():
            raise _choices.unknown(self.kind, name, self)
        return self._all()[name]

    def __contains__(self, name: object) -> bool:
        return name in self._unlisted or name in self._all()

    def get(self, name: str, default: Any = None) -> Any:
        """The entry of that name, or the default."""
        return self._unlisted.get(name) or self._all().get(name, default)

    def __setitem__(self, name: str, entry: Entry) -> None:
        self._all()[name] = entry

    def __delitem__(self, name: str) -> None:
        del self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())
