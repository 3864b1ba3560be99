"""Code, tables and pictures that are wider than the page can be reached, and then moved, with the keyboard."""

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_NAMES = {"picture": "picture", "table-wrapper": "table"}
_BOX = re.compile(rf'<div class="({"|".join(_NAMES)})(?=[ "])')


def setup(app: "Sphinx") -> dict[str, bool]:
    """Look at every page before it is written."""
    app.connect("html-page-context", _reach)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def reachable(body: str) -> str:
    """A page's HTML in which every box that may scroll takes the focus; one that is not text has a name."""
    body = body.replace("<pre>", '<pre tabindex="0">')
    return _BOX.sub(lambda box: f'<div tabindex="0" role="group" aria-label="{_NAMES[box[1]]}" class="{box[1]}', body)


def _reach(app: "Sphinx", name: str, template: str, context: dict[str, Any], tree: Any) -> None:  # noqa: ARG001
    if "body" in context:
        context["body"] = reachable(context["body"])
