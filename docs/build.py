"""Write everything in the pages that is computed: tables, the output of their code, pictures. ``make pages`` runs it.

``python docs/build.py`` writes the tables and pictures, which come from ``results/`` and need no training;
``--outputs`` also runs the code of the pages and writes what it prints, which takes some minutes.
"""

import argparse
import tempfile
from pathlib import Path

from building.blocks import Block
from building.notebook import notebook

NOTEBOOK = "tutorial.md"
ROOT = Path(__file__).resolve().parents[1]


def pages() -> list[Path]:
    """The pages with computed regions."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def python(block: Block) -> bool:
    """The README's other blocks install the package, or use files that a reader has."""
    return block.language == "python"


def every(_: Block) -> bool:
    """All blocks of a page are followed."""
    return True


def main() -> None:
    """Write what differs, and name it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--outputs", action="store_true", help="run the pages' code and write what it prints")
    parser.add_argument("pages", nargs="*", type=Path, help="only these, without pictures")
    chosen = parser.parse_args()

    from building.blocks import with_outputs
    from building.following import follow
    from building.pictures import FOLDER, pictures
    from building.regions import filled
    from building.tables import region
    from propreg.store.results import load_results

    results = load_results(ROOT / "results")
    for page in chosen.pages or pages():
        text = filled(page.read_text(encoding="utf-8"), lambda name: region(name, results))
        if chosen.outputs:
            only = python if page.name == "README.md" else every
            with tempfile.TemporaryDirectory() as folder:
                text = with_outputs(text, follow(page.resolve(), Path(folder), ROOT / "results", only))
        _write(page, text.encode())
        if page.name == NOTEBOOK:
            _write(page.with_suffix(".ipynb"), notebook(text).encode())
    if not chosen.pages:
        for name, drawn in pictures(results):
            _write(FOLDER / name, drawn)


def _write(path: Path, content: bytes) -> None:
    if not path.exists() or path.read_bytes() != content:
        path.write_bytes(content)
        print(f"wrote {path}")


if __name__ == "__main__":
    main()
