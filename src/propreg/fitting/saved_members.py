"""What the files of saved models have in common: a format's name, text, and a checksum over all members."""

import re
from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from propreg.data.errors import DataError
from propreg.data.own_npz import members_digest

MODEL, STATE = "propreg-model-1", "propreg-state-1"  # one of ours, built from the file; a module of the user's own
BESIDE = ("format", "settings", "sha256")


def format_of(arrays: Mapping[str, NDArray[Any]], where: str) -> str:
    """The format that the members name, once it is known and their checksum holds."""
    form = text(arrays, "format", where)
    if form not in (MODEL, STATE):
        for known in (MODEL, STATE):
            if re.fullmatch(rf"{known.removesuffix('1')}[0-9]{{1,6}}", form):
                raise DataError(f"{where}: has format {form!r}, which is newer than {known!r}: update propreg.")
        raise _no_model(where)
    if text(arrays, "sha256", where) != members_digest(arrays):
        raise DataError(f"{where}: its content does not have the SHA-256 that it names: copy or save it again.")
    return form


def text(arrays: Mapping[str, NDArray[Any]], member: str, where: str) -> str:
    """A member that is text."""
    if member not in arrays or arrays[member].dtype.kind != "U" or arrays[member].ndim:
        raise _no_model(where)
    return str(arrays[member][()])


def _no_model(where: str) -> DataError:
    return DataError(f"{where}: is no model that propreg saved: give a file that FitResult.save wrote.")
