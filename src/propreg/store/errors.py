"""The errors of store and study, and the sentence for an unknown name."""

from collections.abc import Iterable

from propreg._choices import no_such
from propreg.console import printable


class StudyError(ValueError):
    """Something of a store or a study that cannot be used as it is: the message names it and the fix.

    Paths and the content of files are in it, so control characters are replaced.
    """

    def __init__(self, message: str) -> None:
        super().__init__(printable(message))


class UsageError(StudyError):
    """An option with an impossible value: the command line is wrong, not the study."""


class NoRunError(StudyError):
    """No run of a key in a store or export: another one may have it."""


class Stopped(Exception):  # noqa: N818  (nothing is wrong)
    """Raised inside a training that was stopped."""


def unknown(kind: str, name: object, known: Iterable[str]) -> StudyError:
    """The error for an unknown name: it lists the known names and the nearest match.

    Example:
        >>> str(unknown("dataset", "cors", ["cora", "photo"]))
        "There is no dataset 'cors'. Did you mean 'cora'? Known are: cora, photo."
    """
    return StudyError(no_such(kind, name, known))


def check_one(found: int, path: object, key: str) -> None:
    """Refuse a key, or the beginning of one, that fits no run, or more than one.

    Raises:
        StudyError: If there is none, or more than one.
    """
    if found != 1:
        kind, many = (StudyError, "more than one run") if found else (NoRunError, "no run")
        raise kind(f"{path} has {many} whose key begins with {key!r}: propreg table --runs lists keys.")
