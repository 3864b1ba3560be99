"""The lock has the versions of constraints.txt and of the build backend, a hash for each, and no place to get them."""

import re
import tomllib

from lock import LOCK, ROOT, normalized, pins

TEXT = LOCK.read_text(encoding="utf-8")


def test_the_lock_is_that_of_the_constraints() -> None:
    locked = pins(TEXT)
    wanted = pins((ROOT / "constraints.txt").read_text(encoding="utf-8"))
    backend = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]["requires"]
    wanted |= pins("\n".join(backend))
    assert {name: locked.get(name) for name in wanted} == wanted, "run make lock"
    assert backend
    assert all("==" in each for each in backend)


def test_every_line_has_a_hash_and_names_no_host() -> None:
    lines = [line for line in TEXT.splitlines() if not line.startswith("#")]
    assert len(lines) > 100
    assert all(re.fullmatch(r"[\w.-]+==[\w.+]+ --hash=sha256:[0-9a-f]{64}", line) for line in lines)


def test_names_are_compared_as_pip_does() -> None:
    assert normalized("Sphinx_Basic.ng") == "sphinx-basic-ng"
    assert pins("a_b==1.0+cpu --hash=sha256:0\n# c==2\n") == {"a-b": "1.0"}
