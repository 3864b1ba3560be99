"""Whether a line on the terminal can be written over."""

import os
import sys

CLEAR = "\r\x1b[K"


def can_change() -> bool:
    """Whether standard error is a terminal that can: ``TERM=dumb`` is one that cannot, and gets whole lines only."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
