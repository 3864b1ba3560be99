"""What the ablation says, in sentences: which choices matter, and what each of them does."""

from collections.abc import Mapping, Sequence
from statistics import fmean

from propreg.study.figures.words import DATASETS, listed
from propreg.study.fork_effects import Effect, Setting, changes, setting
from propreg.study.render import decimals
from propreg.study.results import Results

CHANGES = {
    "preg-sym": "symmetric averaging",
    "preg-loops": "self-loops",
    "preg-sym_loops": "symmetric averaging with self-loops",
    "preg-two_passes": "a second pass",
    "preg-reference": "the reference preset, which has all three",
    "preg-detach_self": "no gradient through the node's own side",
    "preg-detach_neighbours": "no gradient through the neighbours' side",
    "preg-paper_squared_error": "squared error",
    "preg-paper_kl": "KL divergence",
    "preg-annealed": "annealing",
    "preg-threshold_0_1": "a threshold of 0.1",
    "preg-threshold_0_5": "a threshold of 0.5",
}
SETTINGS = {
    ("gcn", "strict stopping"): "GCN, stopping as the paper's text has it",
    ("gcn", "raw features"): "GCN, features as they are, not divided by their row's sum",
    ("gcn", "weight decay on the first layer"): "GCN, weight decay on the first layer only",
    ("mlp-16", ""): "MLP of 16 units without dropout, as the paper's text has it, instead of 64 with it",
    ("gat-8-heads", ""): "GAT with eight averaged output heads and no input dropout, instead of one and with it",
}


def fork_findings(results: Results) -> list[str]:
    """First what matters, then each choice, as far as they are recorded."""
    found = {method: effects for method in CHANGES if (effects := changes(results, method))}
    each = [f"GCN, {CHANGES[method]}: {_change(effects)}." for method, effects in found.items()]
    settings = {name: setting(results, *which) for which, name in SETTINGS.items()}
    each += [f"{name}: {_setting(mine)}." for name, mine in settings.items() if mine]
    return [*what_matters(found), *each]


def what_matters(found: Mapping[str, Sequence[Effect]]) -> list[str]:
    """Which changes can be told apart from the preset: hardly anywhere, on most datasets, or on some.

    Of what is recorded on one dataset only nothing is said here.
    """
    groups: dict[str, list[str]] = {"hardly": [], "better": [], "worse": [], "partly": []}
    known = {method: effects for method, effects in found.items() if len(effects) > 1}
    for method, effects in known.items():
        signs = [effect.told for effect in effects if effect.told != "cannot be told"]
        mostly = next((word for word in ("better", "worse") if signs.count(word) > len(effects) / 2), "partly")
        groups["hardly" if len(signs) <= 1 else mostly].append(CHANGES[method])
    said = (
        ("No difference to P-reg (paper) that can be told on more than one dataset: ", "hardly"),
        ("Better than P-reg (paper) on most datasets: ", "better"),
        ("Worse than P-reg (paper) on most datasets: ", "worse"),
        ("Different on some datasets: ", "partly"),
    )
    out = [f"{start}{listed(groups[g]).replace(', which has all three', '')}." for start, g in said if groups[g]]
    least = min(map(len, known.values()), default=0)
    return [
        *out,
        *(
            [f"Not all is recorded: of some changes {least} of {len(DATASETS)} datasets are."]
            * (0 < least < len(DATASETS))
        ),
    ]


def where(effects: Sequence[Effect]) -> str:
    """On which datasets the sign can be told.

    Example:
        >>> where([])
        'better on none, worse on none'
    """
    names = [[DATASETS[effect.dataset] for effect in effects if effect.told == word] for word in ("better", "worse")]
    better, worse = (listed(each) or "none" for each in names)
    return f"better on {better}, worse on {worse}"


def points(values: Sequence[float]) -> str:
    """Their mean, with its sign.

    Example:
        >>> points([1.0, 2.5]), points([-0.04])
        ('+1.8', '0.0')
    """
    return decimals(fmean(values), 1, sign=True)


def over(datasets: Sequence[str]) -> str:
    """What a mean is over.

    Example:
        >>> over(["cora"]), over(["cora", "cs"])
        ('on Cora', 'on average over 2 datasets')
    """
    return f"on average over {len(datasets)} datasets" if len(datasets) > 1 else f"on {DATASETS[datasets[0]]}"


def _change(effects: Sequence[Effect]) -> str:
    mean, best = points([e.apart.mean for e in effects]), points([e.on_test for e in effects])
    mine = over([effect.dataset for effect in effects])
    return f"{mean} points against P-reg (paper) {mine}, {where(effects)} (best on test: {best})"


def _setting(found: Sequence[Setting]) -> str:
    plain, mine = points([each.plain.apart.mean for each in found]), over([each.plain.dataset for each in found])
    gain, of = points([each.gain for each in found]), points([each.of for each in found])
    return (
        f"the plain model changes by {plain} points {mine}, {where([each.plain for each in found])}; what P-reg adds "
        f"is {gain} points instead of {of}, {where([each.change for each in found])}"
    )
