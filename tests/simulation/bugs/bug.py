"""What a planted bug is: :mod:`tests.simulation.bugs.bugs` has them all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bookkeeper.testing.patches import Patch

Plant = Callable[[Patch], None]


@dataclass(frozen=True, slots=True)
class Bug:
    """A planted bug."""

    name: str
    breaks: str
    """The rules."""
    within: int
    """It must be found within so many seeds."""
    what: str
    plant: Plant
    first: int = 0
    """The seeds are tried from this one on: in earlier worlds nothing happens that would show it."""


def bug_into(bugs: dict[str, Bug], name: str, breaks: str, within: int, first: int = 0) -> Callable[[Plant], Plant]:
    """A decorator that puts a bug into ``bugs``; what the function says of itself is what it does."""

    def register(plant: Plant) -> Plant:
        bugs[name] = Bug(name, breaks, within, " ".join((plant.__doc__ or "").split()), plant, first)
        return plant

    return register
