"""How a run was made, and what to do next: settings, commands and a table for a paper, as text to copy."""

import shlex
from dataclasses import dataclass

from propreg.engine.models import known_model
from propreg.engine.regularizers import REGULARIZERS
from propreg.names import method_title, model_title
from propreg.report.run_numbers import Numbers
from propreg.report.run_record import RunRecord
from propreg.report.text import number
from propreg.statistics import Summary
from propreg.study.tables.pivot import tex

METRICS = ("accuracy", "balanced_accuracy", "macro_f1", "roc_auc", "average_precision")
"""Of ``propreg run``."""
PER_CLASS = ("train_per_class", "val_per_class")
CHOICES = (
    *("columns", *PER_CLASS, "scale", "metric", "select", "test", "batch"),
    *("lr", "weight_decay", "dropout", "patience", "hidden", "layers"),
)
GRAPH_CHOICES = ("hidden", "layers", "virtual_node", "dropout", "lr", "batch_size", "max_epochs")
_OTHER = {"mol-gin": "gcn", "mol-gcn": "gin"}
OWN = "my/folder"
"""What stands for a graph that is no benchmark: the record has its name and not its path."""


@dataclass(frozen=True)
class Step:
    """Something to do next: why, and the command."""

    why: str
    command: str


def command(run: RunRecord, benchmark: bool, **changes: str) -> str:
    """The command that makes the run, with every choice spelled out; empty for what only Python can train."""
    if not _in_terminal(run):
        return ""
    molecules = run.settings.get("molecules", "")
    source = "--molecules" if molecules else "--dataset" if benchmark else "--graph"
    options = {
        source: molecules or (run.dataset if benchmark else OWN),
        "--smiles-column": run.settings.get("smiles_column", ""),
        "--model": run.settings.get("models", run.model.removeprefix("mol-")),
        "--method": run.method,
        "--preset": run.preset,
        "--mu": ",".join(f"{mu:g}" for mu in run.mus[1:]),
        "--splits": str(len(run.splits)),
        "--seeds": str(run.seeds),
        "--max-epochs": run.settings.get("max_epochs", ""),
        **{f"--{name.replace('_', '-')}": run.settings[name] for name in CHOICES if name in run.settings},
    } | changes
    if molecules:
        options |= {"--method": "", "--splits": options["--splits"] if run.splits[0] != "scaffold" else ""}
    parts = [part for name, value in options.items() if value for part in (name, value)]
    parts += [part for name in targets_of(run) for part in ("--target", name)]
    parts += ["--directed"] * ("directed" in run.settings)
    return shlex.join(["propreg", "run", *parts])


def _in_terminal(run: RunRecord) -> bool:
    """Whether the model, the regularizer and the metric have names, and the graph has classes; or a table was read."""
    if run.graph["graphs"] is not None:
        return "molecules" in run.settings
    models = run.settings.get("models", run.model).split(",")
    known = all(known_model(name) is not None for name in models) and run.method in REGULARIZERS
    named = run.settings.get("metric", METRICS[0]) in METRICS
    return known and named and not {"task", "optimizer", "class_weight"} & run.settings.keys()


def targets_of(run: RunRecord) -> list[str]:
    """The columns that a run on a table learned."""
    return [each.name for each in run.targets] if "molecules" in run.settings else []


def call(run: RunRecord, benchmark: bool) -> str:
    """The same in Python."""
    if run.graph["graphs"] is not None:
        return _graphs_call(run, {})
    load = f"propreg.load_dataset({run.dataset!r}, split=0)" if benchmark else f"propreg.load_graph({_read(run)})"
    settings = {
        name: run.settings[name]
        for name in ("lr", "weight_decay", "patience", "max_epochs", "batch", *PER_CLASS)
        if name in run.settings
    }
    usual = {
        "metric": "accuracy",
        "select": "",
        "scale": "auto",
        "test": "",
        "task": "",
        "class_weight": "",
        "optimizer": "",
    }
    chosen = {name: value for name in usual if (value := run.settings.get(name, usual[name])) != usual[name]}
    arguments = [
        "data",
        _models(run),
        f"mu=[{', '.join(f'{mu:g}' for mu in run.mus[1:])}]",
        f"method={run.method!r}",
        f"preset={run.preset!r}",
        f"seeds={run.seeds}",
        *(f"{name}={value}" for name, value in settings.items()),
        *(f"{name}={value!r}" for name, value in chosen.items()),
    ]
    folds = run.settings.get("test") == "cv"
    several = benchmark and len(run.splits) > 1 and not folds
    if folds or (not benchmark and run.splits[0].startswith("random-")):
        arguments.append(f"splits={len(run.splits)}")
    if several:
        arguments.append(f"splits=official_splits({run.dataset!r})[:{len(run.splits)}]")
    first = "import propreg\n" + "from propreg.data.splits import official_splits\n" * several
    return f"{first}\ndata = {load}\nresult = propreg.fit({', '.join(arguments)})\nprint(result.summary())"


def _read(run: RunRecord) -> str:
    """The arguments that read the reader's own graph."""
    named = run.settings.get("columns", "")
    columns = dict(part.split("=", 1) for part in named.split(",")) if named else {}
    return ", ".join(
        [repr(OWN), *["directed=True"] * ("directed" in run.settings), *[f"columns={columns}"] * bool(columns)]
    )


def _models(run: RunRecord) -> str:
    """The argument that names the model, or all of them; one of the reader's own by its class."""
    size = [f"{name}={run.settings[name]}" for name in ("hidden", "layers") if name in run.settings]
    found = []
    for name in run.settings.get("models", run.model).split(","):
        made = f"propreg.engine.Model.of({', '.join([repr(name), *size])})" if size else repr(name)
        found.append(name if known_model(name) is None else made)
    return f"model={found[0]}" if len(found) == 1 else f"models=[{', '.join(found)}]"


def _graphs_call(run: RunRecord, changes: dict[str, str]) -> str:
    """The call of ``fit_graphs``, on the table of molecules or on a list that the reader has."""
    table, known = "molecules" in run.settings, run.settings
    number = str(len(run.splits))
    splits = {
        "random": {"splits": number} | ({"groups": "table.scaffolds()"} if table else {}),
        "scaffold": {"splits": '{"scaffold": table.scaffold_split()}'},
        "own": {},
    }.get(run.splits[0].partition("-")[0], {"splits": "splits"})
    arguments = {
        "model": repr(run.model.removeprefix("mol-")),
        "mu": f"[{', '.join(f'{mu:g}' for mu in run.mus[1:])}]",
        **({"task": repr(known["task"])} if "task" in known else {}),
        "preset": repr(run.preset),
        **splits,
        "seeds": str(run.seeds),
        **{name: known[name] for name in GRAPH_CHOICES if name in known},
    } | changes
    lines = ["import propreg"]
    if table:
        names = ", ".join(map(repr, targets_of(run)))
        lines += ["from propreg.molecules.table import read_table", ""]
        lines += [f"table = read_table({known['molecules']!r}, {known['smiles_column']!r}, [{names}])"]
    else:
        lines += ["", "graphs = ...  # your list of PyG Data"]
        lines += ["splits = ...  # the train, val and test graphs of each split"] * ("splits" in splits.values())
    lines += ["result = propreg.fit_graphs(", f"    {'table.graphs()' if table else 'graphs'},"]
    lines += [f"    {name}={value}," for name, value in arguments.items()]
    return "\n".join([*lines, ")", "print(result.summary())"])


def loop(run: RunRecord) -> str:
    """The line for a loop of one's own, with the chosen strength."""
    made = "propreg.PReg()" if run.preset == "paper" else f"propreg.PReg.preset({run.preset!r})"
    return f"regularizer = {made}\nloss = F.cross_entropy(z[train], y[train]) + {run.mu:g} * regularizer(z, edge_index)"


def latex(run: RunRecord, found: Numbers) -> str:
    """A table for booktabs."""
    rows = [
        (f"{model_title(run.model)}", found.plain),
        (f"{model_title(run.model)} + {method_title(run.method)}", found.chosen),
    ]
    body = "\n".join(f"{tex(name)} & {_mean(each)} \\\\" for name, each in rows)
    head = f"\\begin{{tabular}}{{lc}}\n\\toprule\n & {tex(run.dataset)} \\\\\n\\midrule"
    return f"{head}\n{body}\n\\bottomrule\n\\end{{tabular}}"


def next_steps(run: RunRecord, benchmark: bool) -> list[Step]:
    """What a reader of this verdict would do."""
    steps, table = list[Step](), "molecules" in run.settings
    graphs = run.graph["graphs"] is not None
    if not graphs and not _in_terminal(run):
        return steps

    def again(why: str, option: str, value: str) -> None:
        """The run with another value of an option: a command, or a call where there is none."""
        if graphs and not table:
            quoted = {"mu": f"[{value}]", "seeds": value, "splits": value}.get(option, repr(value))
            steps.append(Step(why, _graphs_call(run, {option: quoted})))
        else:
            steps.append(Step(why, command(run, benchmark, **{f"--{option}": value})))

    if run.verdict.kind == "helps":
        around = sorted({round(run.mu * factor, 6) for factor in (0.6, 0.8, 1.0, 1.25, 1.6)})
        again("Search more finely around the picked strength.", "mu", ",".join(f"{mu:g}" for mu in around))
        if table:
            steps.append(Step("Predict other molecules.", f"{_PREDICT} --molecules other.csv"))
        elif not graphs:
            steps.append(Step("Predict the nodes of another graph.", f"{_PREDICT} --graph other/folder"))
    elif run.verdict.kind == "inconclusive":
        drawn = len(run.splits) > 1 and (not graphs or run.splits[0].startswith("random-"))
        more = ("splits", 2 * len(run.splits)) if drawn else ("seeds", 2 * run.seeds)
        again("Train twice as many runs: the interval becomes narrower.", more[0], str(more[1]))
    elif graphs:
        again("Try the other model.", "model", _OTHER[run.model])
    else:
        again("See whether the edges help at all: train an MLP, which never sees them.", "model", "mlp")
    if run.preset in ("paper", "reference") and run.method == "preg":
        again("Try the other form of P-reg.", "preset", "reference" if run.preset == "paper" else "paper")
    return steps


_PREDICT = "propreg predict propreg-run/model.safetensors"


def _mean(found: Summary | None) -> str:
    return "--" if found is None else f"${number(found.mean).replace('−', '-')} \\pm {number(found.std)}$"
