"""Numbers as callers give them: Python's or NumPy's, checked in one sentence each and made Python's."""

import math
import numbers
from dataclasses import fields, replace
from typing import Any

import numpy as np

from propreg.engine.spec import Model


def whole(name: str, value: Any, least: int, fix: str = "") -> int:
    """A whole number.

    Example:
        >>> whole("seeds", np.int64(3), 1)
        3
        >>> whole("seeds", 1.5, 1)
        Traceback (most recent call last):
        ...
        ValueError: seeds must be a whole number of at least 1, but 1.5 came.
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, but {value!r} came{fix}.")
    return int(value)


def number(name: str, value: Any) -> float:
    """A finite number of at least 0.

    Example:
        >>> number("lr", np.float64(0.5))
        0.5
        >>> number("lr", "0.1")
        Traceback (most recent call last):
        ...
        ValueError: lr must be a finite number of at least 0, but '0.1' came.
    """
    real = isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)
    if not real or not math.isfinite(value) or value < 0:
        raise ValueError(f"{name} must be a finite number of at least 0, but {value!r} came.")
    return float(value)


def in_python(model: Model) -> Model:
    """The same settings without NumPy's numbers, which neither a run's identity nor a saved file can hold.

    Example:
        >>> type(in_python(Model(hidden=np.int64(8))).hidden)
        <class 'int'>
    """
    given = {field.name: getattr(model, field.name) for field in fields(model)}
    return replace(model, **{name: v.item() for name, v in given.items() if isinstance(v, np.number)})
