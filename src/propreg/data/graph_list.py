"""Many graphs with one target each, as a few long NumPy arrays."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from propreg.data.benchmarks.molecules import PARTS, Molecules
from propreg.data.digests import digest_arrays, digest_labels, join_digests
from propreg.data.scaling import Scaling

Parts = dict[str, NDArray[np.int64]]

ATOM_DIMS = (119, 5, 12, 12, 10, 6, 6, 2, 2)  # OGB's atom features, each with its "misc" value
BOND_DIMS = (5, 6, 2)
KINDS = {"classification": "classification", "binary": "binary classification", "regression": "regression"}
"""What is learned, by the short name: one of several classes, yes/no questions, or numbers."""


@dataclass(frozen=True, eq=False)
class GraphList:
    """Graphs one after the other, edges as listed.

    Attributes:
        x: Features of all nodes: float32 [nodes, F]; or OGB's nine integers per atom, if ``coded``.
        edge_index: Ends of each edge, numbered within the graph, int64 [2, edges].
        edge_attr: Features of all edges: float32 [edges, K], K = 0 if there are none; or OGB's three per bond.
        num_nodes, num_edges: Of each graph, int64.
        y: Targets, float32 [graphs, tasks], NaN for a missing one; zeros of no column where there are none.
        coded: Whether features are OGB's integer codes of atoms and bonds.
        kind: What is learned, one of :data:`KINDS`.
        split: "train", "valid" and "test" → graph numbers; empty if no split is chosen.
        names: What each graph is called, of molecules their SMILES; empty where they have numbers only.
        tasks: What each target is called; empty where they have no names.

    Example:
        >>> point = GraphList(
        ...     np.ones((1, 2), np.float32), np.zeros((2, 0), np.int64), np.zeros((0, 0), np.float32),
        ...     np.array([1]), np.array([0]), np.zeros((1, 1), np.float32),
        ... )
        >>> len(point), len(point.digest)
        (1, 64)
    """

    x: NDArray[Any]
    edge_index: NDArray[np.int64]
    edge_attr: NDArray[Any]
    num_nodes: NDArray[np.int64]
    num_edges: NDArray[np.int64]
    y: NDArray[np.float32]
    coded: bool = False
    kind: str = "regression"
    split: Parts = field(default_factory=dict)
    names: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.num_nodes)

    @property
    def digest(self) -> str:
        """Of the content, the split included."""
        kind = "<i8" if self.coded else "<f4"
        return join_digests(
            {
                "features": digest_arrays("node features", {"x": (kind, self.x)}),
                "edges": digest_arrays("edges", {"ends": ("<i8", self.edge_index)}),
                "edge features": digest_arrays("edge features", {"x": (kind, self.edge_attr)}),
                "sizes": digest_arrays("sizes", {"nodes": ("<i8", self.num_nodes), "edges": ("<i8", self.num_edges)}),
                "labels": digest_labels(self.y),
                "split": digest_arrays("graph split", {part: ("<i8", self.split[part]) for part in self.split}),
            }
        )

    def with_split(self, split: Parts) -> "GraphList":
        """The same graphs with another split."""
        return replace(self, split={part: split[part] for part in PARTS})

    def scaled(self, nodes: Scaling, edges: Scaling) -> "GraphList":
        """The same graphs with scaled features; codes stay as they are."""
        if self.coded:
            return self
        x, edge_attr = (np.asarray(scale(values)) for scale, values in ((nodes, self.x), (edges, self.edge_attr)))
        return replace(self, x=x, edge_attr=edge_attr)


def task_titles(tasks: tuple[str, ...], count: int) -> tuple[str, ...]:
    """The targets' names; without any, where they stand in ``y``.

    Example:
        >>> task_titles(("toxic",), 1), task_titles((), 1), task_titles((), 2)
        (('toxic',), ('y',), ('y[0]', 'y[1]'))
    """
    if len(tasks) == count:
        return tasks
    return ("y",) if count == 1 else tuple(f"y[{i}]" for i in range(count))


def of_molecules(data: Molecules) -> GraphList:
    """A molecule dataset as a list of graphs, each bond followed by its reverse."""
    ends = data.bonds.astype(np.int64)
    return GraphList(
        data.atom_features.astype(np.int64),
        np.stack([ends, ends[::-1]], axis=2).reshape(2, -1),
        np.repeat(data.bond_features.astype(np.int64), 2, axis=0),
        data.num_nodes.astype(np.int64),
        2 * data.num_bonds.astype(np.int64),
        data.y,
        coded=True,
        split=data.split,
        names=data.smiles,
        tasks=data.task_names,
    )
