"""One self-contained HTML file: templates filled in, style and scripts inlined, everything else forbidden.

The Content-Security-Policy lets nothing in but the page's own style and scripts, by their SHA-256. Whatever a name may
hold, it is text: templates escape it, and what would slip through could not run.
"""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import TYPE_CHECKING, Any

from propreg import __version__
from propreg.report.names import clip, number, strength

if TYPE_CHECKING:
    from jinja2 import Environment

STYLES = (
    "colours.css", "base.css", "frame.css", "table.css", "overview.css", "wide.css", "chart.css", "details.css",
)  # fmt: skip
THEME = "theme.js"


def render(template: str, scripts: Sequence[str], values: Mapping[str, Any]) -> str:
    """A page from a template; ``scripts`` are inlined as one, in this order."""
    from markupsafe import Markup

    style = "\n".join(_static(name) for name in STYLES)
    theme = _static(THEME)
    script = "(() => {\n'use strict';\n" + "\n".join(_static(name) for name in scripts) + "\n})();\n"
    policy = (
        f"default-src 'none'; script-src {_hash(theme)} {_hash(script)}; style-src {_hash(style)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    # Our own files, which tests check for closing tags.
    inlined = {"style": Markup(style), "theme": Markup(theme), "script": Markup(script)}
    page = _environment().get_template(template).render(**values, **inlined, policy=policy, version=__version__)
    return page + "\n"


def _environment() -> "Environment":
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ModuleNotFoundError as missing:
        raise ImportError(f"The page needs {missing.name}: run pip install 'propreg[all]'.") from missing
    found = Environment(
        loader=PackageLoader("propreg.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= {"clip": clip, "decimals": number, "strength": strength, "thousands": lambda value: f"{value:,}"}
    return found


def _static(name: str) -> str:
    return resources.files("propreg.report").joinpath("static").joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
