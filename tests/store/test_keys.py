"""The keys of the recorded runs: a changed one would orphan its run."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

from propreg.store.export import read_texts, rows_of
from propreg.store.run import Cell, Run

RECORD = Path(__file__).parents[2] / "results" / "runs.jsonl.gz"
# The SHA-256 of all keys, sorted, by the code that recorded them. When runs are added to the record, compute it again,
# with the commit before.
KEYS = "1a64836d4c9894f74ae7bbd582947aea0be2befaab5801084fa66b0cc6091c85"


def _runs() -> Iterator[tuple[str, int, int]]:
    for text in read_texts(RECORD):
        for split, seed, *_ in rows_of(text, RECORD):
            yield text.cell, split, seed


def test_every_recorded_cell_is_written_as_it_was() -> None:
    """The text of a cell is all of its runs' keys but split and seed."""
    texts = {text.cell for text in read_texts(RECORD)}
    assert len(texts) > 2_000
    assert {text for text in texts if Cell.from_text(text).text != text} == set()


def test_every_recorded_run_has_its_key() -> None:
    cells = {text.cell: Cell.from_text(text.cell) for text in read_texts(RECORD)}
    keys = sorted(Run(cells[text], split, seed).key for text, split, seed in _runs())
    assert len(keys) == len(set(keys)) == 141_891
    assert hashlib.sha256("".join(keys).encode()).hexdigest() == KEYS
