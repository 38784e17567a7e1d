"""Two things that the errors of all packages share: whether a failed call had an effect, and the check of invariants.

Nothing else of this project is imported here: a package that knows no cluster may use it.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Protocol


class Outcome(Enum):
    """Whether the requested change was made."""

    REJECTED = "rejected"
    """It was not made, and will not be."""

    UNKNOWN = "unknown"
    """It may have been made, or may still be made; only a later read or a recovery can tell."""

    APPLIED = "applied"
    """It was made, and what failed came after it."""


class InvariantCheck(Protocol):
    """Stops a component whose invariant does not hold. Runs always, also under ``-O``."""

    def __call__(self, condition: bool, rule: str, detail: object = "") -> None:
        """Raise an error that names the rule, unless ``condition`` holds."""


def check_raising(error: Callable[[str], Exception]) -> InvariantCheck:
    """The check of a package whose invariants raise ``error``."""

    def check(condition: bool, rule: str, detail: object = "") -> None:
        if not condition:
            raise error(
                f"rule {rule} of docs/rules.md does not hold: {detail} (this is a bug, or the memory is damaged)"
            )

    return check
