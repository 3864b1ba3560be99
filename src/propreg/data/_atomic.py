"""Writing a file so that its name never shows half of it."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from propreg.data.errors import DataError


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a temporary neighbour of ``path`` for writing; move it into place when the block ends well.

    Args:
        path: The file to make or replace.

    Yields:
        The binary file to write to. When the block raises, the temporary file is removed and what
        ``path`` held before stays.

    Raises:
        DataError: If the file cannot be written.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with atomic_write(f"{folder}/a.bin") as file:
        ...         _ = file.write(b"whole")
        ...     (Path(folder) / "a.bin").read_bytes(), len(os.listdir(folder))
        (b'whole', 1)
    """
    target = Path(path)
    # Not tempfile.mkstemp, whose files are private to the user whatever the umask says.
    temporary = target.with_name(f".{target.name[:100]}.{secrets.token_hex(6)}.tmp")
    try:
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
        _sync_folder(target.parent)
    except OSError as error:
        raise DataError(f"{target}: cannot be written: {error.strerror or error}.") from error
    finally:
        with suppress(OSError):  # gone already when all went well
            temporary.unlink()


def _sync_folder(folder: Path) -> None:
    """Make the new name itself survive a power cut, where the system lets a folder be opened."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
