"""Blocks of code that are wider than the page can be reached, and then moved, with the keyboard."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def setup(app: "Sphinx") -> dict[str, bool]:
    """Look at every page before it is written."""
    app.connect("html-page-context", _reach)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _reach(app: "Sphinx", name: str, template: str, context: dict[str, Any], tree: Any) -> None:  # noqa: ARG001
    if "body" in context:
        context["body"] = context["body"].replace("<pre>", '<pre tabindex="0">')
