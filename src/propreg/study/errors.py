"""What the study raises, and the sentence for a name that is not known."""

import difflib
from collections.abc import Iterable


class StudyError(ValueError):
    """Something of a study that cannot be used as it is: the message says what, and what fixes it."""


class UsageError(StudyError):
    """An option whose value cannot be meant: the command line is wrong, not the study."""


class NoRunError(StudyError):
    """No run of a key in a place: another may have it."""


class Stopped(Exception):  # noqa: N818  (nothing is wrong)
    """Raised inside a training that was asked to stop."""


def unknown(kind: str, name: object, known: Iterable[str]) -> StudyError:
    """The error for a name that is not known: it lists the known ones and the nearest.

    Example:
        >>> str(unknown("dataset", "cors", ["cora", "photo"]))
        "There is no dataset 'cors'. Did you mean 'cora'? Known are: cora, photo."
    """
    listed = list(known)
    near = difflib.get_close_matches(name, listed, n=1, cutoff=0.5) if isinstance(name, str) else []
    hint = f" Did you mean {near[0]!r}?" if near else ""
    shown = (repr(each) if "," in each or not each else each for each in listed)
    return StudyError(f"There is no {kind} {name!r}.{hint} Known are: {', '.join(shown)}.")


def check_one(found: int, place: object, key: str) -> None:
    """Refuse a key, or the beginning of one, that is not that of exactly one run.

    Raises:
        StudyError: If there is none, or more than one.
    """
    if found != 1:
        kind, many = (StudyError, "more than one run") if found else (NoRunError, "no run")
        raise kind(f"{place} has {many} whose key begins with {key!r}: propreg table --runs lists keys.")
