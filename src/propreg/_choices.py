"""The error for an unknown name: it lists the known names and the nearest match."""

import difflib
from collections.abc import Iterable


def one_of(name: str, value: object, allowed: Iterable[str], extra: str = "") -> None:
    """Raise if the value is unknown.

    Example:
        >>> one_of("norm", "symm", ("rw", "sym"))
        Traceback (most recent call last):
        ...
        ValueError: norm must be one of 'rw', 'sym', got 'symm'. Did you mean 'sym'?
    """
    known = list(allowed)
    if not isinstance(value, str) or value not in known:
        raise unknown(name, value, known, extra)


def unknown(name: str, value: object, allowed: Iterable[str], extra: str = "") -> ValueError | TypeError:
    """The error; ``extra`` is what else would be accepted."""
    known = list(allowed)
    listed = ", ".join(repr(k) for k in known)
    kind = ValueError if isinstance(value, str) else TypeError
    return kind(f"{name} must be one of {listed}{extra}, got {value!r}.{_hint(value, known)}")


def no_such(kind: str, name: object, known: Iterable[str]) -> str:
    """The sentence for a name of something that does not exist.

    Example:
        >>> no_such("dataset", "cors", ["cora", "photo"])
        "There is no dataset 'cors'. Did you mean 'cora'? Known are: cora, photo."
    """
    names = list(known)
    shown = (repr(each) if "," in each or not each else each for each in names)
    return f"There is no {kind} {name!r}.{_hint(name, names, 0.5)} Known are: {', '.join(shown)}."


def _hint(value: object, known: list[str], likeness: float = 0.4) -> str:
    near = difflib.get_close_matches(value, known, n=1, cutoff=likeness) if isinstance(value, str) else []
    return f" Did you mean {near[0]!r}?" if near else ""
