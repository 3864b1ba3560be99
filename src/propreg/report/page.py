"""One self-contained HTML file: templates filled in, style, scripts and data inlined, everything else forbidden.

The Content-Security-Policy allows nothing but the page's own style and scripts, by their SHA-256. Names are text:
templates escape them, and markup that slipped through could not run.
"""

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import TYPE_CHECKING, Any

from propreg import __version__
from propreg._lazy import MissingPackageError
from propreg.report.text import clip, number, strength

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

STYLES = (
    "colors.css", "base.css", "frame.css", "table.css", "overview.css", "wide.css", "chart.css", "details.css",
)  # fmt: skip
THEME = "theme.js"
# Inside <script> only these can end the element, open a comment or, in old engines, end a line.
_UNSAFE = {ord(letter): f"\\u{ord(letter):04x}" for letter in "<>&\u2028\u2029"}


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
        raise MissingPackageError(f"The page needs {missing.name}: run pip install 'propreg[report]'.") from missing
    found = Environment(
        loader=PackageLoader("propreg.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= {"clip": clip, "decimals": number, "strength": strength, "whole": _whole}
    found.filters |= {"thousands": lambda value: f"{value:,}", "digits": lambda value: f"{value:.4g}"}
    return found


def _whole(text: str) -> "Markup":
    """Text whose names with a hyphen, ``P-reg`` and options, are not broken over two lines."""
    from markupsafe import Markup, escape

    return Markup(re.sub(r"P-reg\b|(?<!\S)--[a-z][a-z-]*", r'<span class="whole">\g<0></span>', str(escape(text))))


def _static(name: str) -> str:
    return resources.files("propreg.report").joinpath("static").joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def script_json(value: Any) -> "Markup":
    r"""JSON for ``<script type="application/json">``.

    Example:
        >>> print(script_json({"name": "</script><!--"}))
        {"name":"\u003c/script\u003e\u003c!--"}
    """
    from markupsafe import Markup

    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # Lone surrogates cannot be written as UTF-8; JSON has an escape for them too.
    whole = "".join(f"\\u{ord(c):04x}" if "\ud800" <= c <= "\udfff" else c for c in text.translate(_UNSAFE))
    return Markup(whole)


def packed(value: Any) -> "Markup":
    """JSON, gzipped without a time, in base 64: letters, digits and three signs, none of which HTML knows."""
    from markupsafe import Markup

    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return Markup(base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode())
