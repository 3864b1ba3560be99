"""Which packages are installed, by their metadata: importing them would take seconds."""

import re
from dataclasses import dataclass
from importlib import metadata

PURPOSES = {
    "torch": "the library itself",
    "numpy": "the library itself",
    "torch_geometric": "Data objects, and the models that fit returns",
    "scikit-learn": "the digits; t-SNE",
    "scipy": "what scikit-learn stands on",
    "matplotlib": "figures",
    "Jinja2": "pages",
    "typer": "this command",
    "rich": "progress bars",
}
INSTALL = "pip install 'propreg[all]'"
_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:>=\s*([0-9][0-9.]*))?")


@dataclass(frozen=True)
class Package:
    """A package that propreg uses; ``version`` is None where it is not installed."""

    name: str
    purpose: str
    version: str | None
    least: str | None

    @property
    def fine(self) -> bool:
        """Whether it is there and new enough."""
        return self.version is not None and (self.least is None or numbers(self.version) >= numbers(self.least))


def packages() -> list[Package]:
    """Every package that propreg uses, with the oldest version that it works with."""
    least = _least()
    return [Package(name, purpose, _version(name), least.get(_plain(name))) for name, purpose in PURPOSES.items()]


def numbers(version: str) -> tuple[int, ...]:
    """A version's leading numbers, to compare.

    Example:
        >>> numbers("2.13.0+cpu") >= numbers("2.11")
        True
    """
    return tuple(int(part) for part in re.findall(r"\d+", re.split(r"[^0-9.]", version, maxsplit=1)[0]))


def _least() -> dict[str, str]:
    """The oldest versions that propreg's own metadata names."""
    try:
        lines = metadata.requires("propreg") or []
    except metadata.PackageNotFoundError:  # run from a folder of sources
        return {}
    found = [_REQUIREMENT.match(line) for line in lines]
    return {_plain(match[1]): match[2] for match in found if match and match[2]}


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _plain(name: str) -> str:
    return name.lower().replace("_", "-")
