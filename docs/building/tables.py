"""The tables of the pages, each computed from the record. What is not recorded is a dash."""

import ast
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from building.record import FORMS, MODELS, OFFICIAL_FORM, PAPER_FORM, RESULTS, ROOT, Curve, curves, published
from building.record import training_curves as by_training_nodes
from propreg.names import DATASETS, method_title, model_title
from propreg.store.results import Results
from propreg.study.spec.experiment import load_experiment
from propreg.study.spec.paper import paper_number
from propreg.study.spec.presets import published as recipe_of
from propreg.study.tables import costs, search
from propreg.study.tables.ablation import listings
from propreg.study.tables.rows import OWN, Row, decimals, mean_std, signed, table_rows

EXPERIMENTS = {"table1": "Table 1", "table-standard-gcn-gat": "Table 2", "table-phi": "Appendix F"}
ENGINE = (("GCN", "Cora"), ("GCN", "Photo"), ("GCN", "CS"), ("GCN", "Physics"), ("GAT", "Cora"), ("GAT", "Physics"))
ON_CPU = 8
"""The runs that benchmarks/engine.py trains at once on a CPU."""
SIZES = (35, 70, 140, 300, 1200)
Records = dict[tuple[str, str], dict[str, Any]]


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table.

    Example:
        >>> table(["a", "b"], [["1", "2"]]).splitlines()
        ['| a | b |', '| --- | --- |', '| 1 | 2 |']
    """
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows))


# Table 1 at a glance, and the benchmarks.


def accuracies(results: Results) -> str:
    """Plain, P-reg in both forms, and the paper's numbers, for each model and dataset of Table 1."""
    rows = {
        (r.model, r.dataset, r.method, r.preset): r
        for r in table_rows(load_experiment("table1"), results)
        if r.selection != "test"
    }
    kinds = (("", "plain", ""), (" + P-reg", "preg", "paper"), (" + P-reg, official-code form", "preg", "reference"))
    body = []
    for model, title in MODELS.items():
        mine = [[rows.get((model, name, method, preset)) for name in DATASETS] for _, method, preset in kinds]
        body += [[title + kind[0], *map(_ours, row)] for kind, row in zip(kinds, mine, strict=True)]
        body.append(["*the paper*", *(f"*{_theirs(row)}*" for row in mine[-1])])
    return table(["", *DATASETS.values()], body)


def _ours(row: Row | None) -> str:
    return "–" if row is None or row.mean is None else f"{row.mean:.1f} ± {row.std:.1f}"


def _theirs(row: Row | None) -> str:
    return "–" if row is None or row.paper_mean is None else f"{row.paper_mean:.1f} ± {row.paper_std:.1f}"


def benchmark(name: str) -> tuple[str, Records] | None:
    """The machine and the measurements of a recorded benchmark."""
    path = RESULTS / "benchmarks" / f"{name}.json"
    if not path.exists():
        return None
    found = json.loads(path.read_text(encoding="utf-8"))
    return found["machine"], {(r["case"], r["metric"]): r for r in found["records"]}


def engine(_: Results) -> str:
    """Epochs of the serial loop and of the engine, on each machine that was measured."""
    body = []
    for name in ("engine-h200", "engine-cpu"):
        if (found := benchmark(name)) is None:
            continue
        machine, records = found
        cases = [f"{model}+P-reg {dataset.lower()}" for model, dataset in ENGINE]
        fastest = [_fastest(records, case) for case in cases]
        serial, least = (
            [records.get((case, metric)) for case in cases] for metric in ("serial epoch", "limit by memory bandwidth")
        )
        body += [
            [f"{machine}: serial epoch", *map(_time, serial)],
            ["… engine, per run", *map(_time, fastest)],
            ["… speedup", *map(_ratio, fastest)],
            ["… memory-bandwidth limit", *map(_time, least)],
        ]
    return table(["", *(", ".join(each) for each in ENGINE)], body)


def learned(_: Results) -> str:
    """The plain model, the strength that a grid's validation picks, and learned ones: of every machine's record."""
    files = sorted((RESULTS / "benchmarks").glob("learned-mu-*.json"))
    records = {key: record for path in files for key, record in (benchmark(path.stem) or ("", {}))[1].items()}
    methods = list(dict.fromkeys(metric.rpartition(":")[0] for _, metric in records))
    found = {case for case, _ in records}

    def cell(case: str, method: str) -> str:
        mu, test = (records[case, f"{method}: {key}"]["value"] for key in ("μ", "test"))
        return f"{test:.1f}" + ("" if method == "plain" else f" (μ = {mu:.2g})")

    body = [[title, *(cell(case, method) for method in methods)] for case, title in DATASETS.items() if case in found]
    return table(["", *methods], body)


def speed(_: Results) -> str:
    """The engine's best batch against the serial loop, for a few cases of each machine."""
    body = []
    for name, shown in (("engine-h200", (0, 3, 4, 5)), ("engine-cpu", (0, 3, 4))):
        machine, records = benchmark(name) or ("", {})
        for model, dataset in (ENGINE[i] for i in shown):
            case = f"{model}+P-reg {dataset.lower()}"
            fastest = _fastest(records, case)
            if fastest is not None:
                at_once = fastest["metric"].removeprefix("engine, per replica").removeprefix(" of ") or ON_CPU
                runs = f"{int(at_once):,}"
                serial = _time(records.get((case, "serial epoch")))
                where = machine.partition(", torch")[0]
                body.append([f"{model}, {dataset}", where, runs, serial, _time(fastest), f"**{_ratio(fastest)}**"])
    return table(["", "machine", "runs at once", "PyG loop", "propreg", "faster"], body)


def rivals(_: Results) -> str:
    """The engine's epochs beside those of what a good user would write, by the number of runs."""
    records = (benchmark("rivals-h200") or ("", {}))[1]
    found: dict[str, dict[int, dict[str, Any]]] = {}
    for (_case, metric), record in records.items():
        name, runs = metric.split(", per run of ")
        found.setdefault(name, {})[int(runs)] = record
    sizes = sorted({runs for each in found.values() for runs in each})

    def cell(record: dict[str, Any] | None) -> str:
        return _time(record) + (f" ({_ratio(record)})" if record and record["ratio"] else "")

    body = [[name, *(cell(each.get(runs)) for runs in sizes)] for name, each in found.items()]
    return table(["per run and epoch", *(f"{runs:,} run{'s' * (runs > 1)}" for runs in sizes)], body)


def large(_: Results) -> str:
    """What large graphs cost on a GPU; of sampling, how many seeds in a second from batches that fill it."""
    machine, records = benchmark("scale-h200") or ("", {})
    body = []
    for (case, metric), record in records.items():
        if case.startswith("sample") and (record["unit"] != "M seeds/s" or ", 8192 seeds" not in metric):
            continue
        ratio = "" if record["ratio"] is None else f"{_ratio(record)} {record['baseline']}"
        body.append([case, metric, f"{record['value']:.3g} {record['unit']}", ratio])
    return table(["", machine, "", "against"], body)


def term(_: Results) -> str:
    """The regularizer against the official way and against two bare products."""
    head = ["graph", "machine", "speedup over official", "time / two bare products", "peak memory, official / ours"]
    metrics = ("speed-up", "time over bare products", "peak memory saved")
    body = []
    for name in ("regularizer-cpu", "regularizer-h200"):
        machine, records = benchmark(name) or ("", {})
        body += [
            [case, machine, *(_ratio(records.get((case, metric))) for metric in metrics)]
            for case in dict.fromkeys(case for case, _ in records)
        ]
    return table(head, body)


def _fastest(records: Records, case: str) -> dict[str, Any] | None:
    mine = [r for (name, metric), r in records.items() if name == case and metric.startswith("engine, per replica")]
    return min(mine, key=lambda r: float(r["value"])) if mine else None


def _time(record: dict[str, Any] | None) -> str:
    if record is None:
        return "–"
    value, unit = record["value"], record["unit"]
    if value >= 1000:
        value, unit = value / 1000, {"ms": "s", "µs": "ms"}[unit]
    return f"{value:.3g} {unit}"


def _ratio(record: dict[str, Any] | None) -> str:
    if record is None:
        return "–"
    ratio = float(f"{record['ratio']:.3g}")
    return f"{ratio:,.0f}×" if ratio >= 100 else f"{ratio:g}×"


# Choosing μ.


def picked(results: Results) -> str:
    """μ picked on validation and its gain, by dataset and model."""
    return _by_place(results, lambda c: f"{c.picked.mu:g} ({signed(c.picked.gain)})")


def helping(results: Results) -> str:
    """The strengths that help, by dataset and model."""
    return _by_place(results, _range)


def _by_place(results: Results, cell: Callable[[Curve], str]) -> str:
    found = {(c.line.dataset, c.line.model): cell(c) for c in curves("table1", OFFICIAL_FORM, results)}
    rows = [[title, *(found.get((name, model), "–") for model in MODELS)] for name, title in DATASETS.items()]
    return table(["dataset", *MODELS.values()], rows)


def _range(found: Curve) -> str:
    helps = [point.mu for point in found.helping]
    if not helps:
        return "none"
    between = [point.mu for point in found.points if helps[0] <= point.mu <= helps[-1]]
    gaps = "" if between == helps else ", with gaps"
    return f"{helps[0]:g} … {helps[-1]:g}{gaps}" if len(helps) > 1 else f"{helps[0]:g}"


def few_labels(results: Results) -> str:
    """GCN on Cora in the paper form: the gain by number of training nodes and μ."""
    found = by_training_nodes(results, PAPER_FORM)
    strengths = [point.mu for point in found[SIZES[0]].points] if SIZES[0] in found else []
    rows = [
        [f"μ = {mu:g}", *(signed(found[size].points[i].gain) if size in found else "–" for size in SIZES)]
        for i, mu in enumerate(strengths)
    ]
    plain = [f"{found[size].points[0].plain_val:.1f}" if size in found else "–" for size in SIZES]
    best = [f"{found[size].picked.val:.1f}" if size in found else "–" for size in SIZES]
    head = ["training nodes", *(f"{size:,}" for size in SIZES)]
    return table(head, [*rows, ["validation, plain", *plain], ["validation, best μ above 0", *best]])


# Paper form or official-code form.


def both_forms(experiment: str, results: Results) -> dict[tuple[str, str], tuple[Curve, Curve]]:
    """The curves of both forms by dataset and model, the official code's first, where both are recorded."""
    first, second = ({(c.line.dataset, c.line.model): c for c in curves(experiment, n, results)} for n in FORMS)
    return {at: (each, second[at]) for at, each in first.items() if at in second}


def forms(results: Results) -> str:
    """What each form gains, and the difference between them."""
    rows = []
    for experiment, split in (("table1", "random splits"), ("table-standard-gcn-gat", "public split")):
        for (dataset, model), pair in both_forms(experiment, results).items():
            official, paper = (c.picked for c in pair)
            cells = [f"{signed(p.gain)} (μ = {p.mu:g})" for p in (paper, official)]
            rows.append([f"{MODELS[model]}, {DATASETS[dataset]}, {split}", *cells, signed(paper.test - official.test)])
    return table(["where", "paper form", "official-code form", "paper − official code"], rows)


def ablation(results: Results, which: int) -> str:
    """The changes of the formula (0) or of the training (1), as ``propreg table ablation`` lists them."""
    experiment = load_experiment("ablation")
    found = listings(experiment, experiment.lines, results)
    return table(found[which].head, found[which].rows) if found else "–"


def comparators(results: Results) -> str:
    """Each method of Table 2 without and with P-reg, by its own rule.

    Bold is significantly better and slanted significantly worse, at p < 0.05. † are settings of ours, and ‡ is a
    strength at the end of the grid.
    """
    experiment = load_experiment(costs.NAME)
    rows = [row for row in table_rows(experiment, results, rule=OWN) if row.selection != "test"]
    datasets = dict.fromkeys(row.dataset for row in rows)
    found = {(row.model, row.method, row.dataset): row for row in rows}
    body = []
    for model in dict.fromkeys(row.model for row in rows):
        plain, ours = ([found.get((model, method, name)) for name in datasets] for method in ("plain", "preg"))
        theirs = [None if row is None else row.paper_mean for row in plain]
        printed = " / ".join(decimals(mean, 1) for mean in theirs) if any(theirs) else ""
        body.append([model_title(model), *map(_step, plain, ours), printed])
    return table(["", *(DATASETS[name] for name in datasets), "the paper, plain"], body)


def _step(plain: Row | None, ours: Row | None) -> str:
    """A plain mean, and that with P-reg."""
    chosen = plain or ours
    own = "†" if chosen is not None and recipe_of(chosen.model, chosen.dataset)[2].ours else ""
    before = f"–{own}" if plain is None or plain.mean is None else f"{decimals(plain.mean, 1)}{own}"
    if ours is None:
        return before
    mark = "" if ours.against_plain is None else {"better": "**", "worse": "*"}.get(ours.against_plain.verdict, "")
    after = "–" if ours.mean is None else f"{mark}{decimals(ours.mean, 1)}{mark}"
    return f"{before} → {after}{'‡' if ours.at_end and ours.mean is not None else ''}"


def training_costs(results: Results) -> str:
    """What a training of each method of Table 2 costs, as ``propreg table table2`` lists it."""
    experiment = load_experiment(costs.NAME)
    (found,) = costs.listings(experiment, experiment.lines, results, costs.find_costs([RESULTS]))
    return f"{found.title}\n\n{table(found.head, found.rows)}"


def best(results: Results) -> str:
    """The winners of the search for the best result and what P-reg adds, or how far it is."""
    found = search.searches(load_experiment("best").lines, results)
    shown = [f"{each.title}.\n\n{table(each.head, each.rows)}" for each in search.listings(found)]
    return "\n\n".join([*shown, *search.notes(found)])


# The study: our numbers and the paper's.


def differing(results: Results) -> list[tuple[str, Row, Row | None]]:
    """Where the verdict is higher or lower: the table, the row picked on validation, and the best on test."""
    found, seen = [], set()
    for experiment in EXPERIMENTS:
        rows = table_rows(load_experiment(experiment), results)
        best = {_place(row): row for row in rows if row.selection == "test"}
        for row in rows:
            known = (*_place(row), row.paper_mean)
            if row.selection == "test" or row.verdict not in ("higher", "lower") or known in seen:
                continue
            seen.add(known)  # Appendix F prints numbers of Table 1 again
            found.append((experiment, row, best.get(_place(row))))
    return found


def _place(row: Row) -> tuple[str, str, str, str]:
    return row.model, row.dataset, row.method, row.preset


def disagreements(results: Results) -> str:
    """The same as a table."""
    rows = []
    for experiment, row, best in differing(results):
        plus = "" if row.method == "plain" else f" + {method_title(row.method, row.preset)}"
        name = f"{model_title(row.model)}{plus}"
        where = f"{EXPERIMENTS[experiment]}: {name}, {DATASETS[row.dataset]}"
        ours, theirs = mean_std(row.mean, row.std), mean_std(row.paper_mean, row.paper_std)
        rows.append([where, ours, "" if best is None else decimals(best.mean), theirs, row.verdict])
    return table(["where", "ours", "ours, best on test", "the paper", "verdict"], rows)


def choices_of_mu(results: Results) -> str:
    """P-reg in Table 1 with μ chosen in three ways, and the paper's number."""
    rows = []
    for c in sorted(curves("table1", OFFICIAL_FORM, results), key=lambda c: list(MODELS).index(c.line.model)):
        theirs = paper_number("table1", c.line.model, OFFICIAL_FORM, c.line.dataset)
        if theirs is not None:
            ways = (c.picked, c.best_on_test, published(c, results))
            cells = ["–" if p is None else f"{decimals(p.test)} ({p.mu:g})" for p in ways]
            rows.append([f"{MODELS[c.line.model]}, {DATASETS[c.line.dataset]}", *cells, decimals(theirs[0])])
    return table(["P-reg with", "picked on validation", "best on test", "at the published μ", "the paper"], rows)


# Pages that quote other files and the library.


def citation(_: Results) -> str:
    """CITATION.cff."""
    return f"```yaml\n{(ROOT / 'CITATION.cff').read_text(encoding='utf-8').strip()}\n```"


def one_node(_: Results) -> str:
    """What each φ makes of the node in the picture."""
    from figures import one_node as node

    formulas = {
        "squared_error": r"$\frac12 \lVert (\hat A Z)_i - z_i \rVert^2$",
        "kl": r"$\sum_c P_{ic} \log (P_{ic} / Q_{ic})$",
        "cross_entropy": r"$-\sum_c P_{ic} \log Q_{ic}$",
    }
    values: Mapping[str, float] = node.data().values
    return table(
        ["`phi=`", "formula", "here"], [[f'`"{phi}"`', text, f"{values[phi]:.2f}"] for phi, text in formulas.items()]
    )


def commands(_: Results) -> str:
    """The reference of the command line."""
    from building.commands import reference

    return reference()


def exit_codes(_: Results) -> str:
    """The exit codes."""
    from building.commands import exit_codes as codes

    return codes()


def promises(_: Results) -> str:
    """What is promised of files, kills and servers, and how many inputs it was tried with."""
    from building.promises import rows

    return table(["promise", "how it is tested", "in `tests/`", "inputs", "broken"], list(rows()))


def molecule_gains(results: Results) -> str:
    """What each form of P-reg gains in Table 3."""
    from building.molecules import gains

    return gains(results)


def molecule_costs(_: Results) -> str:
    """What a step of each form costs."""
    from building.molecules import costs

    return costs()


def examples(_: Results) -> str:
    """Every program of examples/: its first sentence, and its code."""
    shown = []
    for file in sorted((ROOT / "examples").glob("*.py")):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        said = (ast.get_docstring(tree) or "").strip()
        first = tree.body[1].lineno - 1
        code = "\n".join(file.read_text(encoding="utf-8").splitlines()[first:]).strip()
        title = file.stem.replace("_", " ").capitalize()
        shown.append(f"## {title}\n\n`examples/{file.name}`: {said[0].lower()}{said[1:]}\n\n```py\n{code}\n```")
    return "\n\n".join(shown)


TABLES: dict[str, Callable[[Results], str]] = {
    "accuracies": accuracies,
    "engine": engine,
    "speed": speed,
    "learned": learned,
    "rivals": rivals,
    "large": large,
    "term": term,
    "picked": picked,
    "helping": helping,
    "few labels": few_labels,
    "forms": forms,
    "formula changes": lambda results: ablation(results, 0),
    "training changes": lambda results: ablation(results, 1),
    "best": best,
    "comparators": comparators,
    "costs": training_costs,
    "disagreements": disagreements,
    "choices of μ": choices_of_mu,
    "citation": citation,
    "one node": one_node,
    "commands": commands,
    "exit codes": exit_codes,
    "examples": examples,
    "promises": promises,
    "molecule gains": molecule_gains,
    "molecule costs": molecule_costs,
}


@cache
def region(name: str, results: Results) -> str:
    """The Markdown of a region."""
    if name.startswith("api "):
        from building.reference import entry

        return entry(name)
    return TABLES[name](results)
