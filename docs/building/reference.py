"""The Python reference: on a forge a signature and a sentence, on the site the whole docstring.

A region ``api propreg.PReg preset forward`` describes a class and the members named after it.
"""

import importlib
import inspect
import re
import textwrap
from types import ModuleType
from typing import Any

WIDTH = 88
# Made by the library, not by its users: how to construct them is no part of the reference.
RETURNED = ("propreg.FitResult", "propreg.statistics.Summary", "propreg.statistics.Difference")


def find(path: str) -> Any:
    """The object behind a dotted name.

    Example:
        >>> find("propreg.engine.Method.preset").__name__
        'preset'
    """
    try:
        return importlib.import_module(path)
    except ModuleNotFoundError:
        parent, _, name = path.rpartition(".")
        return getattr(find(parent), name)


def entry(region: str) -> str:
    """The Markdown of a region."""
    _, path, *members = region.split()
    thing = find(path)
    if isinstance(thing, ModuleType):
        return summary(thing)
    parts = [*([] if path in RETURNED else [_code(path, thing)]), summary(thing)]
    if path in RETURNED:
        parts.insert(0, f"**`{path}`**")
    for name in members:
        member = inspect.getattr_static(thing, name)
        if isinstance(member, property):
            parts.append(f"- `.{name}`: {summary(member)}")
        else:
            parts.append(f"- `.{name}{_parameters(getattr(thing, name))}`: {summary(member)}")
    return "\n\n".join(parts[:2]) + "\n\n" + "\n".join(parts[2:])


def directive(region: str) -> str:
    """What Sphinx reads in its place."""
    _, path, *members = region.split()
    thing = find(path)
    kind = "module" if isinstance(thing, ModuleType) else "class" if inspect.isclass(thing) else "function"
    if kind == "class" and issubclass(thing, BaseException):
        kind = "exception"
    lines = [f".. auto{kind}:: {path}"]
    lines += ["   :no-members:"] * (kind == "module")
    lines += [f"   :members: {', '.join(members)}"] * bool(members)
    lines += ["   :exclude-members: __init__, __new__"] * (path in RETURNED)
    return "\n".join(["```{eval-rst}", *lines, "```"])


def summary(thing: Any) -> str:
    """The first paragraph of a docstring as Markdown, with the formula below it."""
    first, _, rest = (inspect.getdoc(thing) or "").partition("\n\n")
    text = " ".join(first.split())
    text = re.sub(r"`([^`<]+) <([^>]+)>`_+", r"[\1](\2)", text)
    text = re.sub(r":math:`([^`]*)`", r"$\1$", text)
    text = re.sub(r":\w+:`~?\.?([^`]*)`", r"`\1`", text).replace("``", "`")
    formula = re.match(r"\.\. math::\n\n?((?:[ ]+[^\n]*\n?)+)", rest)
    return f"{text}\n\n$$\n{inspect.cleandoc(formula[1])}\n$$" if formula else text


def _code(path: str, thing: Any) -> str:
    call = path + _parameters(thing)
    if len(call) > WIDTH:
        inside = call[len(path) + 1 : -1]
        call = f"{path}(\n{textwrap.fill(inside, WIDTH, initial_indent='    ', subsequent_indent='    ')}\n)"
    return f"```py\n{call}\n```"


def _parameters(thing: Any) -> str:
    if inspect.isclass(thing) and issubclass(thing, BaseException):
        return ""
    found = inspect.signature(thing)
    plain = [each.replace(annotation=inspect.Parameter.empty) for each in found.parameters.values()]
    shown = [each for each in plain if each.name not in ("self", "cls")]
    text = str(found.replace(parameters=shown, return_annotation=inspect.Signature.empty))
    return re.sub(r"=<(?:function .*? at 0x\w+|factory)>", "=…", text)
