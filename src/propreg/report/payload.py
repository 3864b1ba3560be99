"""Data inside the page: JSON that no text can break out of, and a compressed form for what is large."""

import base64
import gzip
import json
from typing import Any

from markupsafe import Markup

# Inside <script> only these can end the element, open a comment or, in old engines, end a line.
_UNSAFE = {ord(letter): f"\\u{ord(letter):04x}" for letter in "<>&\u2028\u2029"}


def script_json(value: Any) -> Markup:
    r"""JSON for ``<script type="application/json">``.

    Example:
        >>> print(script_json({"name": "</script><!--"}))
        {"name":"\u003c/script\u003e\u003c!--"}
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # Lone surrogates cannot be written as UTF-8; JSON has an escape for them too.
    whole = "".join(f"\\u{ord(c):04x}" if "\ud800" <= c <= "\udfff" else c for c in text.translate(_UNSAFE))
    return Markup(whole)


def packed(value: Any) -> Markup:
    """JSON, gzipped without a time, in base 64: letters, digits and three signs, none of which HTML knows."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return Markup(base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode())
