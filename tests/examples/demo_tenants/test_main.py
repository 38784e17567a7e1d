"""The last line."""

from __future__ import annotations

import pytest

from examples.demo_tenants.__main__ import last_line
from examples.demo_tenants.story import TenantsFacts
from examples.demo_tenants.verdict import Loot


def test_the_last_line_says_yes_only_if_nobody_got_anything_and_nobody_lost_anything() -> None:
    facts = TenantsFacts(tried=8)
    line = last_line(Loot(own=500), facts)
    assert line.startswith("tenants: nobody got what was not his: yes (8 attacks, 0 entries read, 0 fences")
    assert line.endswith("500 entries of their own read back, 0 of their own lost)")


@pytest.mark.parametrize(
    "loot",
    [
        Loot(own=1, read=1),
        Loot(own=1, ended=1),
        Loot(own=1, forged=1),
        Loot(own=1, squatted=1),
        Loot(own=1, by_revoked=1),
        Loot(own=1, by_stolen_token=1),
        Loot(own=1, over_quota=1),
        Loot(own=1, lost=["x"]),
        Loot(own=0),
    ],
)
def test_anything_that_was_got_or_lost_makes_it_no(loot: Loot) -> None:
    assert last_line(loot, TenantsFacts()).startswith("tenants: nobody got what was not his: no (")
