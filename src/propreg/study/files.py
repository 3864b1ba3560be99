"""The files that hold runs, by their names and first bytes: stores, exports, and what lies beside an export."""

from pathlib import Path

from propreg.study.errors import StudyError

ENDS = (".jsonl.gz", ".jsonl")
BESIDE = ".provenance.json"
STORES = (".sqlite", ".db")


def is_store(path: Path) -> bool:
    """Whether a file is SQLite's, by its first bytes; an empty one is a store without runs if it is called one."""
    try:
        with path.open("rb") as file:
            head = file.read(16)
    except OSError as error:
        raise StudyError(f"{path} cannot be read: {error.strerror or error}.") from error
    return head == b"SQLite format 3\x00" or (not head and path.suffix in STORES)


def sidecar(path: Path) -> Path:
    """The file beside an export that says where and with what its runs were made.

    Example:
        >>> sidecar(Path("results/runs.jsonl.gz")).as_posix(), sidecar(Path("runs.a.jsonl")).as_posix()
        ('results/runs.provenance.json', 'runs.a.provenance.json')
    """
    end = next((end for end in ENDS if path.name.endswith(end)), "")
    return path.with_name(path.name.removesuffix(end) + BESIDE)


def export_files(folder: Path) -> list[Path]:
    """The exports in a folder, sorted; hidden files are half-written ones, or notes that a system makes of them."""
    return sorted(file for file in folder.glob("*.jsonl*") if file.name.endswith(ENDS) and file.name[0] != ".")


def record_files(path: Path) -> list[Path]:
    """The files of a record: the exports in a folder, or the one that is named."""
    return export_files(path) if path.is_dir() else [path]
