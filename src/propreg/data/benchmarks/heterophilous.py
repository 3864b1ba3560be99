"""The ten splits of the heterophilous graphs: actor, chameleon, squirrel (both filtered), minesweeper, tolokers.

From yandex-research/heterophilous-graphs at a4313955, loops dropped and both directions of an edge merged. The splits
are packed masks in the dataset's own file. They cover every node: 48/32/20 % for training, validation and testing on
actor and roughly so on chameleon and squirrel, 50/25/25 % on the last two.
"""

from pathlib import Path

from propreg.data.benchmarks.cache import unpack_splits
from propreg.data.formats.npz import read_npz
from propreg.data.graph import PARTS, Split


def read_splits(path: Path, file: str, num_nodes: int) -> list[Split]:
    """Read the splits of the dataset named ``file``."""
    members = [f"{part}_packed" for part in PARTS]
    return unpack_splits(read_npz(path, only={*members}, max_bytes=64 << 20), members, num_nodes, path, file)
