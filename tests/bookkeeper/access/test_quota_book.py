"""Who has used how much of which quota."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookkeeper.access import (
    Amount,
    Mode,
    Policy,
    Principal,
    PrincipalKind,
    PrincipalQuota,
    Quota,
    QuotaBook,
    QuotaKind,
    Resource,
    Subject,
    Tenant,
    Usage,
    quota_book,
)
from bookkeeper.access.quota_book import BURST_S, CACHED_MAX, COUNTED_MS, RECOVERY_BYTES, RECOVERY_S, TokenBucket

ETL = Principal(PrincipalKind.CERTIFICATE, "etl")
OTHER = Principal(PrincipalKind.TOKEN, "other")


def _policy(tenant: Quota = Quota(), each: Quota = Quota(), mode: Mode = Mode.ENFORCE) -> Policy:  # noqa: B008 - frozen
    red = Tenant("red", (Subject.parse("etl"),), (Resource.parse("streams:red"),), tenant)
    return Policy(mode, (), (red,), (PrincipalQuota(Subject.parse("anyone"), each),))


def test_a_rate_admits_its_burst_and_says_when_to_come_back() -> None:
    book = QuotaBook(_policy(each=Quota(adds_per_s=10)))
    assert book.charge(ETL, None, 10, 0, 5.0) is None
    refusal = book.charge(ETL, None, 1, 0, 5.0)
    assert refusal is not None and refusal.quota is QuotaKind.ADDS_PER_S
    assert (refusal.whose, refusal.limit) == ("principal etl", 10) and refusal.after_s is not None
    assert book.charge(ETL, None, 1, 0, 5.0 + refusal.after_s * 0.9) is not None, "it is not admitted earlier"
    assert book.charge(ETL, None, 1, 0, 5.0 + refusal.after_s * 1.001) is None
    assert book.charge(OTHER, None, 10, 0, 5.0) is None, "each principal has the quota for himself"


def test_a_run_larger_than_the_rate_is_admitted_and_made_up_for() -> None:
    book = QuotaBook(_policy(each=Quota(bytes_per_s=100)))
    assert book.charge(ETL, None, 1, 1000, 0.0) is None
    refusal = book.charge(ETL, None, 1, 1, 0.0)
    assert refusal is not None and refusal.after_s is not None and 9 < refusal.after_s < 9.1


@given(
    per_s=st.integers(1, 1000),
    runs=st.lists(st.tuples(st.integers(1, 300), st.floats(0, 2)), max_size=60),
)
def test_over_any_time_no_more_is_admitted_than_rate_burst_and_one_run(
    per_s: int, runs: list[tuple[int, float]]
) -> None:
    bucket, now, taken, largest = TokenBucket(per_s, 0.0), 0.0, 0, 0
    for amount, pause in runs:
        now += pause
        if bucket.wait_s(now) == 0:
            bucket.charge(amount)
            taken, largest = taken + amount, max(largest, amount)
        assert taken <= per_s * (now + 1) + largest + 1e-6


def test_a_clock_that_stands_still_or_goes_back_gives_nothing() -> None:
    bucket = TokenBucket(10, 5.0)
    bucket.charge(10)
    waiting = bucket.wait_s(5.0)
    assert bucket.wait_s(1.0) == waiting > 0


def test_what_is_refused_by_one_quota_counts_for_none() -> None:
    book = QuotaBook(_policy(tenant=Quota(adds_per_s=100), each=Quota(adds_per_s=1)))
    assert book.charge(ETL, "red", 1, 0, 0.0) is None
    for _ in range(500):
        assert book.charge(ETL, "red", 1, 0, 0.0) is not None
    assert book.charge(OTHER, "red", 1, 0, 0.0) is None, "the tenant's quota was not used by what was refused"


def test_the_longest_wait_is_said() -> None:
    book = QuotaBook(_policy(tenant=Quota(adds_per_s=100), each=Quota(bytes_per_s=10)))
    assert book.charge(ETL, "red", 200, 100, 0.0) is None
    refusal = book.charge(ETL, "red", 1, 1, 0.0)
    assert refusal is not None and refusal.quota is QuotaKind.BYTES_PER_S
    assert refusal.after_s is not None and book.charge(ETL, "red", 1, 1, refusal.after_s + 0.001) is None


def test_a_tenants_quota_is_shared_by_all_who_write_into_what_it_owns() -> None:
    book = QuotaBook(_policy(tenant=Quota(bytes_kept=10)))
    assert book.charge(ETL, "red", 1, 6, 0.0) is None
    refusal = book.charge(OTHER, "red", 1, 5, 0.0)
    assert refusal is not None and (refusal.whose, refusal.after_s) == ("tenant red", None)
    assert book.charge(OTHER, "red", 1, 4, 0.0) is None
    assert book.charge(OTHER, None, 1, 5, 0.0) is None, "other ledgers are no tenant's"
    assert book.charge(OTHER, "blue", 1, 5, 0.0) is None, "a tenant without quotas"


def test_what_is_kept_falls_with_the_next_count_and_writing_goes_on() -> None:
    book = QuotaBook(_policy(tenant=Quota(bytes_kept=10, ledgers=2)))
    book.set_usage(Usage(1, {"red": Amount(8, 1)}))
    assert book.charge(ETL, "red", 1, 3, 0.0) is not None
    assert book.charge(ETL, "red", 1, 2, 0.0) is None
    assert book.charge(ETL, "red", 1, 1, 0.0) is not None
    book.set_usage(Usage(1, {"red": Amount(8, 1)}))
    assert book.charge(ETL, "red", 1, 1, 0.0) is not None, "the same count again"
    book.set_usage(Usage(2, {"red": Amount(4, 1)}))
    assert book.charge(ETL, "red", 1, 6, 0.0) is None
    assert book.charge_ledger(None, "red", 2 + COUNTED_MS + 1) is None
    assert book.charge_ledger(None, "red", 2 + COUNTED_MS + 1) is not None
    book.set_usage(Usage(3, {}))
    assert book.charge_ledger(None, "red", 3 + COUNTED_MS + 1) is None, "all was deleted"


def test_a_principals_kept_bytes_are_those_of_the_ledgers_he_owns() -> None:
    book = QuotaBook(_policy(each=Quota(bytes_kept=10)))
    book.set_usage(Usage(1, {}, {"etl": Amount(10, 1)}))
    assert book.charge(ETL, None, 1, 1, 0.0) is not None
    assert book.charge(OTHER, None, 1, 1, 0.0) is None


def test_nothing_is_counted_while_the_policy_is_off_and_observing_answers_as_enforcing() -> None:
    quota = Quota(adds_per_s=1)
    off = QuotaBook(_policy(each=quota, mode=Mode.OFF))
    assert [off.charge(ETL, None, 5, 0, 0.0) for _ in range(3)] == [None] * 3
    watched = QuotaBook(_policy(each=quota, mode=Mode.OBSERVE))
    assert watched.charge(ETL, None, 5, 0, 0.0) is None and watched.charge(ETL, None, 5, 0, 0.0) is not None


def test_a_changed_policy_counts_at_once_and_an_unchanged_rate_keeps_what_it_used() -> None:
    book = QuotaBook(_policy(each=Quota(adds_per_s=10)))
    assert book.charge(ETL, None, 10, 0, 0.0) is None
    book.set_policy(replace(_policy(each=Quota(adds_per_s=10)), mode=Mode.OBSERVE))
    assert book.charge(ETL, None, 1, 0, 0.0) is not None
    book.set_policy(_policy(each=Quota(adds_per_s=20)))
    assert book.charge(ETL, None, 1, 0, 0.0) is None
    book.set_policy(_policy())
    assert book.charge(ETL, None, 10_000, 0, 0.0) is None


def test_principals_without_end_are_not_remembered_without_end() -> None:
    book = QuotaBook(_policy(each=Quota(adds_per_s=10)))
    for number in range(3 * CACHED_MAX):
        assert book.charge(Principal(PrincipalKind.TOKEN, f"p{number}"), None, 1, 0, float(number)) is None
    assert max(len(book._buckets), len(book._account_cache), len(book._since)) <= CACHED_MAX


def test_a_ledger_that_the_last_count_may_have_is_not_counted_twice() -> None:
    """Cause: the last one that a quota allows would be counted, and then refused its first entry."""
    book = QuotaBook(_policy(tenant=Quota(ledgers=2), each=Quota(ledgers=1)))
    book.set_usage(Usage(10_000, {"red": Amount(0, 2)}, {"etl": Amount(0, 1)}))
    for made_ms in (None, 0, 10_000, 10_000 + COUNTED_MS):
        assert book.charge_ledger(ETL, "red", made_ms) is None
    refusal = book.charge_ledger(None, "red", 10_001 + COUNTED_MS)
    assert refusal is not None and (refusal.whose, refusal.quota) == ("tenant red", QuotaKind.LEDGERS)
    refusal = book.charge_ledger(ETL, None, 10_001 + COUNTED_MS)
    assert refusal is not None and refusal.whose == "principal etl"
    assert book.charge_ledger(None, None, 10_001 + COUNTED_MS) is None
    book.set_usage(Usage(20_000, {"red": Amount(0, 3)}))
    assert book.charge_ledger(None, "red", None) is not None, "more than there may be"


def test_what_one_quota_of_ledgers_refuses_counts_for_none_and_nothing_does_while_the_policy_is_off() -> None:
    book = QuotaBook(_policy(tenant=Quota(ledgers=3), each=Quota(ledgers=1)))
    new = COUNTED_MS + 1
    found = [book.charge_ledger(ETL, "red", new) is None for _ in range(5)]
    assert found == [True, False, False, False, False]
    assert [book.charge_ledger(None, "red", new) is None for _ in range(3)] == [True, True, False]
    assert book.limits_ledgers(None, "red") and book.limits_ledgers(ETL, None) and not book.limits_ledgers(None, None)
    off = QuotaBook(_policy(tenant=Quota(ledgers=0), mode=Mode.OFF))
    assert off.charge_ledger(None, "red", new) is None


def test_a_recovery_is_counted_and_may_go_somewhat_beyond() -> None:
    """Cause: recovery adds were counted for nobody, so who sent all he had as such had no quota."""
    book = QuotaBook(_policy(tenant=Quota(bytes_kept=10), each=Quota(adds_per_s=10)))
    assert book.charge(ETL, "red", 10, 10, 0.0) is None
    assert book.charge(ETL, "red", 1, 1, 0.0) is not None
    assert book.charge(ETL, "red", 10, RECOVERY_BYTES - 1, 0.0, recovery=True) is None
    beyond = book.charge(OTHER, "red", 1, 2, 0.0, recovery=True)
    assert beyond is not None and (beyond.quota, beyond.after_s) == (QuotaKind.BYTES_KEPT, None)
    refusal = book.charge(ETL, "red", 1, 1, 0.0, recovery=True)
    assert refusal is not None and refusal.quota is QuotaKind.ADDS_PER_S and refusal.after_s is not None
    assert book.charge(ETL, None, 1, 0, refusal.after_s + 0.001, recovery=True) is None
    assert book.charge(ETL, None, 1, 0, RECOVERY_S, recovery=False) is not None, "it is made up for"


def test_a_rate_is_saved_up_for_its_burst_and_no_longer() -> None:
    book = QuotaBook(_policy(each=Quota(adds_per_s=10)))
    assert book.charge(ETL, None, 1, 0, 0.0) is None
    admitted = sum(book.charge(ETL, None, 1, 0, 100.0) is None for _ in range(200))
    assert admitted == 10 * BURST_S


def test_who_has_used_his_rate_is_remembered_among_many_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quota_book, "CACHED_MAX", 4)
    book = QuotaBook(_policy(each=Quota(adds_per_s=10)))
    assert book.charge(ETL, None, 1000, 0, 0.0) is None
    for number in range(50):
        assert book.charge(Principal(PrincipalKind.TOKEN, f"other-{number}"), None, 1, 0, float(number)) is None
    assert book.charge(ETL, None, 1, 0, 50.0) is not None
