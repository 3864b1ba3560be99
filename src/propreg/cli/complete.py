"""Shell completion after ``propreg … <Tab>``: names from the package, with no heavy import."""


def node_datasets(incomplete: str) -> list[tuple[str, str]]:
    """Datasets of one graph, with their descriptions.

    Example:
        >>> node_datasets("ci")
        [('citeseer', 'papers on computer science and their citations')]
    """
    from propreg.data.benchmarks.catalog import NODE_SETS

    return [(name, entry.about) for name, entry in NODE_SETS.items() if name.startswith(incomplete)]


def datasets(incomplete: str) -> list[tuple[str, str]]:
    """All datasets.

    Example:
        >>> [name for name, _ in datasets("ogbg-molh")]
        ['ogbg-molhiv']
    """
    from propreg.data.benchmarks.catalog import MOLECULE_SETS

    molecules = [(name, entry.about) for name, entry in MOLECULE_SETS.items() if name.startswith(incomplete)]
    return [*node_datasets(incomplete), *molecules]


def experiments(incomplete: str) -> list[str]:
    """Experiments of the study.

    Example:
        >>> experiments("table1")
        ['table1']
    """
    from propreg.study.spec.experiment import experiment_names

    return [name for name in experiment_names() if name.startswith(incomplete)]
