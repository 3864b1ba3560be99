"""The words of figures: names of models, methods and datasets, and numbers in sentences."""

from collections.abc import Iterable, Sequence

from propreg.statistics import Difference
from propreg.study.render import decimals

MODELS = {"gcn": "GCN", "gat": "GAT", "mlp": "MLP", "gcn-3": "3-layer GCN", "gcn-4": "4-layer GCN"}
DATASETS = {
    "cora": "Cora",
    "citeseer": "CiteSeer",
    "pubmed": "PubMed",
    "cs": "CS",
    "physics": "Physics",
    "computers": "Computers",
    "photo": "Photo",
}
METHODS = {
    "plain": "plain",
    "label_smoothing": "label smoothing",
    "confidence_penalty-paper": "confidence penalty",
    "laplacian-mean": "Laplacian (mean)",
    "laplacian-sum": "Laplacian (sum)",
    "laplacian-official": "Laplacian (official code)",
    "preg-reference": "P-reg (reference)",
    "preg-paper": "P-reg (paper)",
}


SURELY = "Surely: the 95 % interval of the paired difference leaves out 0, and p is at most 1/16."


def model(name: str) -> str:
    """A model's name for people."""
    return MODELS.get(name, name)


def dataset(name: str) -> str:
    """A dataset's name for people."""
    return DATASETS.get(name, name)


def method(name: str) -> str:
    """A method's name for people."""
    return METHODS.get(name, name)


def percent(value: float) -> str:
    """An accuracy.

    Example:
        >>> percent(80.0)
        '80.0 %'
    """
    return f"{decimals(value, 1)} %"


def points(found: Difference) -> str:
    """A difference of accuracies with its interval.

    Example:
        >>> points(Difference(1.25, 0.5, 2.0, 0.06, 1.0))
        '+1.2 points (95 % interval +0.5 to +2.0)'
    """
    return f"{decimals(found.mean, 1, sign=True)} points (95 % interval {_interval(found)})"


def from_to(values: Iterable[float]) -> str:
    """The smallest and the largest of differences; one number where they read the same.

    Example:
        >>> from_to([1.25, -0.5, 0.0]), from_to([2.6]), from_to([0.01, -0.01])
        ('-0.5 to +1.2', '+2.6', '0.0')
    """
    ordered = sorted(values)
    ends = [decimals(value, 1, sign=True) for value in (ordered[0], ordered[-1])]
    return " to ".join(dict.fromkeys(ends))


def adds(found: Difference) -> str:
    """What a method does to the plain model, with a verb.

    Example:
        >>> adds(Difference(-17.1, -18.0, -16.0, 0.06, 0.0))
        'takes 17.1 points away (95 % interval -18.0 to -16.0)'
        >>> adds(Difference(1.25, 0.5, 2.0, 0.06, 1.0))
        'adds 1.2 points (95 % interval +0.5 to +2.0)'
    """
    size, ends = decimals(abs(found.mean), 1), f"(95 % interval {_interval(found)})"
    if not float(size):
        return f"changes nothing, {size} points {ends}"
    return f"adds {size} points {ends}" if found.mean > 0 else f"takes {size} points away {ends}"


def strengths(values: Iterable[float], letter: str = "μ") -> str:
    """Values of μ, with a dash where they are many.

    Example:
        >>> strengths([0.1]), strengths([0.1, 0.2]), strengths([0.1, 0.2, 0.3, 0.4])
        ('μ = 0.1', 'μ = 0.1 and 0.2', 'μ = 0.1 … 0.4 (4 values)')
    """
    found = [f"{value:g}" for value in values]
    if len(found) > 3:
        return f"{letter} = {found[0]} … {found[-1]} ({len(found)} values)"
    return f"{letter} = {listed(found)}"


def listed(names: Sequence[str], word: str = "and") -> str:
    """A list in a sentence.

    Example:
        >>> listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"])
        ('a', 'a and b', 'a, b and c')
    """
    return f" {word} ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)


def counted(have: int, of: int) -> str:
    """How many runs there are.

    Example:
        >>> counted(0, 1250)
        '0 of 1,250 runs recorded'
    """
    return f"{have:,} of {of:,} runs recorded"


def agrees(yes: bool, complete: bool = True) -> str:
    """How a finding relates to the paper's claim; what is found of an incomplete record holds so far.

    Example:
        >>> agrees(True), agrees(True, complete=False)
        ('as the paper says', 'as the paper says, so far')
    """
    text = "as the paper says" if yes else "not as the paper says"
    return text if complete else f"{text}, so far"


def _interval(found: Difference) -> str:
    return f"{decimals(found.low, 1, sign=True)} to {decimals(found.high, 1, sign=True)}"
