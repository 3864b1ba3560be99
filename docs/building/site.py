"""How Sphinx shows the plain pages: formulas without scripts, and boxes that a keyboard reaches.

- ``$…$`` becomes MathML, which browsers draw by themselves.
- A region of the Python reference becomes the whole docstring, and output belongs to the block above it.
- The front page's graph gets the recorded predictions that ``_static/explore.js`` shows with a slider.
- Code, tables and pictures that are wider than the page take the focus, so that the keyboard can scroll them.
"""

import re
from typing import TYPE_CHECKING, Any

from docutils import nodes
from latex2mathml.converter import convert

from building.blocks import BEGIN, END
from figures import explore

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.writers.html5 import HTML5Translator

SECTIONS = {
    "Get started": ("tutorial", "gallery"),
    "Guides": ("choosing-mu", "molecules", "paper-or-reference", "large-graphs", "engine", "clusters"),
    "Findings": ("study", "theory"),
    "Reference": ("api", "cli", "promises", "cite"),
}
CONTENTS = tuple(page for pages in SECTIONS.values() for page in pages)
_OUTPUT = re.compile(rf"{BEGIN}\n```text\n(.*?)\n```\n{END}", re.S)
_API = re.compile(r"<!-- begin: (api [^>]+?) -->\n.*?<!-- end: \1 -->", re.S)
_TERMLESS = re.compile(r"<dl>\n((?:<dd>[^\n]*</dd>\n)+)</dl>")
_PICTURE = re.compile(r"<p>(<img [^>]*>)</p>")


def setup(app: "Sphinx") -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("source-read", _read)
    app.connect("html-page-context", _finish, priority=900)  # after the theme has made its tree of pages
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _read(app: "Sphinx", name: str, source: list[str]) -> None:  # noqa: ARG001
    source[0] = for_sphinx(name, source[0])


def for_sphinx(name: str, text: str) -> str:
    """A page with the directives that a forge would show as they are."""
    from building.reference import directive

    text = _OUTPUT.sub(lambda found: f"`````{{code-block}} text\n:class: printed\n\n{found[1]}\n`````", text)
    text = _API.sub(lambda found: directive(found[1]), text)
    if name == "api":
        title, _, rest = text.partition("\n\n")
        text = f"{title}\n\n```{{eval-rst}}\n.. py:currentmodule:: propreg\n```\n\n{rest}"
    if name == "index":
        for title, pages in SECTIONS.items():
            text += f"\n```{{toctree}}\n:hidden:\n:caption: {title}\n\n" + "\n".join(pages) + "\n```\n"
    return text


def reachable(body: str) -> str:
    """A page's HTML in which every box that may scroll takes the focus, and one that is not text has a name."""
    body = body.replace("<pre>", '<pre tabindex="0">')
    body = _PICTURE.sub(r'<div tabindex="0" role="group" aria-label="picture" class="picture">\1</div>', body)
    return re.sub(
        r'<div class="table-wrapper(?=[ "])',
        '<div tabindex="0" role="group" aria-label="table" class="table-wrapper',
        body,
    )


def with_lists(body: str) -> str:
    """A page's HTML in which definition lists without a term, as Sphinx writes long signatures, are plain lists."""
    return _TERMLESS.sub(_as_list, body)


def _as_list(found: re.Match[str]) -> str:
    items = found[1].replace("<dd>", "<li>").replace("</dd>\n", "</li>\n")
    return f'<ul class="parameters">\n{items}</ul>'


def _finish(app: "Sphinx", name: str, template: str, context: dict[str, Any], document: Any) -> None:  # noqa: ARG001
    if "body" in context:
        context["body"] = reachable(with_lists(context["body"]))
        if name == "index":
            context["body"] += (
                f'<script type="application/json" id="explore-data">{explore.RECORD.read_text()}</script>'
            )
    tree = context.get("furo_navigation_tree")
    if tree:  # a heading without a level is none
        context["furo_navigation_tree"] = tree.replace('role="heading"', 'role="heading" aria-level="2"')


def _inline(writer: "HTML5Translator", node: nodes.math) -> None:
    writer.body.append(convert(node.astext()))
    raise nodes.SkipNode


def _block(writer: "HTML5Translator", node: nodes.math_block) -> None:
    writer.body.append(f'<div class="formula" tabindex="0">{convert(node.astext(), display="block")}</div>')
    raise nodes.SkipNode
