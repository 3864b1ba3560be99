"""The public names: complete, documented, imported on first use, and at home with torch and NumPy alone."""

import inspect
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import propreg

# Blueprint, section 3, and the schedules it leaves open. The rest of the package's names come with their modules.
LIBRARY = {
    "preg",
    "PReg",
    "Propagation",
    "laplacian",
    "confidence_penalty",
    "constant",
    "annealed",
    "linear_warmup",
    "cosine_warmup",
    "intra_class_distance",
    "check_regularizer",
}
DATA = {"load_dataset", "load_graph", "random_split", "DataError"}
OPTIONAL = ("torch_geometric", "sklearn", "scipy", "matplotlib", "typer", "rich", "jinja2")
NAMES = [name for name in propreg.__all__ if name != "__version__"]


def run(program: str, *arguments: str) -> str:
    """The output of a program in a Python of its own, in which warnings are errors too."""
    command = [sys.executable, "-W", "error", "-c", program, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_promised_name_is_public() -> None:
    assert set(propreg.__all__) >= LIBRARY | DATA | {"__version__"}
    assert len(propreg.__all__) == len(set(propreg.__all__))


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_is_there_under_that_name(name: str) -> None:
    value = getattr(propreg, name)
    assert callable(value)
    assert value.__name__ == name
    assert value.__module__.startswith("propreg.")
    assert getattr(propreg, name) is value


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_has_a_docstring_with_an_example(name: str) -> None:
    """The examples themselves are run with the tests. An exception needs no example."""
    value = getattr(propreg, name)
    documented = inspect.getdoc(value)
    assert documented
    if not (inspect.isclass(value) and issubclass(value, Exception)):
        assert "Example:" in documented
        assert ">>>" in documented


def test_dir_lists_what_is_public() -> None:
    assert dir(propreg) == sorted(propreg.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'propreg' has no attribute 'prag'"):
        _ = propreg.prag
    assert not hasattr(propreg, "_no_such_module")


def test_the_type_checker_sees_every_lazy_name() -> None:
    """Each name of the lazy table is also imported for type checkers, from the module the table says."""
    source = inspect.getsource(propreg)
    for name, home in propreg._HOME.items():
        assert f"from propreg.{home} import {name} as {name}\n" in source


def test_the_version_is_that_of_the_installed_package_and_of_the_citation() -> None:
    citation = (Path(__file__).parent.parent / "CITATION.cff").read_text(encoding="utf-8")
    assert metadata.version("propreg") == propreg.__version__
    assert f"\nversion: {propreg.__version__}\n" in citation


def test_importing_the_package_loads_neither_torch_nor_numpy() -> None:
    loaded = run("import sys, propreg; dir(propreg); propreg.__version__; print(*sys.modules)").split()
    heavy = {"torch", "numpy", *OPTIONAL}
    assert heavy.isdisjoint(loaded)
    assert [name for name in loaded if name.startswith("propreg.")] == ["propreg._lazy"]


def test_using_the_regularizers_loads_no_optional_package() -> None:
    program = f"""
import sys, propreg
for name in {sorted(LIBRARY)}:
    getattr(propreg, name)
print(*sys.modules)
"""
    loaded = run(program).split()
    assert "propreg._preg" in loaded
    assert [name for name in OPTIONAL if name in loaded] == []


BASE_INSTALL = """
import sys
from importlib.abc import MetaPathFinder

class Missing(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in sys.argv[1:]:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
import propreg, torch

z = torch.randn(4, 3, requires_grad=True)
edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
y = torch.tensor([0, 1, 1, 2])
loss = propreg.preg(z, edge_index)
for phi in ("cross_entropy", "kl", "reverse_kl", "squared_error", "l2_probability", "bernoulli", "cosine"):
    loss = loss + propreg.PReg(phi, "sym", True)(z, edge_index)
loss = loss + propreg.preg(z, propreg.Propagation(edge_index, 4))
loss = loss + propreg.preg(z, torch.eye(4).to_sparse_coo())
loss = loss + propreg.laplacian(z, edge_index) + propreg.confidence_penalty(z)
loss = loss + propreg.annealed(0.5, 2) * propreg.intra_class_distance(z, y)
loss = loss + propreg.constant(0.5, 1) + propreg.linear_warmup(0.5, 1, epochs=3) + propreg.cosine_warmup(0.5, 1, epochs=3)
loss.backward()
assert z.grad.isfinite().all()
propreg.check_regularizer(propreg.preg, skip=["gradient"])
print("fine")
"""  # noqa: E501


def test_a_base_install_has_all_the_regularizers() -> None:
    """torch and NumPy only: every optional package is made impossible to import."""
    assert run(BASE_INSTALL, *OPTIONAL) == "fine\n"
