"""A graph of your own, from files or objects. Names are imported on first use."""

from typing import TYPE_CHECKING

from propreg._lazy import lazy

if TYPE_CHECKING:
    from propreg.data.own.load import load_graph as load_graph
    from propreg.data.own.load import read_graph as read_graph
    from propreg.data.own.npz import write_graph as write_graph
    from propreg.data.own.stored import open_stored as open_stored
    from propreg.data.own.stored import write_stored as write_stored

_HOME = {
    "load_graph": "load",
    "read_graph": "load",
    "write_graph": "npz",
    "open_stored": "stored",
    "write_stored": "stored",
}

__getattr__ = lazy("propreg.data.own", _HOME)
