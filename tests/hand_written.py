"""Exports with any text in them, whose digests and SHA-256 fit all the same: what is wrong is inside."""

import base64
import hashlib
import json
from pathlib import Path

from propreg.store.rows import row_digests

HEAD = '{"format":"propreg runs","version":3}'


def write_lines(path: Path, *lines: tuple[str, str], head: str = HEAD) -> Path:
    """An export of these cells and their rows, both as text."""
    body = "".join(f"{line}\n" for line in [head, *(_line(*each) for each in lines)])
    path.write_text(f'{body}{{"runs":0,"sha256":"{hashlib.sha256(body.encode()).hexdigest()}"}}\n')
    return path


def _line(cell: str, runs: str) -> str:
    try:
        digests = b"".join(row_digests(cell, json.loads(runs)))
    except (ValueError, TypeError, RecursionError):  # these are no rows, and have no digests
        digests = b""
    return f'{{"cell":{cell},"runs":{runs},"digests":"{base64.b64encode(digests).decode()}"}}'
