"""Lists of graphs for tests: what is to be learned is the mean of the first feature."""

from typing import Any

import numpy as np
import torch

from molecules.made_up import graphs
from propreg.data.own.pyg import data_class


def listed(count: int = 40, classes: int = 0, columns: tuple[int, int] = (3, 2), seed: int = 0) -> list[Any]:
    """PyG graphs, the first of one node, the second without edges."""
    made = graphs(count, columns, classes, seed)
    nodes, edges = (np.concatenate([[0], np.cumsum(n)]) for n in (made.num_nodes, made.num_edges))
    found = []
    for i in range(count):
        x, links = slice(nodes[i], nodes[i + 1]), slice(edges[i], edges[i + 1])
        y = torch.from_numpy(made.y[i]).long() if classes else torch.from_numpy(made.y[i])
        parts = {"edge_attr": torch.from_numpy(made.edge_attr[links])} if columns[1] else {}
        edge_index = torch.from_numpy(made.edge_index[:, links])
        found.append(data_class()(x=torch.from_numpy(made.x[x]), edge_index=edge_index, y=y, **parts))
    return found
