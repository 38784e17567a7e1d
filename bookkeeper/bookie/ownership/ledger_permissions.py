"""Whether a principal may do something with a ledger on this bookie.

The principal comes from the connection, the ledger's owner from the bookie's own file (:mod:`owner_log`). With both the
decision is immediate, and a connection caches it for the ledger. If no owner is kept yet, the request waits until the
metadata are read:

    ledger handed over by an operator          the new owner
    owner in the ledger's custom metadata      that owner
    no owner named, but claimed                the claimant
    no owner named, not claimed                a principal with the ledger's key in an add or a fence claims it, unless
                                               it has rights without being the owner
    no such ledger                             no owner

A permitted request that creates the ledger on this bookie goes on when the owner is durable: later changes of the
metadata do not change it. A denied request is refused before anything is created, kept, fenced or read from the disk;
one for a ledger that does not exist is refused in the same way.

In the mode ``observe`` denials are reported and the requests performed, also those whose owner could not be looked up.
Waiting requests for one ledger stay in order.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Protocol

from bookkeeper.access import (
    CLUSTER,
    LedgerOperation,
    Mode,
    Policy,
    Principal,
    QuotaBook,
    QuotaRefusal,
    Resource,
    ResourceKind,
)
from bookkeeper.access.observation import Observations
from bookkeeper.access.ownership import NO_OWNER, ledgers_of, owner_in
from bookkeeper.bookie.identity.ledger_keys import ANSWER_S, READS, fits
from bookkeeper.bookie.ownership.operation import ALL, BEGINNING, BIT, CLAIMING, CREATING, bits_of
from bookkeeper.bookie.ownership.owner_log import OwnerLog
from bookkeeper.errors import BookKeeperError, NoSuchLedgerError, in_words
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.ledger import LedgerMetadata
from bookkeeper.meta import Metadata
from bookkeeper.metrics import Counter as CountedMetric
from bookkeeper.metrics import Metrics
from bookkeeper.rate_limited_log import RateLimitedLogger
from bookkeeper.storage.base.durable_file import NO_SPACE
from bookkeeper.volumes import Volumes
from bookkeeper.wire import Status

log = logging.getLogger(__name__)

CACHED_MAX: Final = 8192
"""The most cached rights (of a principal on an owner's ledgers), and cached owners of ledgers that are not here."""

REREAD_S: Final = 60.0
"""Seconds after which the hand-overs are read again without a change reported by the watch."""
RETRY_S: Final = 2.0
"""Seconds until the next try after they could not be read."""

WAITING_MAX: Final = 4096
"""The most ledgers whose metadata are being read; requests for further ones are refused."""

SHARE: Final = 4
"""One principal may have caused at most 1/SHARE of these reads."""


class FollowedPolicy(Protocol):
    """The policy as followed in the metadata (:class:`bookkeeper.meta.policy_follower.PolicyFollower`)."""

    @property
    def policy(self) -> Policy: ...

    @property
    def quotas(self) -> QuotaBook: ...

    @property
    def observations(self) -> Observations: ...

    def on_change(self, callback: Callable[[Policy], None]) -> None: ...


@dataclass(frozen=True, slots=True)
class AccessRequest:
    """An operation of a principal on a ledger, and the callbacks for its result."""

    who: Principal
    operation: LedgerOperation
    key: bytes | None = field(repr=False)
    """The ledger's key, if the request brings one."""
    then: Callable[[Status], None]
    """Called once, with OK, UNAUTHORIZED (denied), TOO_MANY_REQUESTS (a quota of ledgers is used up, or too much
    waits), or IO_ERROR (the owner cannot be read or kept)."""
    denied: Callable[[], None]
    """Called before ``then`` on a denial, refused or only observed."""
    over: Callable[[QuotaRefusal], None] = lambda refusal: None
    """Called before ``then`` if a quota of ledgers is used up, refused or only observed."""


@dataclass(frozen=True, slots=True)
class _OwnerLookup:
    """What the metadata say."""

    owner: Resource | None
    metadata: LedgerMetadata | None
    """None: there is no such ledger."""


class LedgerPermissions:
    """The permissions of one bookie. Runs on the loop's thread."""

    def __init__(
        self,
        engine: Volumes,
        metadata: Metadata,
        follower: FollowedPolicy,
        owners: OwnerLog,
        bookie: BookieId,
        metrics: Metrics,
    ) -> None:
        self._engine, self._metadata, self._follower, self._owners = engine, metadata, follower, owners
        self._bookie = bookie
        self._metrics = metrics
        self._bits: dict[tuple[Principal, Resource], int] = {}
        self._owner_cache: dict[LedgerId, Resource] = {}
        """Owners as read from the metadata and not kept on disk, because nothing of the ledger is here or it has
        none."""
        self._created_ms: dict[LedgerId, int | None] = {}
        """Creation times of ledgers that a quota has refused."""
        self._handed_over: dict[LedgerId, Resource] = {}
        self._waiting: dict[LedgerId, deque[AccessRequest]] = {}
        self._waits_of: Counter[str] = Counter()
        """How many ledgers in ``_waiting`` each principal's name has caused."""
        self._reads = asyncio.Semaphore(READS)
        self._tasks: set[asyncio.Task[None]] = set()
        self._listeners: list[Callable[[], None]] = []
        self._denied: dict[LedgerOperation, CountedMetric] = {}
        self._log = RateLimitedLogger(log, lambda: asyncio.get_running_loop().time())
        self._lookups = metrics.counter("access_lookups_total", "Ledgers whose owner was looked up in the metadata.")
        self.over_quota = metrics.counter(
            "quota_refusals_total", "Runs of adds for which a quota is used up; in the mode observe they are done."
        )
        follower.on_change(lambda policy: self._on_policy_change())

    # -- for connections ----------------------------------------------------------------------------------

    @property
    def is_on(self) -> bool:
        """Whether permissions are checked at all."""
        return self._follower.policy.mode is not Mode.OFF

    @property
    def enforces(self) -> bool:
        """Whether denied requests are refused."""
        return self._follower.policy.mode is Mode.ENFORCE

    @property
    def limits(self) -> bool:
        """Whether any quota is set."""
        policy = self._follower.policy
        return policy.mode is not Mode.OFF and bool(policy.quotas or any(t.quota.document() for t in policy.tenants))

    @property
    def quotas(self) -> QuotaBook:
        """The quotas and their use on this bookie."""
        return self._follower.quotas

    def on_change(self, callback: Callable[[], None]) -> None:
        """Call back when earlier answers of :meth:`allowed` are no longer valid."""
        self._listeners.append(callback)

    def allowed(self, who: Principal, ledger_id: LedgerId) -> int | None:
        """The operations that ``who`` may do with a ledger, as bits, valid until the callbacks of :meth:`on_change`.
        None: the owner is not known here, call :meth:`resolve`. A negative id stands for the cluster."""
        if ledger_id < 0:
            return self._rights(who, CLUSTER)
        if ledger_id in self._waiting:
            return None  # requests stay in order
        owner = self._owner(ledger_id)
        if owner is None and self._owner_cache.get(ledger_id) == NO_OWNER:
            owner = NO_OWNER  # it is stored here, and only a hand-over gives it an owner
        return self._rights(who, owner) if owner is not None else None

    def tenant_of(self, ledger_id: LedgerId) -> str | None:
        """The tenant whose quotas a ledger's entries count for; None: no tenant."""
        owner = self._owner(ledger_id)
        return self._follower.policy.tenant_of(owner) if owner is not None else None

    def resolve(self, ledger_id: LedgerId, asked: AccessRequest) -> None:
        """Read the ledger's owner and call ``asked.then``. A request that creates the ledger here is answered when the
        owner is durable. Requests for one ledger are answered in order."""
        if (waiting := self._waiting.get(ledger_id)) is not None:
            waiting.append(asked)
            return
        name = asked.who.name
        if len(self._waiting) >= WAITING_MAX or self._waits_of[name] >= WAITING_MAX // SHARE:
            asked.then(Status.TOO_MANY_REQUESTS if self.enforces else Status.OK)
            return
        self._waiting[ledger_id] = deque((asked,))
        self._waits_of[name] += 1
        task = asyncio.get_running_loop().create_task(
            self._answer_waiting(ledger_id), name=f"permissions on {ledger_id}"
        )
        self._tasks.add(task)
        task.add_done_callback(partial(self._on_answered, name))

    def count_denied(self, who: Principal, ledger_id: LedgerId, operation: LedgerOperation, count: int = 1) -> None:
        """Count denied requests, refused or only observed."""
        counter = self._denied.get(operation)
        if counter is None:
            text = "Requests that the access policy does not allow; in the mode observe they are done all the same."
            counter = self._metrics.counter("access_denied_total", text, operation=operation.value)
            self._denied[operation] = counter
        counter.add(count)
        owner = CLUSTER if ledger_id < 0 else self._owner(ledger_id) or self._owner_cache.get(ledger_id) or NO_OWNER
        self._follower.observations.note(who, operation.value, owner)

    def close(self) -> None:
        """Cancel all reads; waiting requests are answered with IO_ERROR."""
        for task in list(self._tasks):
            task.cancel()
        for ledger_id in list(self._waiting):
            for asked in self._waiting.pop(ledger_id, ()):
                asked.then(Status.IO_ERROR)
        self._owners.close()

    # -- hand-overs ---------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Follow hand-overs until cancelled, and forget the owners of deleted ledgers."""
        wake = asyncio.Event()
        watch = self._metadata.ledger_owners.watch(wake.set)
        try:
            while True:
                pause = REREAD_S
                try:
                    await self.read_handed_over()
                    await self._forget_deleted()
                except (BookKeeperError, OSError) as error:
                    log.warning("bookie %s cannot follow the hand-overs of ledgers: %s", self._bookie, in_words(error))
                    pause = RETRY_S
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(wake.wait(), pause)
                wake.clear()
        finally:
            watch.close()

    async def _forget_deleted(self) -> None:
        """Forget the owners of ledgers that are not on this bookie any more, if there are many, and the claims on
        deleted ledgers."""
        for ledger_id, owner in self._owners.forget(self._engine.has):
            if owner.kind is ResourceKind.LEDGERS and not await self._exists(ledger_id):
                await self._metadata.ledger_owners.forget(ledger_id)

    async def _exists(self, ledger_id: LedgerId) -> bool:
        """Whether the ledger exists, or can be restored."""
        try:
            await self._metadata.ledgers.read(ledger_id)
        except NoSuchLedgerError:
            return await self._metadata.ledgers.restorable.has(ledger_id, fresh=True)
        return True

    async def read_handed_over(self) -> None:
        """Read the hand-overs; they apply at once, and replace kept owners, also where an earlier call failed to write.
        Raises: MetadataError, OSError."""
        found = await self._metadata.ledger_owners.handed_over()
        if found != self._handed_over:
            self._handed_over = found
            self._owner_cache.clear()
            self._on_policy_change()
        for ledger_id in [each for each, owner in found.items() if self._owners.get(each) not in (None, owner)]:
            await self._keep(ledger_id, found[ledger_id])

    # -- inside -------------------------------------------------------------------------------------------

    def _owner(self, ledger_id: LedgerId) -> Resource | None:
        """The owner of a ledger with a kept owner; None: none is kept. A hand-over applies before it is kept."""
        kept = self._owners.get(ledger_id)
        return None if kept is None else self._handed_over.get(ledger_id, kept)

    def _on_answered(self, name: str, task: asyncio.Task[None]) -> None:
        """All requests of a ledger whose read ``name`` has caused are answered."""
        self._tasks.discard(task)
        self._waits_of[name] -= 1
        if not self._waits_of[name]:
            del self._waits_of[name]

    def _on_policy_change(self) -> None:
        self._bits.clear()
        for callback in self._listeners:
            callback()

    def _rights(self, who: Principal, owner: Resource) -> int:
        key = (who, owner)
        bits = self._bits.get(key)
        if bits is None:
            if len(self._bits) >= CACHED_MAX:
                self._bits.clear()
            policy = self._follower.policy
            bits = ALL if policy.mode is Mode.OFF else bits_of(policy.rights(who, owner))
            self._bits[key] = bits
        return bits

    async def _answer_waiting(self, ledger_id: LedgerId) -> None:
        """Answer all waiting requests for a ledger, in order."""
        found: _OwnerLookup | None = None
        if (seen := self._owner_cache.get(ledger_id)) is not None:
            found = _OwnerLookup(seen, None)
        elif self._owner(ledger_id) is None:
            try:
                async with asyncio.timeout(ANSWER_S), self._reads:
                    found = await self._look_up(ledger_id)
            except Exception as error:  # whatever it is, the waiting requests are answered
                text = "bookie %s cannot read whose ledger %d is (%s): requests of it are refused until it can"
                self._log.warning(text, self._bookie, ledger_id, in_words(error))
        waiting = self._waiting[ledger_id]
        while waiting:
            asked = waiting[0]
            try:
                status = await self._judge(ledger_id, asked, found)
            except Exception as error:
                text = "bookie %s cannot keep whose ledger %d is (%s): it refuses its first requests"
                self._log.warning(text, self._bookie, ledger_id, in_words(error))
                status = Status.IO_ERROR if self.enforces else Status.OK
            waiting.popleft()
            if not waiting:
                del self._waiting[ledger_id]
            try:
                asked.then(status)
            except Exception as error:  # the requests behind it are answered nevertheless
                self._log.error("a request that was allowed failed with an unexpected error", error)

    async def _look_up(self, ledger_id: LedgerId) -> _OwnerLookup:
        """The owner by the metadata. A ledger that is not found is read again after a sync: a follower of the store may
        lag behind."""
        self._lookups.add()
        ledgers = self._metadata.ledgers
        try:
            metadata = (await ledgers.read(ledger_id)).value
        except NoSuchLedgerError:
            try:
                metadata = (await ledgers.read(ledger_id, fresh=True)).value
            except NoSuchLedgerError:
                return _OwnerLookup(None, None)
        owner = self._handed_over.get(ledger_id) or owner_in(metadata.custom)
        if owner is None:
            owner = await self._metadata.ledger_owners.claimed_by(ledger_id)
        return _OwnerLookup(owner, metadata)

    async def _judge(self, ledger_id: LedgerId, asked: AccessRequest, found: _OwnerLookup | None) -> Status:
        """Raises: BookKeeperError, OSError: an owner could not be kept."""
        owner = self._owner(ledger_id)
        if owner is not None:
            return self._verdict(asked, owner)
        if found is None:
            return Status.IO_ERROR if self.enforces else Status.OK
        named = self._handed_over.get(ledger_id, found.owner)  # it may have been handed over since it was looked up
        owner = named or NO_OWNER
        self._cache_owner(ledger_id, named)
        if named is None and not self._is_allowed(asked, owner):
            owner = await self._claim(ledger_id, asked, found) or NO_OWNER
            owner = self._handed_over.get(ledger_id, owner)
        if owner != NO_OWNER and self._is_allowed(asked, owner):
            if (refusal := await self._charge_ledger(ledger_id, asked, owner, found)) is not None:
                asked.over(refusal)
                if self.enforces:
                    return Status.TOO_MANY_REQUESTS
            if asked.operation in CREATING or self._engine.has(ledger_id):
                await self._keep_if_possible(ledger_id, owner, asked.operation)
            owner = self._handed_over.get(ledger_id, owner)
        return self._verdict(asked, owner)

    async def _charge_ledger(
        self, ledger_id: LedgerId, asked: AccessRequest, owner: Resource, found: _OwnerLookup
    ) -> QuotaRefusal | None:
        """Charge a new ledger, at its writer's first request, to the quotas of ledgers. Returns the refusal, if one is
        used up. A ledger that began on other bookies is not charged: this bookie replaces another or gets a copy.

        Raises:
            BookKeeperError: the metadata do not answer.
        """
        if asked.operation not in BEGINNING or self._engine.has(ledger_id) or not self.limits:
            return None
        tenant = self._follower.policy.tenant_of(owner)
        principal = asked.who if owner == ledgers_of(asked.who) else None
        if not self.quotas.limits_ledgers(principal, tenant):
            return None
        if ledger_id not in self._created_ms:
            metadata = found.metadata
            if metadata is None:
                async with asyncio.timeout(ANSWER_S), self._reads:
                    metadata = (await self._look_up(ledger_id)).metadata
            begins = metadata is not None and not metadata.is_closed
            if metadata is None or not begins or self._bookie not in metadata.fragments[0].ensemble:
                return None
            if len(self._created_ms) >= CACHED_MAX:
                self._created_ms.clear()
            self._created_ms[ledger_id] = metadata.ctime_ms  # a refused writer tries again, without another read
        refusal = self.quotas.charge_ledger(principal, tenant, self._created_ms[ledger_id])
        if refusal is None:
            del self._created_ms[ledger_id]
        return refusal

    def _is_allowed(self, asked: AccessRequest, owner: Resource) -> bool:
        return bool(self._rights(asked.who, owner) & BIT[asked.operation])

    def _verdict(self, asked: AccessRequest, owner: Resource) -> Status:
        if self._is_allowed(asked, owner):
            return Status.OK
        asked.denied()
        return Status.UNAUTHORIZED if self.enforces else Status.OK

    def _cache_owner(self, ledger_id: LedgerId, owner: Resource | None) -> None:
        if owner is None and not self._engine.is_strange(ledger_id):
            owner = NO_OWNER
        if owner is not None:
            if len(self._owner_cache) >= CACHED_MAX:
                self._owner_cache.clear()
            self._owner_cache[ledger_id] = owner

    async def _claim(self, ledger_id: LedgerId, asked: AccessRequest, found: _OwnerLookup) -> Resource | None:
        """Make the principal of a first request the owner of a ledger without one. Returns the owner; None: none."""
        wanted, metadata = ledgers_of(asked.who), found.metadata
        if wanted is None or metadata is None or asked.key is None or asked.operation not in CLAIMING:
            return None
        if not self._engine.is_strange(ledger_id):
            return None  # it is older than the policy: the first principal need not be its writer
        if metadata.password is None or not fits(metadata, asked.key):
            return None  # the first format of metadata has no key, so any would fit
        async with asyncio.timeout(ANSWER_S):
            return await self._metadata.ledger_owners.claim(ledger_id, wanted)

    async def _keep_if_possible(self, ledger_id: LedgerId, owner: Resource, operation: LedgerOperation) -> None:
        """Keep an owner. On a full disk fences, recovery adds and reads are served without it."""
        try:
            await self._keep(ledger_id, owner)
        except OSError as error:
            if error.errno not in NO_SPACE or operation in (LedgerOperation.ADD, LedgerOperation.WRITE_LAC):
                raise

    async def _keep(self, ledger_id: LedgerId, owner: Resource) -> None:
        """Returns when it is durable. Raises: OSError, BookKeeperError."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def done(error: BaseException | None) -> None:
            if future.done():
                return
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)

        self._owners.keep(ledger_id, owner, done)
        await future
