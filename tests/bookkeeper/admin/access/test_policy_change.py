"""One line about the mode."""

from __future__ import annotations

from bookkeeper.access import Mode, Policy, PolicyChange
from bookkeeper.admin.access.policy_change import mode_in_words


def test_the_mode_is_told_with_its_meaning_and_the_last_change() -> None:
    assert mode_in_words(Policy()) == "off: nobody is asked, every admitted client may do everything"
    told = mode_in_words(Policy(Mode.ENFORCE, changes=(PolicyChange(0, "eve on host", "mode enforce"),)))
    assert told.startswith("enforce: what is not granted is denied") and told.endswith("by eve on host: mode enforce)")
