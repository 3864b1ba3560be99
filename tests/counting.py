"""How many inputs a test tried: what ``docs/promises.md`` counts. Without it, each case of a test is one."""

from collections.abc import Callable

Inputs = Callable[[int], None]
