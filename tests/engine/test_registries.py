"""What the registries hold, and that reading it needs neither torch nor NumPy."""

import subprocess
import sys
from dataclasses import fields

import pytest

from propreg.engine import Method, Model
from propreg.engine.models import MODELS
from propreg.engine.regularizers import REGULARIZERS, tunable
from propreg.engine.validate import check_model, check_settings

READ = """
import sys
from propreg.engine.models import MODELS
from propreg.engine.regularizers import REGULARIZERS
said = [(e.title, e.default, e.default.width, e.default.identity(), e.dropout) for e in MODELS.values()]
said += [(e.title, e.preset("paper"), e.preset("reference"), e.grid) for e in REGULARIZERS.values()]
print(len(said), sorted({"torch", "numpy", "torch_geometric"} & sys.modules.keys()))
"""


def test_entries_are_read_without_torch() -> None:
    found = subprocess.run([sys.executable, "-c", READ], capture_output=True, text=True, check=True)
    assert found.stdout == f"{len(MODELS) + len(REGULARIZERS)} []\n"


@pytest.mark.parametrize("name", MODELS)
def test_an_architecture_knows_its_own_settings(name: str) -> None:
    entry = MODELS[name]
    known = {field.name for field in fields(entry.kind)}
    assert entry.name == name
    assert {*entry.streams, *entry.settings, *entry.defaults} <= known
    assert not {"input_dropout", "attention_dropout"} & {*entry.streams}
    assert entry.default.name == name
    check_model(entry.default)
    check_settings(entry.default)


@pytest.mark.parametrize("name", REGULARIZERS)
def test_a_regularizer_knows_its_own_options(name: str) -> None:
    entry = REGULARIZERS[name]
    known = {field.name for field in fields(entry.kind)}
    assert entry.name == name
    assert {*entry.options, *(option for preset in entry.presets.values() for option in preset)} <= known
    assert list(entry.grid) == sorted(entry.grid)
    assert all(0 < strength <= (1 if entry.bounded else strength) for strength in entry.grid)
    assert {*entry.first_look} <= {*entry.grid}


def test_the_plain_model_has_nothing_to_tune() -> None:
    assert list(tunable()) == [name for name in REGULARIZERS if name != "plain"]


def test_an_unknown_name_raises_and_a_look_does_not() -> None:
    with pytest.raises(ValueError, match=r"model must be one of 'gcn', .*, got 'gta'. Did you mean 'gat'\?"):
        MODELS["gta"]
    with pytest.raises(ValueError, match=r"method must be one of 'plain', .*, got 'Preg'. Did you mean 'preg'\?"):
        REGULARIZERS["Preg"]
    assert "gta" not in MODELS
    assert MODELS.get("gta") is None
    with pytest.raises(ValueError, match=r"preset must be one of 'paper', 'reference', got 'papers'"):
        Method.preset("papers")  # type: ignore[arg-type]


def test_settings_of_unknown_names_can_be_held() -> None:
    """A store may hold runs of a model that this version does not know."""
    assert Model.of("gcnx", hidden=3) == Model("gcnx", hidden=3)
    assert Method.of("unheard").name == "unheard"
