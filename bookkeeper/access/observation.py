"""What a server would have denied, or has denied, since it started: for ``bk access enforce``, and for people."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from bookkeeper.access.principal import Principal
from bookkeeper.access.resource import Resource

LINES_MAX: Final = 200
"""Kinds of denials that are remembered by name."""
TEXT_MAX: Final = 200


@dataclass(frozen=True, slots=True)
class ObservedDenial:
    """One kind of denial."""

    who: str
    what: str
    """The right or the operation that was missing, in words."""
    on: str
    count: int


class Observations:
    """Counts denials by who, what and on what. What is beyond :data:`LINES_MAX` kinds is counted together."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str, str], int] = {}
        self.others = 0
        """Denials of kinds that have no line."""

    def note(self, principal: Principal, what: str, resource: Resource) -> None:
        """Count one."""
        key = (_short(str(principal)), _short(what), _short(str(resource)))
        if key in self._counts or len(self._counts) < LINES_MAX:
            self._counts[key] = self._counts.get(key, 0) + 1
        else:
            self.others += 1

    def __iter__(self) -> Iterator[ObservedDenial]:
        """All kinds, the most frequent first."""
        for (who, what, on), count in sorted(self._counts.items(), key=lambda item: (-item[1], item[0])):
            yield ObservedDenial(who, what, on, count)

    def clear(self) -> None:
        """Begin anew: the policy has changed."""
        self._counts.clear()
        self.others = 0


def _short(text: str) -> str:
    return text if len(text) <= TEXT_MAX else text[: TEXT_MAX - 3] + "..."
