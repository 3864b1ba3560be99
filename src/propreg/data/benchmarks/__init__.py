"""The benchmark datasets: where they come from, and what their content must be. Names are imported on first use."""

from typing import TYPE_CHECKING

from propreg._lazy import lazy

if TYPE_CHECKING:
    from propreg.data.benchmarks.load import load_dataset as load_dataset
    from propreg.data.benchmarks.load import load_molecules as load_molecules
    from propreg.data.benchmarks.load import load_node_graph as load_node_graph

_HOME = {"load_dataset": "load", "load_molecules": "load", "load_node_graph": "load"}

__getattr__ = lazy("propreg.data.benchmarks", _HOME)
