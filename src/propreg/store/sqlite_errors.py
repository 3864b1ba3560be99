"""What SQLite says of a store's file, as one sentence with the fix."""

import shlex
from pathlib import Path

from propreg.store.locks import network_of

_LONGEST = 200
_NO_TEXT = "a name or text in it is not UTF-8"
# Our statements never change: if a name in them is unknown, the file's schema is not what it was.
_SCHEMA = (
    "no such ",
    "ambiguous column",
    "Could not decode",
    "malformed",
    "foreign key mismatch",
    "unsupported file format",
    _NO_TEXT,
)


# What SQLite calls it when the file system refuses a lock, or memory that processes share.
_NO_LOCKS = (
    "SQLITE_PROTOCOL",
    "SQLITE_IOERR_LOCK",
    "SQLITE_IOERR_UNLOCK",
    "SQLITE_IOERR_RDLOCK",
    "SQLITE_IOERR_CHECKRESERVEDLOCK",
    "SQLITE_IOERR_SHMLOCK",
    "SQLITE_IOERR_SHMOPEN",
    "SQLITE_IOERR_SHMMAP",
)


def store_sentence(path: Path, error: Exception, busy_seconds: float) -> str:
    """The sentence for what sqlite3 raised on a file: the file, the reason, the fix.

    Example:
        >>> import sqlite3
        >>> print(store_sentence(Path("a.sqlite"), sqlite3.OperationalError("interrupted"), 60))
        a.sqlite: interrupted.
    """
    name, why = getattr(error, "sqlite_errorname", ""), _printable(error)
    if name == "SQLITE_FULL":
        return f"{path} cannot grow, the disk is full: free some space and run again; stored runs are kept."
    if name in _NO_LOCKS:
        kind = network_of(path)
        return (
            f"{path} cannot be locked ({why}): its file system{f' ({kind})' if kind else ''} has no locks that SQLite "
            "can use; keep the store on a local disk, name it with --store, and take its runs here with propreg store "
            f"merge and --store {shlex.quote(str(path))}."
        )
    if name.startswith("SQLITE_IOERR"):  # also a full disk, where a file beside the store cannot grow
        return (
            f"{path} cannot be read or written, the disk is full or fails ({why}): free some space, or check the disk, "
            "and run again; stored runs are kept."
        )
    if name.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT")) or why.startswith(_SCHEMA):
        return (
            f"{path} is damaged or no SQLite file ({why}): it was left as it is; put a copy in its place, or name "
            "another file with --store and import an export."
        )
    if name.startswith("SQLITE_BUSY"):
        return (
            f"{path} has been locked by another process for {busy_seconds:.0f} s: run again when that process is done."
        )
    no_rights = name.startswith(("SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_PERM"))
    return (
        f"{path} cannot be written or opened ({why}): check its folder and permissions."
        if no_rights
        else f"{path}: {why}."
    )


def _printable(error: Exception) -> str:
    """Its text on one line: what is quoted from a damaged file may hold anything."""
    if isinstance(error, UnicodeDecodeError):
        return _NO_TEXT
    return clipped("".join(sign if sign.isprintable() else "?" for sign in str(error)))


def clipped(text: str) -> str:
    """The beginning of what SQLite says of a damaged file, of which it may quote the whole schema."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
