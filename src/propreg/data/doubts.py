"""What is legal in a graph but seldom meant: edges that run one way only, and class numbers that no node has."""

import numpy as np

from propreg.data.graph import Graph

FEW = 0.05  # of citations, say, a few are mutual; where a direction was forgotten, about none
NAMED = 5  # so many classes are listed


def one_way(graph: Graph, fix: str) -> str:
    """The sentence for a graph of which hardly an edge also runs the other way, empty where it has both directions.

    Args:
        graph: The graph; loops say nothing about direction and do not count.
        fix: What to do if the graph is meant to be undirected.

    Example:
        >>> path = Graph("path", np.array([[0, 1], [1, 2]]), np.eye(3, dtype=np.float32), np.zeros(3, np.int64))
        >>> one_way(path, "list both directions").partition(": ")[2]
        'if the graph is undirected, list both directions.'
    """
    edges = graph.edge_index.astype(np.int64)
    source, target = edges[:, edges[0] != edges[1]]
    forth = np.unique(source * graph.num_nodes + target)
    back = np.unique(target * graph.num_nodes + source)
    both, count = len(np.intersect1d(forth, back, assume_unique=True)), len(forth)
    if both >= FEW * count:
        return ""
    few = f"only {both:,} also run" if both else "none also runs"
    return (
        f"Of {count:,} {'edge' if count == 1 else 'edges'}, {few} the other way, so that a node learns only from those "
        f"that point to it: if the graph is undirected, {fix}."
    )


def unused_classes(graph: Graph) -> str:
    """The sentence for class numbers that no node has, empty where each class has a node.

    Example:
        >>> edges, y = np.array([[0, 1], [1, 0]]), np.array([0, 2])
        >>> unused_classes(Graph("pair", edges, np.eye(2, dtype=np.float32), y)).partition(": ")[0]
        'No node is of class 1, though classes are numbered 0 to 2'
    """
    unused = np.setdiff1d(np.arange(graph.num_classes), graph.y)
    if not len(unused):
        return ""
    more = f" and {len(unused) - NAMED} more" if len(unused) > NAMED else ""
    named = ", ".join(str(c) for c in unused[:NAMED]) + more
    return (
        f"No node is of class {named}, though classes are numbered 0 to {graph.num_classes - 1}: the model gets an "
        "output for each number all the same; number the classes without gaps if it should not."
    )
