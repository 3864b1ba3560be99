"""When better or worse is said of a line's differences, in words: what :func:`propreg.study.telling.told` asks for."""

from fractions import Fraction

from propreg.statistics import SURE
from propreg.study.experiment import Line


def units_words(line: Line) -> str:
    """What the sign-flip test is over: the line's splits, or its seeds where there is one split.

    Example:
        >>> from propreg.study.experiment import load_experiment
        >>> [units_words(load_experiment(name).lines[0]) for name in ("table1", "table-standard-gcn-gat")]
        ['5 splits', '10 seeds']
    """
    count, name = _units(line)
    return f"{count} {name}"


def rule_words(line: Line) -> str:
    """The rule, and what it means with so many units.

    Example:
        >>> from propreg.study.experiment import load_experiment
        >>> rule_words(load_experiment("table-standard-gcn-gat").lines[0])
        'the 95 % interval of the difference leaves out 0 and p is at most 1/16'
    """
    count, name = _units(line)
    asked = Fraction(SURE).limit_denominator(10_000)
    rule = f"the 95 % interval of the difference leaves out 0 and p is at most {asked}"
    if 2.0 ** (1 - count) == SURE:
        return f"{rule}, which {count} {name} give only where all of them agree"
    return rule


def _units(line: Line) -> tuple[int, str]:
    return (len(line.splits), "splits") if len(line.splits) > 1 else (len(line.seeds), "seeds")
