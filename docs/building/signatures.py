"""Parameters that stand one below the other are a list.

Sphinx writes such a signature as a definition list without a term, which screen readers cannot make sense of.
"""

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_TERMLESS = re.compile(r"<dl>\n((?:<dd>[^\n]*</dd>\n)+)</dl>")


def setup(app: "Sphinx") -> dict[str, bool]:
    """Look at every page before it is written."""
    app.connect("html-page-context", _mend)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def with_lists(body: str) -> str:
    """A page's HTML in which definition lists without a term are plain lists."""
    return _TERMLESS.sub(_as_list, body)


def _as_list(found: re.Match[str]) -> str:
    items = found[1].replace("<dd>", "<li>").replace("</dd>\n", "</li>\n")
    return f'<ul class="parameters">\n{items}</ul>'


def _mend(app: "Sphinx", name: str, template: str, context: dict[str, Any], tree: Any) -> None:  # noqa: ARG001
    if "body" in context:
        context["body"] = with_lists(context["body"])
