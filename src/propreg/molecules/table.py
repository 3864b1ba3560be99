"""A table of molecules: a CSV file with a column of SMILES and columns of targets."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from propreg.data.benchmarks.molecules import Molecules
from propreg.data.errors import DataError
from propreg.data.formats.csv import check_width, header, number, records
from propreg.data.formats.files import open_regular
from propreg.data.graph_list import GraphList, Parts, of_molecules
from propreg.molecules.smiles import read_molecule, read_smiles, scaffold_split, scaffolds

_MISSING = ("", "nan", "na", "none", "null")


@dataclass(frozen=True, eq=False)
class Table:
    """The rows of a file; ``lines`` are their numbers in it, and ``where`` is what errors call it."""

    smiles: tuple[str, ...]
    y: NDArray[np.float32]
    targets: tuple[str, ...]
    lines: tuple[int, ...]
    where: str = "smiles"

    @property
    def labeled(self) -> NDArray[np.int64]:
        """The rows with a label or several."""
        return np.flatnonzero(~np.isnan(self.y).all(axis=1))

    def scaffold_split(self) -> Parts:
        """OGB's split of the labeled rows.

        Raises:
            DataError: If a part is empty: there are too few scaffolds.
        """
        rows = self.labeled
        split = {part: rows[chosen] for part, chosen in scaffold_split([self.smiles[i] for i in rows]).items()}
        if empty := [part for part, chosen in split.items() if not len(chosen)]:
            raise DataError(
                f"{self.where}: the scaffold split leaves no molecule for the {empty[0]} part: there are too few "
                "scaffolds; use random splits, like --splits 6 or splits=6."
            )
        return split

    def scaffolds(self) -> list[str]:
        """The scaffold of each row: the ``groups`` of :func:`propreg.fit_graphs`."""
        return scaffolds(self.smiles)

    def graphs(self) -> GraphList:
        """The molecules with OGB's features, for :func:`propreg.fit_graphs`: targets of 0 and 1 are questions.

        Raises:
            DataError: If RDKit cannot read a SMILES; the message names its line.
        """
        known = self.y[~np.isnan(self.y)]
        kind = "binary classification" if known.size and np.isin(known, (0, 1)).all() else "regression"
        return replace(of_molecules(self.molecules()), kind=kind, split={})

    def molecules(self) -> Molecules:
        """The same as a dataset, without a split."""
        parts = dict.fromkeys(("train", "valid", "test"), np.zeros(0, np.int64))
        return read_smiles(self.smiles, self.y, self.targets, parts, self.where, lines=self.lines)

    def readable(self) -> "tuple[Table, dict[int, str]]":
        """The rows that RDKit reads; for each other line, a sentence."""
        problems = {}
        for line, text in zip(self.lines, self.smiles, strict=True):
            try:
                read_molecule(text, f"line {line}", self.where)
            except DataError as error:
                problems[line] = str(error)
        rows = [row for row, line in enumerate(self.lines) if line not in problems]
        smiles, lines = (tuple(values[row] for row in rows) for values in (self.smiles, self.lines))
        return replace(self, smiles=smiles, lines=lines, y=self.y[rows]), problems  # type: ignore[arg-type]


def read_table(
    path: str | os.PathLike[str], smiles_column: str = "smiles", targets: Sequence[str] = (), *, labeled: bool = True
) -> Table:
    """Read a CSV file with a header line; an empty target is a missing label.

    Args:
        path: The file.
        smiles_column: The name of the column of SMILES.
        targets: The names of the columns to learn.
        labeled: Whether there must be a target.

    Raises:
        DataError: If a column is missing, a target is text, or there is no row; the message names file and line.

    Example:
        >>> import tempfile, pathlib
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder) / "a.csv"
        ...     _ = path.write_text("smiles,active\\nCCO,1\\nc1ccccc1,\\n")
        ...     table = read_table(path, targets=["active"])
        >>> table.smiles, table.y[:, 0].tolist()
        (('CCO', 'c1ccccc1'), [1.0, nan])
    """
    where = str(path)
    smiles: list[str] = []
    rows: list[list[float]] = []
    lines: list[int] = []
    with open_regular(path) as file:
        read = records(file, where)
        first = next(read, None)
        if first is None:
            raise DataError(f"{where}: is empty: give a header line, and a line for each molecule.")
        names = header(first[1], (), where)
        places = _places(names, smiles_column, targets, where, labeled=labeled)
        for line, row in read:
            at = f"{where}, line {line}"
            check_width(row, len(names), at)
            smiles.append(row[names.index(smiles_column)].strip())
            cells = [(name, row[place]) for name, place in zip(targets, places, strict=True)]
            rows.append([_target(cell, name, at) for name, cell in cells])
            lines.append(line)
    if not smiles:
        raise DataError(f"{where}: has a header and no molecule: give a line for each.")
    y = np.array(rows, np.float32).reshape(len(rows), len(targets))
    return Table(tuple(smiles), y, tuple(targets), tuple(lines), where)


def _places(names: list[str], smiles_column: str, targets: Sequence[str], where: str, *, labeled: bool) -> list[int]:
    if smiles_column not in names:
        listed = ", ".join(names)[:200]
        fix = f"its columns are {listed}; name it with --smiles-column"
        raise DataError(f"{where}: has no column {smiles_column!r}: {fix}.")
    others = ", ".join(name for name in names if name != smiles_column)[:200] or "(none)"
    if labeled and not targets:
        raise DataError(f"{where}: no target is named: give --target once or several times, of the columns {others}.")
    if lacks := [name for name in targets if name not in names or name == smiles_column]:
        raise DataError(f"{where}: has no column {lacks[0]!r} to learn: the columns are {others}.")
    if len(set(targets)) < len(targets):
        raise DataError(f"{where}: a target is named twice, of {', '.join(targets)}: leave one out.")
    return [names.index(name) for name in targets]


def _target(cell: str, name: str, where: str) -> float:
    return float("nan") if cell.strip().lower() in _MISSING else number(cell, f"target {name!r}", where)
