"""Parts of an experiment: presets with commas can be named, and several values behind one key are refused."""

import pytest

from propreg.store.errors import StudyError, UsageError
from propreg.study.spec.experiment import experiment_names, load_experiment, select_lines

PHI = load_experiment("table-phi")


@pytest.mark.parametrize("name", experiment_names())
def test_every_preset_can_be_named_with_other_filters_beside_it(name: str) -> None:
    experiment = load_experiment(name)
    for preset in {line.preset for line in experiment.lines}:
        mine = [line for line in experiment.lines if line.preset == preset]
        model = mine[0].model
        assert list(select_lines(experiment, [f"preset={preset}"])) == mine
        wanted = [line for line in mine if line.model == model]
        assert list(select_lines(experiment, [f"model={model}, preset={preset}"])) == wanted
        assert list(select_lines(experiment, [f"preset={preset},model={model}"])) == wanted


def test_spaces_and_capitals_of_a_preset_do_not_matter() -> None:
    assert {line.preset for line in select_lines(PHI, ["preset=Reference,kl"])} == {"reference, KL"}


def test_two_presets_are_alternatives() -> None:
    chosen = select_lines(PHI, ["preset=reference, KL,preset=reference, KL/C"])
    assert {line.preset for line in chosen} == {"reference, KL", "reference, KL/C"}


@pytest.mark.parametrize(
    ("name", "only", "hint"),
    [
        ("table1", "dataset=cora,citeseer", "dataset=cora,dataset=citeseer"),
        ("table1", "model=gcn,dataset=cora, nowhere", "dataset=cora,dataset=nowhere"),
        ("table1", "preset=reference,paper", "preset=reference,preset=paper"),
        ("ablation", "preset=paper,reference", "preset=paper,preset=reference"),
    ],
)
def test_several_values_behind_one_key_are_refused_with_a_hint(name: str, only: str, hint: str) -> None:
    with pytest.raises(UsageError, match=f"A filter reads key=value for each value, as in {hint}, got "):
        select_lines(load_experiment(name), [only])


def test_a_preset_that_is_nearly_right_is_told_and_the_known_ones_can_be_told_apart() -> None:
    with pytest.raises(StudyError, match=r"Did you mean 'reference, KL'\? Known are: .*reference, 'reference, KL', "):
        select_lines(PHI, ["preset=reference, KLL"])
