"""Names imported on first use (PEP 562), so that importing a package costs nothing; packages that may be missing."""

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any


class MissingPackageError(ModuleNotFoundError):
    """An optional package is not installed: the message names the command that installs it."""


def lazy(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package; ``homes`` maps each name to its module.

    Example:
        >>> get = lazy("propreg", {"__version__": "_version_of_nothing"})
        >>> get("unknown")
        Traceback (most recent call last):
        ...
        AttributeError: module 'propreg' has no attribute 'unknown'
    """

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(f"{package}.{homes[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return get
