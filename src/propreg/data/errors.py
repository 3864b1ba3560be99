"""The one exception of the data package."""

from propreg.console import printable


class DataError(ValueError):
    """Data that cannot be used. The message names the file, the problem and the fix.

    Paths, names in files and the words of servers are in it, so control characters are replaced.
    """

    def __init__(self, message: str) -> None:
        super().__init__(printable(message))
