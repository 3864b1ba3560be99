"""The table of a search: each winner with its fresh seeds, how optimistic its selection was, and what P-reg adds."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace

from propreg.names import dataset_title, method_title, model_title
from propreg.statistics import Difference, paired, summarize
from propreg.store.results import Results
from propreg.store.run import Cell
from propreg.study.spec.part import Line
from propreg.study.spec.search import Winner, recorded_runs, rungs_of, winner_of
from propreg.study.tables.rows import Row, decimals, mean_std, pick, row_of, signed
from propreg.study.tables.text import Listing

WINNERS = (
    "Winners: accuracy in percent with the seeds that selected the configuration and with fresh ones; optimism is the "
    "difference on validation. *: the winner of the graph, the best on validation with the seeds that select"
)
GAINS = "What P-reg adds: its winner minus the plain one on the same fresh seeds, in points, with a 95 % interval"
_WORDS = {"weight_decay": "weight decay", "strength": "μ"}


@dataclass(frozen=True)
class Search:
    """A search by its first rung, and its winner once there is one; ``plain`` is that of the same without a term."""

    line: Line
    winner: Winner | None
    plain: Winner | None = None

    @property
    def apart(self) -> Difference | None:
        """The winner minus the plain one, on the same fresh seeds."""
        if self.winner is None or self.plain is None or self.winner.fresh is None or self.plain.fresh is None:
            return None
        return paired(self.winner.fresh.test, self.plain.fresh.test)


def searches(lines: Iterable[Line], results: Results) -> list[Search]:
    """The searches that some of these lines begin."""
    found = [Search(line, winner_of(line, results)) for line in lines if line.search and not line.rung]
    plain = {_place(each.line): each.winner for each in found if each.line.method.method == "plain"}
    return [
        replace(each, plain=plain.get(_place(each.line))) if each.line.method.method != "plain" else each
        for each in found
    ]


def search_rows(found: Iterable[Search], results: Results) -> list[Row]:
    """A row for each search: its winner's accuracy with fresh seeds."""
    return [_row(each, results) for each in found]


def listings(found: Sequence[Search]) -> list[Listing]:
    """The winners, and what P-reg adds, as far as they are recorded."""
    winners = [each.winner for each in found if each.winner is not None]
    best = [_best(mine) for mine in _by_graph(winners)]
    tables = [
        Listing(
            WINNERS,
            ("", "validation", "validation, fresh", "optimism", "test, fresh", "configuration"),
            tuple(_winner(winner, "*" * any(winner is each for each in best)) for winner in winners),
        ),
        Listing(
            GAINS,
            ("", "points", "95 % interval", "p", "verdict"),
            tuple(_gain(each.line, apart) for each in found if (apart := each.apart) is not None),
        ),
    ]
    return [each for each in tables if each.rows]


def notes(found: Sequence[Search]) -> list[str]:
    """How far the searches are."""
    left = sum(each.winner is None or each.winner.fresh is None for each in found)
    if not left:
        return []
    return [f"{left} of {len(found)} searches have no winner with fresh seeds yet: propreg reproduce continues them."]


def configuration(line: Line, cell: Cell) -> str:
    """The settings in which the configurations of a search differ, in words.

    Example:
        >>> from propreg.study.spec.experiment import load_experiment
        >>> line = load_experiment("best").lines[0]
        >>> configuration(line, line.cells[0]).split(", ")[:2]
        ['lr 0.000507', 'weight decay 1.03e-05']
    """
    values = [_settings(each) for each in line.cells]
    mine = _settings(cell)
    differing = [name for name in mine if len({each[name] for each in values}) > 1]
    return ", ".join(f"{_WORDS.get(name, name.replace('_', ' '))} {mine[name]:g}" for name in differing)


def _settings(cell: Cell) -> dict[str, float]:
    own = {name: getattr(cell, name) for name in ("lr", "weight_decay", "dropout", "patience")}
    model = {each.name: getattr(cell.model, each.name) for each in fields(cell.model)}
    found = own | model | {"strength": cell.strength}
    return {name: value for name, value in found.items() if isinstance(value, int | float)}


def _place(line: Line) -> tuple[str, str, str]:
    return line.dataset, line.model, line.variant


def _row(search: Search, results: Results) -> Row:
    line, winner = search.line, search.winner
    test = None if winner is None or winner.fresh is None else winner.fresh.test
    rungs = rungs_of(line, results)
    have, of = recorded_runs(rungs, results), len(line.splits) * (line.search.runs if line.search else 0)
    return row_of(
        line,
        "none" if line.method.method == "plain" else "validation",
        test,
        search.apart,
        strength=None if winner is None else winner.cell.strength,
        failed=0 if winner is None else results.failed(winner.cell, line.splits, rungs[-1].seeds),
        **({"runs": have, "verdict": f"incomplete: {have} of {of} runs"} if test is None else {}),
    )


def _winner(winner: Winner, mark: str) -> tuple[str, ...]:
    fresh, test = winner.fresh, None if winner.fresh is None else summarize(winner.fresh.test)
    return (
        _title(winner.line) + mark,
        decimals(float(winner.selecting.val.mean())),
        "–" if fresh is None else decimals(float(fresh.val.mean())),
        "–" if winner.optimism is None else signed(winner.optimism, 2),
        "–" if test is None else mean_std(test.mean, test.std),
        configuration(winner.line, winner.cell),
    )


def _gain(line: Line, apart: Difference) -> tuple[str, ...]:
    interval = f"{signed(apart.low, 2)} … {signed(apart.high, 2)}"
    return (_title(line), signed(apart.mean, 2), interval, decimals(apart.p_value, 4), apart.verdict)


def _title(line: Line) -> str:
    method = "" if line.method.method == "plain" else f" + {method_title(line.method.method)}"
    splits = f" ({line.variant})" if line.variant else ""
    return f"{dataset_title(line.dataset)}{splits}: {model_title(line.model)}{method}"


def _by_graph(winners: Iterable[Winner]) -> list[list[Winner]]:
    found: dict[tuple[str, str], list[Winner]] = {}
    for winner in winners:
        found.setdefault((winner.line.dataset, winner.line.variant), []).append(winner)
    return list(found.values())


def _best(winners: Sequence[Winner]) -> Winner:
    return winners[pick(float(winner.selecting.val.mean()) for winner in winners)]
