"""Data and codec: what a process of tests tells its watcher, a line each."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Collected:
    """It knows its tests."""

    tests: int


@dataclass(frozen=True, slots=True)
class Begun:
    """A test begins."""

    test: str
    limit_s: float
    """Seconds without progress after which it counts as hanging, on a machine of the reference's speed."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A test has ended."""

    test: str
    outcome: str
    """``passed``, ``failed`` or ``skipped``."""
    text: str
    """Why, unless it passed."""
    cpu_s: float
    """Processor time, with that of children that have ended."""
    kind: str
    """The mark of tests with processes of their own; empty: it has none."""
    property_test: bool
    many_examples: bool


@dataclass(frozen=True, slots=True)
class Broken:
    """Something failed that is no test: a module cannot be imported, pytest has an error of its own."""

    where: str
    text: str


@dataclass(frozen=True, slots=True)
class Done:
    """All of it was run."""

    status: int
    """pytest's exit status."""


Event = Collected | Begun | Ended | Broken | Done
_KINDS = {kind.__name__: kind for kind in (Collected, Begun, Ended, Broken, Done)}


def written(event: Event) -> str:
    return json.dumps({"event": type(event).__name__, **asdict(event)}) + "\n"


def read(line: str) -> Event:
    fields = json.loads(line)
    event: Event = _KINDS[fields.pop("event")](**fields)
    return event
