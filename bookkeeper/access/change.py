"""Who changed the policy, and when."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

CHANGES_MAX: Final = 50
"""Changes that the policy remembers; the audit log has all of them."""
TEXT_MAX: Final = 300
"""Characters that are kept of who changed it, and of what was changed."""


@dataclass(frozen=True, slots=True)
class PolicyChange:
    """One change, as its author's program noted it."""

    at_ms: int
    """Milliseconds since 1970, by that program's clock."""
    by: str
    what: str

    @classmethod
    def of(cls, at_ms: int, by: str, what: str) -> PolicyChange:
        """A change whose texts are cut to :data:`TEXT_MAX`, and have one line each."""
        return cls(at_ms, _short(by), _short(what))


def _short(text: str) -> str:
    line = "".join(letter if letter.isprintable() else "?" for letter in text)
    return line if len(line) <= TEXT_MAX else line[: TEXT_MAX - 3] + "..."
