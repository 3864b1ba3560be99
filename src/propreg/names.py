"""What people call datasets, models and methods; an unknown name is shown as it is.

Models and regularizers carry their titles in their entries, which import no torch.
"""

from collections.abc import Sequence

from propreg.engine.models import known_model
from propreg.engine.regularizers import REGULARIZERS

DATASETS = {
    "cora": "Cora",
    "citeseer": "CiteSeer",
    "pubmed": "PubMed",
    "cs": "CS",
    "physics": "Physics",
    "computers": "Computers",
    "photo": "Photo",
}
BEYOND = {
    "actor": "Actor",
    "chameleon-filtered": "Chameleon (filtered)",
    "squirrel-filtered": "Squirrel (filtered)",
    "minesweeper": "Minesweeper",
    "tolokers": "Tolokers",
    "blogcatalog": "BlogCatalog",
    "flickr": "Flickr",
    "acm": "ACM",
}
"""The graphs that the paper does not have."""
# The study's names for a model with other settings, see presets.toml.
_VARIANTS = {
    "gcn-3": "3-layer GCN",
    "gcn-4": "4-layer GCN",
    "gat-8-heads": "GAT, 8 output heads, no input dropout",
    "mlp-16": "MLP, 16 units, no dropout",
    "mol-gcn-virtual": "GCN with virtual node",
    "mol-gin-virtual": "GIN with virtual node",
}
FORMS = {"paper": "paper form", "reference": "official-code form"}
"""The two forms of P-reg, by preset."""


def dataset_title(name: str) -> str:
    """A dataset.

    Example:
        >>> dataset_title("pubmed"), dataset_title("acm"), dataset_title("ogbg-molhiv"), dataset_title("my <graph>")
        ('PubMed', 'ACM', 'molhiv', 'my <graph>')
    """
    return (DATASETS | BEYOND).get(name, name.removeprefix("ogbg-"))


def model_title(name: str) -> str:
    """A model, or one of the study's variants of it.

    Example:
        >>> model_title("gcn"), model_title("gcn-3")
        ('GCN', '3-layer GCN')
    """
    entry = known_model(name)
    return _VARIANTS.get(name) or (name if entry is None else entry.title)


def method_title(family: str, preset: str = "") -> str:
    """A regularizer, with its form where a preset is given.

    Example:
        >>> method_title("preg"), method_title("preg", "reference, KL"), method_title("my_term")
        ('P-reg', 'P-reg (official-code form, KL)', 'my term')
    """
    title = REGULARIZERS[family].title if family in REGULARIZERS else family.replace("_", " ")
    if not preset:
        return title
    form, comma, rest = preset.partition(",")
    return f"{title} ({(FORMS | {'official': FORMS['reference']}).get(form, form)}{comma}{rest})"


def listed(names: Sequence[str], word: str = "and") -> str:
    """A list in a sentence.

    Example:
        >>> listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"])
        ('a', 'a and b', 'a, b and c')
    """
    return f" {word} ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)
