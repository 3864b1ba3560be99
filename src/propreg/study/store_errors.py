"""What goes wrong with a store's file, in one sentence that names the file and the fix."""

from pathlib import Path

_NO_TEXT = "a name or text in it is not UTF-8"
# Our statements never change: when a name in them is not there, the file's schema is not what it was.
_SCHEMA = (
    "no such ",
    "ambiguous column",
    "Could not decode",
    "malformed",
    "foreign key mismatch",
    "unsupported file format",
    _NO_TEXT,
)


def store_sentence(path: Path, error: Exception, busy_seconds: float) -> str:
    """The sentence for what sqlite3 raised on a file.

    Example:
        >>> import sqlite3
        >>> print(store_sentence(Path("a.sqlite"), sqlite3.OperationalError("interrupted"), 60))
        a.sqlite: interrupted.
    """
    name, why = getattr(error, "sqlite_errorname", ""), _printable(error)
    if name == "SQLITE_FULL":
        return f"{path} cannot grow, the disk is full: free some space and run again; what was stored is kept."
    if name.startswith("SQLITE_IOERR"):  # a full disk, too, where a file beside the store cannot grow
        return (
            f"{path} cannot be read or written, the disk is full or fails ({why}): free some space, or see that the "
            "disk is in order, and run again; what was stored is kept."
        )
    if name.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT")) or why.startswith(_SCHEMA):
        return (
            f"{path} is damaged or no SQLite file ({why}): it was left as it is; put a copy in its place, or name "
            "another file with --store and import an export."
        )
    if name.startswith("SQLITE_BUSY"):
        return f"{path} has been locked by another process for {busy_seconds:.0f} s: run again when that one is done."
    if name.startswith(("SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_PERM")):
        return f"{path} cannot be written or opened ({why}): look at its folder and permissions."
    return f"{path}: {why}."


def _printable(error: Exception) -> str:
    """Its text on one line: what is quoted from a damaged file may hold anything."""
    if isinstance(error, UnicodeDecodeError):
        return _NO_TEXT
    return "".join(sign if sign.isprintable() else "?" for sign in str(error))
