"""Checks of numbers among settings: each raises one sentence with the setting's name and what it got."""

from __future__ import annotations

from numbers import Integral, Real


def check_whole(settings: object, *names: str, least: int = 1) -> None:
    """Raise unless they are whole numbers of at least so much."""
    for name in names:
        value = getattr(settings, name)
        if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
            raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}.")


def check_share(settings: object, *names: str) -> None:
    """Raise unless they lie between 0 and 1."""
    for name in names:
        value = getattr(settings, name)
        if not isinstance(value, Real) or not 0 <= float(value) <= 1:
            raise ValueError(f"{name} must lie between 0 and 1, got {value!r}.")


def check_at_least_0(settings: object, *names: str) -> None:
    """Raise for what is below 0 or no number."""
    for name in names:
        value = getattr(settings, name)
        if not isinstance(value, Real) or not float(value) >= 0:
            raise ValueError(f"{name} must be a number of at least 0, got {value!r}.")


def check_above_0(settings: object, *names: str) -> None:
    """Raise for what is 0, below 0 or no number."""
    for name in names:
        value = getattr(settings, name)
        if not isinstance(value, Real) or not float(value) > 0:
            raise ValueError(f"{name} must be above 0, got {value!r}.")
