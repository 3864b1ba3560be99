"""The README as a package index shows it: links into the repository become addresses."""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(?P<image>!?)(?P<text>\[(?:[^\[\]]|\[[^\]]*\])*\])\((?P<target>(?!https?://|#|mailto:)[^)\s]+)\)")


def complete(text: str, repository: str) -> str:
    """Replace relative targets of Markdown links and images by addresses in the repository."""

    def address(found: re.Match[str]) -> str:
        kind = "raw" if found["image"] else "blob"
        return f"{found['image']}{found['text']}({repository}/{kind}/HEAD/{found['target']})"

    return LINK.sub(address, text)


class Readme(MetadataHookInterface):
    """Called by the build."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the text to the metadata."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        text = complete(text, metadata["urls"]["Repository"])
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
