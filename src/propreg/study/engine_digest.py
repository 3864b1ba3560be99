"""Which code trained: a digest of the engine's sources, noted with every session."""

import hashlib
from pathlib import Path

import propreg.engine


def engine_digest(folder: Path | None = None) -> str:
    """16 hexadecimal digits of the names and contents of all Python files of the engine, sorted by name.

    Args:
        folder: Where they are; the installed engine's where left out.

    Example:
        >>> len(engine_digest())
        16
    """
    root = folder or Path(propreg.engine.__file__).parent
    found = hashlib.sha256()
    for name, file in sorted((file.relative_to(root).as_posix(), file) for file in root.rglob("*.py")):
        content = file.read_bytes()
        found.update(f"{name}\n{len(content)}\n".encode() + content)  # with lengths, no two folders read the same
    return found.hexdigest()[:16]
