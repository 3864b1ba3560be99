"""Molecules from SMILES, with OGB's features and scaffold split. Needs RDKit (``pip install 'propreg[molecules]'``)."""

import importlib
import importlib.util
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from propreg._lazy import MissingPackageError
from propreg.data.benchmarks.molecules import Molecules
from propreg.data.errors import DataError

# OGB's features: the position of a value in its list; what is not listed is the last one.
_ATOM_LISTS: tuple[tuple[str, Sequence[object]], ...] = (
    ("GetAtomicNum", (*range(1, 119), "misc")),
    ("GetChiralTag", ("CHI_UNSPECIFIED", "CHI_TETRAHEDRAL_CW", "CHI_TETRAHEDRAL_CCW", "CHI_OTHER", "misc")),
    ("GetTotalDegree", (*range(11), "misc")),
    ("GetFormalCharge", (*range(-5, 6), "misc")),
    ("GetTotalNumHs", (*range(9), "misc")),
    ("GetNumRadicalElectrons", (*range(5), "misc")),
    ("GetHybridization", ("SP", "SP2", "SP3", "SP3D", "SP3D2", "misc")),
    ("GetIsAromatic", (False, True)),
    ("IsInRing", (False, True)),
)
_BOND_LISTS: tuple[tuple[str, Sequence[object]], ...] = (
    ("GetBondType", ("SINGLE", "DOUBLE", "TRIPLE", "AROMATIC", "misc")),
    ("GetStereo", ("STEREONONE", "STEREOZ", "STEREOE", "STEREOCIS", "STEREOTRANS", "STEREOANY")),
    ("GetIsConjugated", (False, True)),
)


def read_smiles(
    smiles: Sequence[str], y: NDArray[np.float32], task_names: Sequence[str], split: dict[str, NDArray[np.int64]],
    where: str = "smiles", lines: Sequence[int] = (),
) -> Molecules:  # fmt: skip
    """A dataset from SMILES.

    Args:
        smiles: One text per molecule.
        y: Labels [molecules, tasks], NaN where one is missing.
        task_names: One name per column of ``y``.
        split: "train", "valid" and "test" → molecule numbers.
        where: What errors call the source.
        lines: The number of each text's line in the source; errors count texts without it.

    Raises:
        DataError: If RDKit cannot read a text; the message names the first such row.
        ModuleNotFoundError: If RDKit is not installed.

    Example:
        >>> import pytest; _ = pytest.importorskip("rdkit")
        >>> split = {part: np.zeros(0, np.int64) for part in ("train", "valid", "test")}
        >>> read_smiles(["CCO"], np.zeros((1, 1), np.float32), ["t"], split).num_nodes
        array([3])
    """
    atoms, bonds, kinds, num_nodes, num_bonds = [], [], [], [], []
    for row, text in enumerate(smiles):
        place = f"line {lines[row]}" if lines else f"row {row + 1}"
        molecule = read_molecule(text, place, where)
        atoms += [[_place(atom, *known) for known in _ATOM_LISTS] for atom in molecule.GetAtoms()]
        found = list(molecule.GetBonds())
        bonds += [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in found]
        kinds += [[_place(bond, *known) for known in _BOND_LISTS] for bond in found]
        num_nodes.append(molecule.GetNumAtoms())
        num_bonds.append(len(found))
    return Molecules(
        "molecules",
        tuple(smiles),
        tuple(task_names),
        np.asarray(y, np.float32),
        np.array(num_nodes, np.int64),
        np.array(num_bonds, np.int64),
        np.array(atoms, np.int64).reshape(-1, len(_ATOM_LISTS)),
        np.array(bonds, np.int64).reshape(-1, 2).T,
        np.array(kinds, np.int64).reshape(-1, len(_BOND_LISTS)),
        split,
    )


def scaffold_split(smiles: Sequence[str], train: float = 0.8, valid: float = 0.1) -> dict[str, NDArray[np.int64]]:
    """OGB's split: molecules of one Bemis–Murcko scaffold stay together, the largest groups train.

    Example:
        >>> import pytest; _ = pytest.importorskip("rdkit")
        >>> split = scaffold_split(["C", "CC", "c1ccccc1", "C1CC1"], 0.5, 0.25)
        >>> {part: chosen.tolist() for part, chosen in split.items()}
        {'train': [0, 1], 'valid': [3], 'test': [2]}
    """
    groups: dict[str, list[int]] = defaultdict(list)
    for row, scaffold in enumerate(scaffolds(smiles)):
        groups[scaffold].append(row)
    found: dict[str, list[int]] = {"train": [], "valid": [], "test": []}
    until_train, until_valid = train * len(smiles), (train + valid) * len(smiles)
    for group in sorted(groups.values(), key=lambda rows: (len(rows), rows[0]), reverse=True):
        if len(found["train"]) + len(group) <= until_train:
            found["train"] += group
        elif len(found["train"]) + len(found["valid"]) + len(group) <= until_valid:
            found["valid"] += group
        else:
            found["test"] += group
    return {part: np.array(rows, np.int64) for part, rows in found.items()}


def scaffolds(smiles: Sequence[str]) -> list[str]:
    """The Bemis–Murcko scaffold of each molecule, with chirality; empty if it has no ring.

    Example:
        >>> import pytest; _ = pytest.importorskip("rdkit")
        >>> scaffolds(["CCO", "Cc1ccccc1"])
        ['', 'c1ccccc1']
    """
    _need_rdkit()
    scaffold_of = importlib.import_module("rdkit.Chem.Scaffolds.MurckoScaffold").MurckoScaffoldSmiles
    molecules = (read_molecule(text, f"row {row + 1}", "smiles") for row, text in enumerate(smiles))
    return [scaffold_of(mol=molecule, includeChirality=True) for molecule in molecules]


def read_molecule(text: str, place: str, where: str) -> Any:
    """RDKit's molecule of a SMILES.

    Raises:
        DataError: If RDKit cannot read it, or it has no atom; the message names its place.
    """
    _need_rdkit()
    importlib.import_module("rdkit.RDLogger").DisableLog("rdApp.*")
    molecule = importlib.import_module("rdkit.Chem").MolFromSmiles(text)
    if molecule is None:
        raise DataError(f"{where}: RDKit cannot read the SMILES in {place}, {text[:60]!r}: fix it or leave it out.")
    if not molecule.GetNumAtoms():
        raise DataError(f"{where}: {place} ({text[:60]!r}) has no atom: leave it out.")
    return molecule


def _place(thing: Any, method: str, known: Iterable[object]) -> int:
    value, listed = getattr(thing, method)(), list(known)
    value = value if isinstance(value, int | bool) and type(value) in (int, bool) else str(value)
    return listed.index(value) if value in listed else len(listed) - 1


def _need_rdkit() -> None:
    if importlib.util.find_spec("rdkit") is None:
        raise MissingPackageError("Reading SMILES needs RDKit: run pip install 'propreg[molecules]'.", name="rdkit")
