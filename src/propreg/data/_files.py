"""Reading a small file whole."""

import os
from pathlib import Path

from propreg.data._npy import open_regular
from propreg.data.errors import DataError


def read_bytes(path: Path, max_bytes: int) -> bytes:
    """The content of an ordinary file of at most ``max_bytes``.

    Raises:
        DataError: If it is missing, larger, or cannot be read.
    """
    with open_regular(path) as file:
        try:
            # Asked before reading: read(n) takes n bytes of memory however small the file is.
            size = os.fstat(file.fileno()).st_size
            if size > max_bytes:
                raise DataError(f"{path}: has {size} bytes, more than {max_bytes}: it is not the file it should be.")
            return file.read(size)
        except OSError as error:
            raise DataError(f"{path}: cannot be read: {error.strerror or error}.") from error
