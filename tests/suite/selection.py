"""Data: which tests are the core, and into which units the others are divided (``core.toml``)."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

TESTS: Final = Path(__file__).resolve().parents[1]
ROOT: Final = TESTS.parent

PACKAGES: Final = ("bookkeeper", "journal_manager", "segments", "spark_wal", "examples", "benchmarks", "tests")
OUTSIDE: Final = ("interop", "spark", "zookeeper", "integration")
"""Marks of tests with processes of their own; what takes the most time comes first."""
EXAMPLES: Final = "examples of "
"""Begins the name of a unit: a module's property tests once more, with five times as many examples as in the core."""

MACHINES_OWN: Final = frozenset({"native", "uvloop"})
"""Parameters that are not there on each machine: what a compiler has to build, and a library that not all have."""


_PARTS: Final = re.compile(r"\[|::")
"""Where the id of a module, a class or a test without parameters ends within a longer one."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The lists of ``core.toml``. A pattern is a test's id, or its beginning and ``*``."""

    core: Mapping[str, str]
    """What each run takes, though it has processes of its own or fits a pattern of ``drawn`` -> what it proves."""
    drawn: Mapping[str, Sequence[str]]
    """Module -> its tests within one process that do not belong to the core, because they take long."""
    divided: Mapping[str, Sequence[str]]
    """Module -> parts of ids by which its tests are divided into units."""
    heavy: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Module -> its tests of the core within Python that take long beside the others, or start other programs."""
    _beginnings: tuple[str, ...] = field(init=False)
    """Of the patterns of ``core`` that end with ``*``."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "_beginnings", tuple(each[:-1] for each in self.core if each.endswith("*")))

    def is_core(self, test: str, *, outside: bool) -> bool:
        """Whether each run takes this test.

        Args:
            test: its id, as pytest prints it.
            outside: whether it has processes of its own.
        """
        if self.names(test):
            return True
        module, _, name = test.partition("::")
        return not outside and name.partition("[")[0] not in self.drawn.get(module, ())

    def names(self, test: str) -> bool:
        """Whether the list ``core`` names this test; a pattern for a test fits all of its parameters."""
        if test in self.core or test.startswith(self._beginnings):
            return True
        return any(test[: at.start()] in self.core for at in _PARTS.finditer(test))

    def is_heavy(self, test: str) -> bool:
        """Whether a test of the core is left out where an answer is wanted within a minute."""
        module, _, name = test.partition("::")
        return name.partition("[")[0] in self.heavy.get(module, ())

    def core_modules(self, modules: Iterable[str]) -> list[str]:
        """Those that have tests of the list ``core``."""
        whole = {pattern.partition("::")[0] for pattern in self.core if not pattern.endswith("*")}
        begin = tuple(beginning.partition("::")[0] for beginning in self._beginnings)
        return [module for module in modules if module in whole or module.startswith(begin)]

    def gone(self, tests: Iterable[str]) -> list[str]:
        """Tests with parameters that the list ``core`` names, and that are not there any more: their parameters were
        changed, and no run would take them.

        Args:
            tests: the ids of all tests of some modules. A module without any was skipped, or was not asked for.
        """
        there = set(tests)
        modules = {test.partition("::")[0] for test in there}
        named = [test for test in self.core if "[" in test and not test.endswith("*") and not _is_optional(test)]
        return [test for test in named if test.partition("::")[0] in modules and test not in there]

    def unit(self, test: str) -> str:
        """The unit of the draw that a test belongs to: its module, or a part of that."""
        module = test.partition("::")[0]
        part = next((part for part in self.divided.get(module, ()) if part in test), "")
        return f"{module}::{part}" if part else module


def _is_optional(test: str) -> bool:
    parameters = test.partition("[")[2].rstrip("]").split("-")
    return not MACHINES_OWN.isdisjoint(parameters)


@functools.cache
def selection(path: Path = TESTS / "suite" / "core.toml") -> Selection:
    """Read the lists.

    Raises:
        ValueError: a list that is not known.
    """
    lists = tomllib.loads(path.read_text())
    if unknown := set(lists) - {"core", "drawn", "divided", "heavy"}:
        raise ValueError(f"{path}: no such list: {', '.join(sorted(unknown))}")
    return Selection(lists.get("core", {}), lists.get("drawn", {}), lists.get("divided", {}), lists.get("heavy", {}))


def module_of(unit: str) -> str:
    """The file of a unit."""
    return unit.removeprefix(EXAMPLES).partition("::")[0]
