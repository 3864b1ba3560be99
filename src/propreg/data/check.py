"""Comparing what was read with what the catalogue knows."""

import warnings
from collections.abc import Mapping

from propreg.data.catalog import Part
from propreg.data.errors import DataError

_warned: set[tuple[str, str, str]] = set()


class DataWarning(UserWarning):
    """Data that can be used, but of which it is not known whether they are the publisher's."""


def check_parts(name: str, digests: Mapping[str, str], parts: Mapping[str, Part], where: str) -> None:
    """Refuse wrong content in enforced parts; warn once about content of others that is not listed.

    Args:
        name: The dataset.
        digests: Part → digest of what was read.
        parts: Part → what is accepted.
        where: The file, for the message.

    Raises:
        DataError: If an enforced part has another digest.

    Example:
        >>> check_parts("cora", {"labels": "ab"}, {"labels": Part(("cd",), True)}, "cora.npz")
        Traceback (most recent call last):
        ...
        propreg.data.errors.DataError: cora.npz: the labels are not those of cora (SHA-256 ab, but cd is known):
        the file is damaged or another version; remove it and run: propreg data fetch cora.
    """
    for part, digest in digests.items():
        if part not in parts or digest in parts[part].accepted:
            continue
        known = " or ".join(accepted[:16] for accepted in parts[part].accepted)
        if parts[part].enforced:
            raise DataError(
                f"{where}: the {part.replace('_', ' ')} are not those of {name} (SHA-256 {digest[:16]}, but {known} is "
                f"known): the file is damaged or another version; remove it and run: propreg data fetch {name}."
            )
        if (name, part, digest) not in _warned:
            _warned.add((name, part, digest))
            warnings.warn(
                f"{where}: the {part.replace('_', ' ')} of {name} (SHA-256 {digest[:16]}) are not a version that "
                f"propreg knows ({known}): results may differ a little from those published with it.",
                DataWarning,
                stacklevel=2,
            )


def check_counts(name: str, found: Mapping[str, int], expected: Mapping[str, int], where: str) -> None:
    """Refuse data that do not have the published counts.

    Example:
        >>> check_counts("cora", {"nodes": 2707}, {"nodes": 2708}, "cora.npz")
        Traceback (most recent call last):
        ...
        propreg.data.errors.DataError: cora.npz: cora has 2708 nodes, but 2707 were read: the file is damaged or ...
    """
    for what, number in found.items():
        if number != expected[what]:
            raise DataError(
                f"{where}: {name} has {expected[what]} {what}, but {number} were read: the file is damaged or another "
                f"version; remove it and run: propreg data fetch {name}."
            )
