"""``propreg methods``: the models, training methods and regularizers, each with its paper and its idea in one line."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import typer

from propreg.cli.shared import Json, print_json

if TYPE_CHECKING:
    from propreg.engine.models.architecture import Architecture


def methods(as_json: Json = False) -> None:
    """List the models, training methods and regularizers, with their papers."""
    from propreg.engine.models import MODELS
    from propreg.engine.regularizers import tunable

    if as_json:
        models = [{"name": entry.name, "title": entry.title, **_about(entry)} for entry in MODELS.values()]
        regularizers = [{"name": entry.name, "title": entry.title} for entry in tunable().values()]
        return print_json({"models": models, "regularizers": regularizers})
    for line in _lines(list(MODELS.values()), [(entry.name, entry.title) for entry in tunable().values()]):
        typer.echo(line)


def _about(entry: "Architecture") -> dict[str, object]:
    source = entry.source
    kind = "training method" if entry.phases or entry.trainer else "architecture"
    paper = None if source is None or not source.year else f"{source.authors}, {source.venue} {source.year}"
    recipes = {name: "ours" if recipe.ours else "published" for name, recipe in entry.recipes.items()}
    return {"kind": kind, "paper": paper, "idea": source.idea if source else "", "settings": recipes}


def _lines(models: "list[Architecture]", regularizers: list[tuple[str, str]]) -> Iterator[str]:
    from propreg.console import wrapped

    yield "Models and training methods (--model)"
    wide = 2 + max(len(entry.name) for entry in models)
    for entry in models:
        about = _about(entry)
        paper = f" ({about['paper']})" if about["paper"] else ""
        yield from wrapped(f"  {entry.name:<{wide}}{entry.title}: {about['idea']}{paper}", " " * (wide + 2))
    yield "\nRegularizers, on top of each of them (--method)"
    for name, title in regularizers:
        yield f"  {name:<{max(wide, 20)}}{title}"
