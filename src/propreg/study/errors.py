"""What the study raises, and the sentence for a name that is not known."""

import difflib
from collections.abc import Iterable


class StudyError(ValueError):
    """Something of a study that cannot be used as it is: the message says what, and what fixes it."""


class UsageError(StudyError):
    """An option whose value cannot be meant: the command line is wrong, not the study."""


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
