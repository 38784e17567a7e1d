"""Who has used how much of which quota: asked once for each run of entries, and for each ledger that is made. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from bookkeeper.access.policy import Mode, Policy
from bookkeeper.access.principal import Principal
from bookkeeper.access.quota import Quota, QuotaKind, QuotaRefusal
from bookkeeper.access.usage import NOTHING, Amount, Usage

BURST_S: Final = 1.0
"""Seconds for which a rate may be saved up."""
RECOVERY_S: Final = 1.0
"""Seconds of a rate that a recovery may have besides: a ledger whose writer has used it up can be recovered."""
RECOVERY_BYTES: Final = 64 * 1024 * 1024
"""What a recovery may add beyond a quota of what is kept, between two counts, for the same reason."""
COUNTED_MS: Final = 5000
"""A ledger that was made at most so long after a count began may be in it: clocks differ."""
CACHED_MAX: Final = 8192
"""Principals whose quotas and rates are remembered at once; beyond it those are forgotten who have not used theirs."""


# As a global: to look a member up in its class costs ten times as much (CPython 3.11).
_BYTES_PER_S: Final = QuotaKind.BYTES_PER_S


class TokenBucket:
    """A rate. A request is admitted while anything is left, and may be larger than what is left: the next ones wait
    until that is made up for. So no request is too large, none is passed over for ever by smaller ones, and on average
    the rate holds."""

    __slots__ = ("_at", "_left", "_per_s")

    def __init__(self, per_s: int, now: float) -> None:
        self._per_s = per_s
        self._left = per_s * BURST_S
        self._at = now

    def wait_s(self, now: float, besides_s: float = 0.0) -> float:
        """Seconds until a request is admitted; 0: now. ``besides_s``: what it may have of the rate besides."""
        if now > self._at:
            self._left = min(self._left + (now - self._at) * self._per_s, self._per_s * BURST_S)
            self._at = now
        return max(0.0, (1 - self._left) / self._per_s - besides_s)

    def charge(self, amount: int) -> None:
        """Count a request that was admitted."""
        self._left -= amount

    def is_full(self, now: float) -> bool:
        """Whether it is as good as a new one."""
        self.wait_s(now)
        return self._left >= self._per_s * BURST_S


@dataclass(frozen=True, slots=True)
class _Account:
    """One whose quotas count."""

    whose: str
    quota: Quota
    counted: Amount
    """What he had when it was counted last."""
    rates: tuple[tuple[QuotaKind, int, str], ...]
    """The rates among his quotas, their limits, and the keys of what he has used of them: texts, whose hashes Python
    keeps."""

    @classmethod
    def of(cls, whose: str, quota: Quota, counted: Amount) -> _Account:
        limits = ((kind, quota.limit(kind)) for kind in (QuotaKind.ADDS_PER_S, QuotaKind.BYTES_PER_S))
        rates = tuple((kind, limit, f"{kind} {limit} {whose}") for kind, limit in limits if limit is not None)
        return cls(whose, quota, counted, rates)


class QuotaBook:
    """The quotas of a cluster, on one server. Rates hold for this server; what is kept is that of the last count, and
    what came in here since then. Runs on the loop's thread.

    In :attr:`Mode.OFF` everything is admitted, and nothing is counted. In :attr:`Mode.OBSERVE` the caller tells of a
    refusal, and does what was asked.
    """

    def __init__(self, policy: Policy | None = None) -> None:
        self._policy = policy or Policy()
        self._usage = Usage()
        self._since: dict[str, Amount] = {}
        self._account_cache: dict[tuple[Principal | None, str | None], tuple[_Account, ...]] = {}
        """Whose quotas count, until the policy or the usage is another one: it is asked for each run of entries."""
        self._buckets: dict[str, TokenBucket] = {}
        self._tidy_at = CACHED_MAX
        self.set_policy(self._policy)

    def set_policy(self, policy: Policy) -> None:
        """From now on this policy's quotas count. A rate that stays the same keeps what it has used."""
        self._policy = policy
        self._tenants = {tenant.name: tenant for tenant in policy.tenants if tenant.quota.document()}
        self._account_cache.clear()

    def set_usage(self, usage: Usage) -> None:
        """Everything was counted anew; what came in here before counts no more by itself."""
        if usage.counted_ms != self._usage.counted_ms:
            self._since.clear()
        self._usage = usage
        self._account_cache.clear()

    def charge(
        self, principal: Principal, tenant: str | None, adds: int, size: int, now: float, *, recovery: bool = False
    ) -> QuotaRefusal | None:
        """Count what somebody wants to add, if his quotas and the tenant's allow it.

        Args:
            principal: who asks.
            tenant: whose ledger it is (:meth:`Policy.tenant_of`); None: no tenant's.
            adds, size: entries, and their bytes.
            now: seconds, of a clock that never goes back.
            recovery: he does so to recover a ledger, which may go somewhat beyond them.

        Returns:
            None: it is counted. Else why not, and when it may be asked again; nothing was counted.
        """
        if self._policy.mode is Mode.OFF:
            return None
        accounts = self._accounts(principal, tenant)
        asked, besides_s = Amount(size, 0), RECOVERY_S if recovery else 0.0
        longest: QuotaRefusal | None = None
        due: list[tuple[TokenBucket, int]] = []
        for account in accounts:
            if (refusal := self._bytes_kept_refusal(account, size, RECOVERY_BYTES if recovery else 0)) is not None:
                return refusal
            for kind, limit, key in account.rates:
                amount = size if kind is _BYTES_PER_S else adds
                if not amount:
                    continue
                bucket = self._bucket(key, limit, now)
                due.append((bucket, amount))
                wait_s = bucket.wait_s(now, besides_s)
                if wait_s and (longest is None or longest.after_s is None or wait_s > longest.after_s):
                    longest = QuotaRefusal(account.whose, kind, limit, wait_s)
        if longest is not None:
            return longest
        for bucket, amount in due:
            bucket.charge(amount)
        for account in accounts:
            if account.quota.bytes_kept is not None:
                self._note(account, asked)
        return None

    def limits_ledgers(self, owner: Principal | None, tenant: str | None) -> bool:
        """Whether there is a quota of ledgers for these (:meth:`charge_ledger`)."""
        return any(account.quota.ledgers is not None for account in self._accounts(owner, tenant))

    def charge_ledger(self, owner: Principal | None, tenant: str | None, made_ms: int | None) -> QuotaRefusal | None:
        """Count a ledger that gets its first entry here, if the quotas of its owner and of the tenant allow it.

        Args:
            owner: the principal whose ledger it is; None: it is a stream's, a journal's or a path's.
            tenant: whose it is besides.
            made_ms: when it was made, in milliseconds since 1970. None: nobody knows; then the last count has it.

        Returns:
            None: it is counted. Else why not; nothing was counted.
        """
        if self._policy.mode is Mode.OFF:
            return None
        counted = made_ms is None or made_ms <= self._usage.counted_ms + COUNTED_MS
        accounts = [each for each in self._accounts(owner, tenant) if each.quota.ledgers is not None]
        for account in accounts:
            limit, has = account.quota.ledgers, self._has(account).ledgers
            if limit is not None and has + (0 if counted else 1) > limit:
                return QuotaRefusal(account.whose, QuotaKind.LEDGERS, limit, None)
        for account in accounts:
            if not counted:
                self._note(account, Amount(0, 1))
        return None

    def _accounts(self, principal: Principal | None, tenant: str | None) -> tuple[_Account, ...]:
        known = self._account_cache.get((principal, tenant))
        if known is None:
            if len(self._account_cache) >= CACHED_MAX:
                self._account_cache.clear()
            known = self._account_cache[principal, tenant] = tuple(self._accounts_of(principal, tenant))
        return known

    def _accounts_of(self, principal: Principal | None, tenant: str | None) -> Iterator[_Account]:
        found = self._tenants.get(tenant) if tenant is not None else None
        if found is not None:
            counted = self._usage.tenants.get(found.name, NOTHING)
            yield _Account.of(f"tenant {found.name}", found.quota, counted)
        if principal is None:
            return
        quota = self._policy.quota_of(principal)
        if quota.document():
            counted = self._usage.owners.get(principal.name, NOTHING)
            yield _Account.of(f"principal {principal}", quota, counted)

    def _has(self, account: _Account) -> Amount:
        return account.counted + self._since.get(account.whose, NOTHING)

    def _note(self, account: _Account, more: Amount) -> None:
        self._since[account.whose] = self._since.get(account.whose, NOTHING) + more

    def _bytes_kept_refusal(self, account: _Account, size: int, besides: int) -> QuotaRefusal | None:
        """The quota of bytes kept, if it would be exceeded by more than what he may have besides."""
        limit = account.quota.bytes_kept
        if limit is None or not size or self._has(account).bytes_kept + size <= limit + besides:
            return None
        return QuotaRefusal(account.whose, QuotaKind.BYTES_KEPT, limit, None)

    def _bucket(self, key: str, limit: int, now: float) -> TokenBucket:
        bucket = self._buckets.get(key)
        if bucket is None:
            if len(self._buckets) >= self._tidy_at:
                self._buckets = {key: each for key, each in self._buckets.items() if not each.is_full(now)}
                self._tidy_at = max(CACHED_MAX, 2 * len(self._buckets))
            bucket = self._buckets[key] = TokenBucket(limit, now)
        return bucket
