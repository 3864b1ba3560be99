"""Entries by name: everything that the program knows of an architecture or of a regularizer."""

from collections.abc import Iterable
from typing import NoReturn, Protocol, TypeVar

from propreg import _choices


class Named(Protocol):
    """An entry."""

    @property
    def name(self) -> str:
        """The name that users write."""
        ...


Entry = TypeVar("Entry", bound=Named)


class Registry(dict[str, Entry]):
    """A dict of entries by name; an unknown name raises, listing the known ones and the nearest match.

    Args:
        kind: The kind of entry, for the error: ``"model"``.
        entries: The entries.

    Example:
        >>> from propreg.engine.models import MODELS
        >>> MODELS["gat"].title
        'GAT'
        >>> MODELS["gnn"]
        Traceback (most recent call last):
        ...
        ValueError: model must be one of 'gcn', 'gat', 'mlp', 'appnp', got 'gnn'. Did you mean 'gcn'?
    """

    def __init__(self, kind: str, entries: Iterable[Entry]) -> None:
        super().__init__((entry.name, entry) for entry in entries)
        self.kind = kind

    def __missing__(self, name: str) -> NoReturn:
        raise _choices.unknown(self.kind, name, self)
