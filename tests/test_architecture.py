"""The plan of the house: what is imported when a module is, and what packages keep to themselves.

The layers themselves are import-linter's contracts in ``pyproject.toml``, which ``make lint`` checks.
"""

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src"
MODULES = {
    ".".join(file.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__"): file
    for file in SOURCE.rglob("*.py")
}


def imported(tree: ast.AST, *, at_once: bool) -> Iterator[ast.ImportFrom]:
    """The imports from this package: all of them, or those that run when the module is imported."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "propreg":
            yield node
        waits = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        if not at_once or not (waits or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test))):
            yield from imported(node, at_once=at_once)


def targets(node: ast.ImportFrom) -> set[str]:
    """The modules that an import names."""
    module = node.module or ""
    found = {f"{module}.{alias.name}" for alias in node.names} & MODULES.keys()
    return found or {module}


def test_imports_form_no_cycle() -> None:
    graph = {
        name: {target for node in imported(ast.parse(file.read_text()), at_once=True) for target in targets(node)}
        for name, file in MODULES.items()
    }
    order = list(TopologicalSorter(graph).static_order())  # raises CycleError, which lists the cycle
    assert set(order) >= MODULES.keys()


def test_no_private_name_crosses_a_file() -> None:
    taken = [
        f"{name} takes {alias.name} from {node.module}"
        for name, file in MODULES.items()
        for node in imported(ast.parse(file.read_text()), at_once=False)
        for alias in node.names
        if alias.name.startswith("_") and not alias.name.startswith("__") and node.module != "propreg"
    ]
    assert not taken


def test_only_results_call_upward() -> None:
    """``fit``'s result makes a page or a figure on request; nothing else below them knows the report or the study."""
    above = ("propreg.report", "propreg.study.figures", "propreg.cli")
    callers = {
        name
        for name, file in MODULES.items()
        for node in imported(ast.parse(file.read_text()), at_once=False)
        if any(target.startswith(above) for target in targets(node)) and not name.startswith((*above, "propreg.study"))
    }
    assert callers <= {
        "propreg.fitting.comparison",
        "propreg.running.compare",
        "propreg.running.folder",
        "propreg.__main__",
    }
