"""The table of requirements in docs/security.md, read."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from tests.architecture import rules

PAGE = rules.ROOT / "docs" / "security.md"
STATES = ("held", "partly", "refused")


@dataclass(frozen=True, slots=True)
class Row:
    """One requirement."""

    number: str
    asked: str
    state: str
    rest: str

    @property
    def tests(self) -> list[str]:
        """The tests that it names."""
        return re.findall(r"`(test_\w+)`", self.rest)

    @property
    def reason(self) -> str:
        """What it says besides."""
        return re.sub(r"`test_\w+`|[,; ]+$|as X\d+[a-z]?:", "", self.rest).strip(" ,;")

    @property
    def rule(self) -> str:
        """The number that its tests carry."""
        other = re.match(r"as (X\d+[a-z]?):", self.rest)
        return self.number if other is None else other[1]


@functools.cache
def rows() -> tuple[Row, ...]:
    """All rows, in their order."""
    return tuple(
        Row(*found) for found in re.findall(r"^\| (X\d+) \| (.*?) \| (\w+) \| (.*) \|$", PAGE.read_text(), re.M)
    )


def numbers() -> frozenset[str]:
    """The numbers that the table may name, also those that are no rule."""
    return frozenset(row.number for row in rows())
