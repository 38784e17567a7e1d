"""Quotas as people write them."""

from __future__ import annotations

import pytest

from bookkeeper.access import Quota
from bookkeeper.admin.access.tenants import changed_quota
from bookkeeper.errors import ConfigError


def test_named_limits_change_and_the_others_stay() -> None:
    before = Quota(bytes_kept=5, ledgers=3)
    assert changed_quota(before, ["bytes_kept=10G", "adds_per_s=2k"]) == Quota(10 << 30, 3, 2048)
    assert changed_quota(before, ["ledgers=none"]) == Quota(bytes_kept=5)
    assert changed_quota(before, ["bytes_kept=1MB", "bytes_kept=7"]) == Quota(7, 3)
    assert changed_quota(before, []) == before


@pytest.mark.parametrize(
    "word",
    [
        "",
        "ledgers",
        "disks=1",
        "ledgers=",
        "ledgers=-1",
        "ledgers=1.5",
        "ledgers=1X",
        "adds_per_s=0",
        "ledgers=٣",
        "ledgers=2000000T",
    ],
)
def test_what_is_no_limit_is_refused(word: str) -> None:
    with pytest.raises(ConfigError, match=r"quota|whole number"):
        changed_quota(Quota(), [word])
