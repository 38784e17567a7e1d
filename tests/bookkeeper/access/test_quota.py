"""Limits: read strictly, put together by the smallest."""

from __future__ import annotations

import pytest

from bookkeeper.access import PrincipalQuota, Quota, QuotaKind, QuotaRefusal, Subject
from bookkeeper.access.quota import LIMIT_MAX, smallest
from bookkeeper.errors import ConfigError


def test_a_quota_reads_back_from_its_document() -> None:
    quota = Quota(bytes_kept=0, adds_per_s=5)
    assert quota.document() == {"bytes_kept": 0, "adds_per_s": 5}
    assert Quota.of(quota.document()) == quota
    assert str(quota) == "bytes_kept 0, adds_per_s 5" and str(Quota()) == "no limits"


@pytest.mark.parametrize(
    "document",
    [
        [],
        {"disks": 1},
        {"ledgers": -1},
        {"ledgers": 1.5},
        {"ledgers": True},
        {"ledgers": "7"},
        {"ledgers": LIMIT_MAX + 1},
        {"adds_per_s": 0},
        {"bytes_per_s": 0},
        {"streams": -1},
    ],
)
def test_what_is_no_limit_is_refused(document: object) -> None:
    with pytest.raises(ConfigError, match="quota"):
        Quota.of(document)


@pytest.mark.parametrize("limit", [0, 5])
def test_streams_are_limited_for_tenants_and_for_nobody_else(limit: int) -> None:
    assert Quota.of({"streams": limit}).document() == {"streams": limit}
    with pytest.raises(ConfigError, match=f"bk access tenant set TENANT --quota streams={limit}"):
        PrincipalQuota(Subject.parse("etl"), Quota(streams=limit))


def test_the_smallest_limit_of_each_kind_counts() -> None:
    assert smallest([Quota(ledgers=5), Quota(ledgers=3, bytes_kept=9), Quota(bytes_kept=10)]) == Quota(9, 3)
    assert smallest([]) == Quota()


def test_a_refusal_says_whose_which_and_when() -> None:
    waits = QuotaRefusal("principal etl", QuotaKind.ADDS_PER_S, 10, 0.25)
    assert str(waits) == "the quota adds_per_s of principal etl, 10, is used up: come back in 250 ms"
    full = QuotaRefusal("tenant red", QuotaKind.LEDGERS, 3, None)
    assert "delete something, or have the quota raised; `bk access usage`" in str(full)
