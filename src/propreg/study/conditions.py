"""Whether a run was trained under the conditions of today, as far as its session noted them: then bits are equal."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from propreg.study.figures.words import listed

PROCESSOR = "processor"


@dataclass(frozen=True)
class Conditions:
    """How those of a recorded run compare with those of today.

    Args:
        differs: What has changed, in words.
        untold: What was not noted.
        mixed: What is as today in some of the sessions that may have trained the run, and not in others.
    """

    differs: tuple[str, ...] = ()
    untold: tuple[str, ...] = ()
    mixed: tuple[str, ...] = ()

    @property
    def same(self) -> bool:
        """Whether everything is known and equal."""
        return not (self.differs or self.untold or self.mixed)

    def sentence(self) -> str:
        """What may be expected of a training in the same batch."""
        if self.differs:
            return f"Equal bits were not expected: {'; '.join(self.differs)}."
        if not self.same:
            not_known = {
                "not recorded": self.untold,
                "not the same in all sessions that may have trained it": self.mixed,
            }
            why = "; ".join(f"{what}: {listed(names)}" for what, names in not_known.items() if names)
            return f"Equal bits are expected if this is the same machine and code; {why}."
        return "Equal bits were expected: the batch, the device, the versions and the engine are those of the record."


def compare_conditions(today: dict[str, Any], sessions: Iterable[dict[str, Any]]) -> Conditions:
    """Those of today, as a trainer tells them, with those of all sessions that may have trained a run.

    Example:
        >>> today = {"device": "cuda: H200", "torch": "2.11"}
        >>> compare_conditions(today, [{"device": "cuda: H200", "torch": "2.11", "runs": 3}]).same
        True
        >>> compare_conditions(today, [{"device": "cuda: H200", "torch": "2.10"}]).differs
        ('torch was 2.10 and is 2.11',)
        >>> compare_conditions(today, [{"device": "cuda: H200"}]).untold
        ('torch',)
    """
    noted = list(sessions)
    differs, untold, mixed = list[str](), list[str](), list[str]()
    for name, now in today.items():
        then = [session.get(name) for session in noted]
        if then and all(value == now for value in then):
            continue
        if then and now not in then and None not in then:
            differs.append(f"{name} was {' or '.join(sorted({str(value) for value in then}))} and is {now}")
        else:
            (mixed if then and None not in then else untold).append(name)
    if str(today.get("device", "")).startswith("cpu") and PROCESSOR not in today:
        untold.append(PROCESSOR)  # a device is called only "cpu: x86_64", and there are many
    return Conditions(tuple(differs), tuple(untold), tuple(mixed))
