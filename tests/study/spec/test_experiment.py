"""The experiments of the package: how many runs, which, and that nothing in them is misspelled."""

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from propreg.data.benchmarks.catalog import MOLECULE_SETS, NODE_SETS
from propreg.engine.models import MODELS
from propreg.engine.models.architecture import Recipe
from propreg.engine.spec import Method, Protocol
from propreg.names import DATASETS
from propreg.store.errors import StudyError
from propreg.store.results import load_results
from propreg.study.spec.batches import cut
from propreg.study.spec.experiment import experiment_names, load_experiment, read_experiment, select_lines
from propreg.study.spec.presets import named_grid, named_method
from propreg.study.tables.picked import picked_text

RUNS = {
    "best": 76_800,  # the first rung of each search
    "beyond": 10_080,
    "controls": 41_650,
    "ten-splits": 48_650,
    "tuned": 17_920,  # the first rung of each search
    "random-splits": 23_100,
    "label-rates": 32_340,
    "wrong-edges": 13_200,
    "wrong-labels": 13_200,
    "table1": 59_325,
    "table-phi": 42_350,
    "table-phi-log": 39_550,
    "table-standard-gcn-gat": 2_460,
    "fig-training-nodes": 7_150,
    "fig-mask": 3_850,
    "fig-strength": 6_150,
    "fig-depth": 8_050,
    "fig-tsne": 50,
    "ablation": 30_125,
    "digits-smoke": 200,
    "table2": 4_563,
    "table2-100-seeds": 3_000,
    "table3": 2_040,
}
RECORD = Path(__file__).parents[3] / "results"
PART = '[[parts]]\ndatasets = ["digits"]\nmodels = ["gcn"]\nmethods = ["plain"]\nsplits = 1\nseeds = 1\n'


def test_every_experiment_has_its_count() -> None:
    assert experiment_names() == sorted(RUNS)


@pytest.mark.parametrize("name", sorted(RUNS))
def test_counts(name: str) -> None:
    experiment = load_experiment(name)
    runs = list(experiment.runs())
    assert len(runs) == RUNS[name]
    assert len({run.key for run in runs}) == len(runs)
    assert all(run.cell.dataset in {**NODE_SETS, **MOLECULE_SETS} for run in runs)


def test_table1_follows_the_paper() -> None:
    lines = {(line.dataset, line.model, line.method.name): line for line in load_experiment("table1").lines}
    assert {key[0] for key in lines} == set(DATASETS)
    reference = lines["citeseer", "gcn", "preg-reference"]
    assert reference.cells[0].method == Method.preset("reference")
    assert [cell.strength for cell in reference.cells] == [round(0.05 * i, 2) for i in range(1, 21)]
    assert {cell.labels for cell in reference.cells} == {"authors"}
    assert (len(reference.splits), len(reference.seeds)) == (5, 5)
    assert {lines[name, "gcn", "plain"].cells[0].weight_decay for name in ("cora", "citeseer", "pubmed")} == {5e-4}
    assert {lines[name, "gcn", "plain"].cells[0].weight_decay for name in ("cs", "physics", "photo")} == {0.0}
    gat = lines["cora", "gat", "plain"].cells[0]
    assert (gat.model.hidden, gat.model.heads, gat.model.input_dropout, gat.dropout) == (16, 8, 0.6, 0.6)
    assert gat.model.attention_dropout == 0.6
    assert {key[1] for key in lines} == {"gcn", "gat", "mlp"}
    for name in ("label_smoothing", "confidence_penalty-paper", "laplacian-mean"):
        assert len(lines["cora", "gcn", name].cells) >= 10
    assert min(named_grid("laplacian-mean")) == 1e-5


def test_the_ablation_has_the_papers_mlp_beside_the_codes() -> None:
    lines = {(line.dataset, line.model, line.method.name): line for line in load_experiment("ablation").lines}
    small, large = (lines["cora", model, "plain"].cells[0] for model in ("mlp-16", "mlp"))
    assert (small.model.hidden, small.dropout) == (16, 0.0)
    assert (large.model.hidden, large.dropout) == (64, 0.5)


def test_later_strengths_are_added_to_a_grid() -> None:
    added = PART.replace('"plain"', '"plain", "preg-paper"') + "later = [0.001, 0.05]"
    plain, line = read_experiment("mine", added).lines
    assert [cell.strength for cell in plain.cells] == [0.0]
    assert [cell.strength for cell in line.cells] == [0.001, *named_grid("preg")]
    with pytest.raises(StudyError, match="later strengths are added to a method's own grid"):
        read_experiment("mine", added + "\nstrengths = [0.1]")


def test_random_splits_are_a_hundred_with_one_seed() -> None:
    lines = load_experiment("random-splits").lines
    assert {(line.splits, line.seeds, line.measures) for line in lines} == {(tuple(range(100)), (0,), True)}
    assert {(cell.split_kind, cell.labels) for line in lines for cell in line.cells} == {("random", "pyg")}


def test_the_halves_of_p_reg_are_registered() -> None:
    lines = {line.method.name: line for line in load_experiment("controls").lines}
    assert lines["entropy"].cells[0].method == Method("confidence_penalty", variant="official", nodes="all")
    assert lines["preg-paper_kl"].cells[0].method == Method("preg", phi="kl")
    assert {line.rules for line in lines.values()} == {("prior_corrected",)}


SWEPT = """
split_kind = "natural"
per_class = [1, 5]
wrong_edges = [0.1]
wrong_labels = [0.0, 0.3]
"""


def test_settings_that_are_swept_have_lines_of_their_own() -> None:
    lines = read_experiment("mine", PART.replace('"plain"', '"preg-paper"') + "strengths = [0.1]\n" + SWEPT).lines
    assert [line.variant for line in lines] == [
        f"{n} per class, 10 % wrong edges, {share} % wrong labels" for n in (1, 5) for share in (0, 30)
    ]
    cell = lines[-1].cells[0]
    assert (cell.split_kind, cell.per_class, cell.wrong_edges, cell.wrong_labels) == ("natural", 5, 0.1, 0.3)
    assert cell.plain == replace(cell, method=Method(), strength=0.0)
    assert cell.split_name(2) == "natural/2/5 per class"
    assert "wrong" not in lines[0].cells[0].text.replace("wrong_edges", "")
    batches = cut(lines)
    assert len({(run.cell.wrong_edges, run.cell.wrong_labels) for run in batches[0].runs}) == 1
    assert sum(len(batch.runs) for batch in batches) == 4


def test_masks_take_the_strengths_that_table1_picks() -> None:
    """Of the places whose row is complete; the others keep the published ones until then."""
    table = select_lines(load_experiment("table1"), ["method=preg-reference"])
    picked = tomllib.loads(picked_text(table, load_results(RECORD)))
    masks = select_lines(load_experiment("fig-mask"), ["method=preg-reference"])
    known = {f"{line.dataset}/{line.model}": {cell.strength for cell in line.cells} for line in masks}
    shared = known.keys() & picked.keys()
    assert len(shared) >= 12
    assert {place: known[place] for place in shared} == {place: {picked[place]} for place in shared}


def test_the_public_split_takes_pygs_labels() -> None:
    cells = [cell for line in load_experiment("table-standard-gcn-gat").lines for cell in line.cells]
    assert {(cell.labels, cell.split_kind) for cell in cells} == {("pyg", "public")}


def test_table2_has_a_common_rule_beside_each_model_s_own() -> None:
    lines = load_experiment("table2").lines
    assert {line.cells[0].protocol.rule for line in lines} == {"latest_best"}
    own = {line.model: line.rules for line in lines}
    assert own["grand"] == ("loss_or_accuracy",)
    assert own["gcnii"] == ("val_loss",)
    assert own["o-bvat"] == own["s-bvat"] == ("last",)
    assert own["nasa"] == ("first_best",)
    assert {line.dataset: line.rules for line in lines if line.model == "graphvat"} == {
        "cora": ("last_in_window",),
        "citeseer": ("last_on_rise",),
        "pubmed": ("last_in_window",),
    }
    assert {(line.cells[0].split_kind, line.splits, len(line.seeds)) for line in lines} == {
        ("public", (0,), 10),
        ("public", (0,), 1),
    }
    assert (own["graph-unet"], own["gam"]) == (("first_best",), ("strict",))
    assert {len(line.cells) for line in lines if line.model in ("graph-unet", "gam")} == {1, 3}
    grand = {line.dataset: line.cells[0] for line in lines if line.model == "grand"}
    assert (grand["pubmed"].lr, grand["pubmed"].dropout, grand["pubmed"].patience) == (0.2, 0.8, 100)
    assert {cell.protocol.max_epochs for cell in grand.values()} == {2500}
    assert not next(line for line in lines if line.model == "tuned-gcn").cells[0].normalize


def test_plain_runs_are_shared_between_experiments() -> None:
    table = {run.key for run in load_experiment("table1").runs()}
    mask = [run for run in load_experiment("fig-mask").runs() if run.cell.method.name == "plain"]
    assert len(mask) == 2 * 7 * 25
    assert all(run.key in table for run in mask)


def test_the_whole_graph_unmasked_is_table1s_run() -> None:
    table = {run.key for run in load_experiment("table1").runs()}
    line = select_lines(load_experiment("fig-mask"), ["dataset=cora,model=gcn"])[-1]
    assert line.variant == "unmask 1"
    assert all(run.key in table for run in line.runs())


def test_kl_by_classes_has_the_datasets_factor() -> None:
    assert named_method("preg-kl_by_classes").on(4).phi_scale == 0.25
    line = select_lines(load_experiment("table-phi"), ["dataset=cora,model=gcn,method=preg-kl_by_classes"])[0]
    assert line.cells[0].method.phi_scale == pytest.approx(1 / 7)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("title = [", "is not TOML"),
        ("title = 'nothing'", "has no \\[\\[parts\\]\\]"),
        (PART.replace("seeds = 1", ""), "has no seeds: each needs datasets, models, methods, splits, seeds"),
        (PART + 'color = "red"', "no setting of experiment mine 'color'"),
        (PART.replace("digits", "digit"), "Did you mean 'digits'"),
        (PART.replace("gcn", "gcm"), "no model 'gcm'"),
        (PART.replace("plain", "pleg"), "no method 'pleg'"),
        (PART + 'split_kind = "mine"', "no split_kind 'mine'"),
        (PART + 'measure = "mine"', "no measure 'mine'"),
        (PART + "per_class = [5]", "per_class is for splits that are drawn: write split_kind = random or natural"),
        (PART + 'rules = ["prior_corrected"]', "prior_corrected among the rules needs measures = true"),
        (PART.replace("plain", "preg-paper") + 'strengths = "fine"', "no grid 'fine'"),
        (PART.replace("plain", "preg-paper") + 'strengths = { "cora/gcn" = 1 }', "no strength for 'digits/gcn'"),
        (PART.replace("digits", "ogbg-molhiv"), "ogbg-molhiv has no official split: molecules have a scaffold split"),
    ],
)
def test_bad_experiments_say_what_is_wrong(text: str, says: str) -> None:
    with pytest.raises(StudyError, match=says):
        read_experiment("mine", text)


@pytest.mark.parametrize(
    ("only", "says"),
    [
        ("dataset=cors", "no dataset in table1 'cors'. Did you mean 'cora'\\? Known are: citeseer, "),
        ("hue=red", "no filter 'hue'. Known are: dataset, model, method, preset, split"),
        ("cora", "reads key=value"),
        ("method=preg-referense", "Did you mean 'preg-reference'"),
    ],
)
def test_bad_filters_name_the_known_ones(only: str, says: str) -> None:
    with pytest.raises(StudyError, match=says):
        select_lines(load_experiment("table1"), [only])


def test_filters_and_seeds() -> None:
    table = load_experiment("table1")
    lines = select_lines(table, ["dataset=Cora,dataset=photo", "model=gcn,method=label-smoothing"], [0, 3])
    assert [(line.dataset, line.seeds) for line in lines] == [("cora", (0, 3)), ("photo", (0, 3))]
    assert {line.method.name for line in select_lines(table, ["method=preg"])} == {"preg-reference", "preg-paper"}
    assert select_lines(table, ["split=official"]) == table.lines
    with pytest.raises(StudyError, match="no seed in table1 7"):
        select_lines(table, [], [7])
    with pytest.raises(StudyError, match="No line of table1 matches"):
        select_lines(table, ["method=plain,preset=paper"])


PUBLISHED = """
[[parts]]
datasets = ["cora", "citeseer"]
models = ["mlp"]
methods = ["plain", "preg-paper"]
strengths = [0.1]
split_kind = "public"
splits = 1
seeds = 1
published = true
"""


def test_published_settings_of_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    recipes = {
        "cora": Recipe({"hidden": 8}, {"lr": 0.2, "rule": "val_loss", "max_epochs": 7, "patience": 9}, normalize=False),
        "citeseer": Recipe({}, {"weight_decay": 0.1, "dropout": 0.25}),
    }
    monkeypatch.setitem(MODELS, "mlp", replace(MODELS["mlp"], recipes=recipes, training={"max_epochs": 50}))
    cora, with_preg, citeseer, _ = read_experiment("mine", PUBLISHED).lines
    cell = cora.cells[0]
    assert (cell.model.hidden, cell.lr, cell.patience, cell.dropout, cell.weight_decay) == (8, 0.2, 9, 0.5, 5e-4)
    assert (cell.protocol, cell.normalize, cora.rules) == (Protocol("val_loss", 7), False, ())
    assert replace(with_preg.cells[0], method=Method(), strength=0.0) == cell
    cell = citeseer.cells[0]
    assert (cell.model.hidden, cell.dropout, cell.weight_decay, cell.normalize) == (64, 0.25, 0.1, True)
    assert cell.protocol == Protocol("official", 50)
    common = read_experiment("mine", PUBLISHED + 'rule = "latest_best"\nmax_epochs = 30').lines
    assert [line.rules for line in common] == [("val_loss",), ("val_loss",), ("official",), ("official",)]
    assert {line.cells[0].protocol for line in common} == {Protocol("latest_best", 30)}
    with pytest.raises(StudyError, match=r"no published recipe of mlp for 'pubmed'\. Known are: cora, citeseer"):
        read_experiment("mine", PUBLISHED.replace("citeseer", "pubmed"))
