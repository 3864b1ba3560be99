"""A run as one JSON document, ``run.json``: the source of the page and the figures.

Version 1. Accuracies are fractions; ``val``, ``test`` and ``epochs`` are indexed [mu][split][seed], with null where a
run failed or was not finished. Reading one imports neither torch nor NumPy.

=============  ========================================================================================================
``format``     ``"propreg run"``; ``version``: 1; ``propreg``: the version that wrote it
``dataset``    the dataset's or graph's name
``graph``      ``nodes``, ``edges`` (linked pairs), ``features``, ``classes``, ``homophily`` (or null), ``isolated``
``model``      and ``method``, ``preset``, ``mus`` (0 first), ``splits`` (names), ``seeds`` (how many), ``mu`` (chosen)
``finished``   false where the run was interrupted, or ``training``, which is true on a page of ``--live`` and absent
               from files; ``device``; ``seconds``; ``settings`` of the training
``classes``    the classes' names
``models``     of several models, the best on validation first: ``title``, ``validation``, ``test`` (a
               :class:`propreg.statistics.Summary`), ``gain`` over its own plain model (a
               :class:`propreg.statistics.Difference` and ``units``); the record is of the first. Absent for one model
``notes``      sentences to know; the first is the verdict
``verdict``    ``kind``, ``sentence``, ``pair``: the numbers of :class:`propreg.fitting.verdict.Pair`, or null
``judging``    ``score`` and ``part``: what ``val`` and ``test`` hold, by default test accuracy; ``nested``: whether
               each fold picked its own strength. See :class:`propreg.fitting.verdict.Judging`
``histories``  ``plain`` and ``chosen``: a few runs of the same splits, each ``epoch``, ``loss``, ``val``, ``test``
``confusion``  ``plain`` and ``chosen``: [class][predicted], test nodes of all runs that both have; or null
``agreement``  ``labels``, ``plain`` and ``chosen``: the share of edges that join one class, as given and as predicted
``map``        of the judged nodes of one ``split``: ``node`` (ids), ``x``, ``y``, ``state`` (0 right in both models, 1
               fixed, 2 broken, 3 wrong in both), ``label``, ``plain``, ``chosen`` (classes); or null
``metrics``    by name (:data:`propreg.metrics.METRICS`) the numbers of a pair as in ``verdict``; of classes
``date``       of the run, UTC; ``versions`` of Python and packages
=============  ========================================================================================================
"""

import os
from pathlib import Path
from typing import Any

from propreg.data.errors import DataError
from propreg.data.formats.files import read_bytes
from propreg.jsonio import parse

FORMAT, VERSION = "propreg run", 1
MAX_BYTES = 64 << 20


def read_record(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a ``run.json``.

    Raises:
        DataError: If there is none, it is damaged, no record of a run, or of a newer propreg.
    """
    try:
        record = parse(read_bytes(Path(path), MAX_BYTES))
    except (ValueError, RecursionError) as error:
        if isinstance(error, DataError):
            raise
        why = "holds a number that is far too large" if "too large" in str(error) else "is not valid JSON"
        raise DataError(f"{path}: {why}: run propreg run again.") from error
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise DataError(f"{path}: is not a record of a run: give the folder that propreg run wrote.")
    if record.get("version") != VERSION:
        raise DataError(f"{path}: has version {record.get('version')!r:.20}, not {VERSION}: update propreg.")
    return record
