"""How many examples a property test makes: its own number at the profile's scale."""

from __future__ import annotations

from typing import Final

from hypothesis import settings

_USUAL: Final = 100
_LEAST: Final = 5


def examples(usual: int) -> int:
    """So many where the profile makes a hundred, in proportion where it makes more or fewer."""
    return max(usual * settings().max_examples // _USUAL, _LEAST)
