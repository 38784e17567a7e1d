"""Whether a principal may do something with a ledger on this bookie.

Who asks is known from the connection; whose the ledger is, from the bookie's own file (:mod:`owner_log`). Then the
answer is there at once, and a connection remembers it for the ledger: it asks once, not for each entry. If no owner is
kept yet, the metadata are read first, and the request waits:

    handed over, by an operator's order        that owner
    named in the ledger's custom metadata      that owner
    named nowhere, claimed                     whoever claimed it
    named nowhere, and claimed by nobody       whoever brings the ledger's key with an add or a fence claims it, unless
                                               he has rights without being the owner
    no such ledger                             nobody's

A request that may do what it wants, and makes the ledger exist here, goes on when the owner is durable: later changes
of the metadata do not change it. One that may not is refused before anything was made, kept, fenced or read of the
bookie's disk, and one for a ledger that does not exist is refused in the same way. So are reads, which bring no key.

While the mode is ``observe`` what would be refused is told and done, also what could not be looked up. Requests that
wait stay in order, each ledger's by themselves.
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
from bookkeeper.bookie.ownership.operation import BEGINS, BIT, CLAIMS, EVERYTHING, MAKES, bits_of
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

REMEMBERED: Final = 8192
"""Pairs of principals and owners whose rights are remembered, and owners of ledgers that are not here, at most."""

READ_S: Final = 60.0
"""Seconds after which the hand-overs are read again though no watch told of a change."""
RETRY_S: Final = 2.0
"""Seconds until the next try after they could not be read."""

WAITING_MAX: Final = 4096
"""Ledgers whose metadata are waited for, at most; requests for further ones are refused until there is room."""

SHARE: Final = 4
"""Those of which one principal was the first to ask take at most one of so many parts of that."""


class FollowedPolicy(Protocol):
    """The policy that counts now (:class:`bookkeeper.meta.policy_follower.PolicyFollower`)."""

    @property
    def policy(self) -> Policy: ...

    @property
    def quotas(self) -> QuotaBook: ...

    @property
    def observations(self) -> Observations: ...

    def on_change(self, callback: Callable[[Policy], None]) -> None: ...


@dataclass(frozen=True, slots=True)
class AccessRequest:
    """What somebody wants to do with a ledger."""

    who: Principal
    operation: LedgerOperation
    key: bytes | None = field(repr=False)
    """The ledger's key, if the request brings one."""
    then: Callable[[Status], None]
    """Called once: OK, UNAUTHORIZED (it is not allowed), TOO_MANY_REQUESTS (it begins a ledger beyond a quota, or too
    much waits), or IO_ERROR (it is not known whether it is allowed)."""
    denied: Callable[[], None]
    """Called before, if it is not allowed, refused or not."""
    over: Callable[[QuotaRefusal], None] = lambda refusal: None
    """Called before, if it begins a ledger beyond a quota, refused or not."""


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
        self._seen: dict[LedgerId, Resource] = {}
        """Owners that were read and are not kept: nothing of the ledger is here, or it has none. They are no secret to
        be kept from changes of the metadata, only read seldom."""
        self._made: dict[LedgerId, int | None] = {}
        """When ledgers were made that wait for a quota."""
        self._handed_over: dict[LedgerId, Resource] = {}
        self._waiting: dict[LedgerId, deque[AccessRequest]] = {}
        self._first_askers: Counter[str] = Counter()
        """How many of them wait because this name has asked."""
        self._reads = asyncio.Semaphore(READS)
        self._tasks: set[asyncio.Task[None]] = set()
        self._listeners: list[Callable[[], None]] = []
        self._denied: dict[LedgerOperation, CountedMetric] = {}
        self._log = RateLimitedLogger(log, lambda: asyncio.get_running_loop().time())
        self._lookups = metrics.counter("access_lookups_total", "Ledgers whose owner was looked up in the metadata.")
        self.over_quota = metrics.counter(
            "quota_refusals_total", "Runs of adds for which a quota is used up; in the mode observe they are done."
        )
        follower.on_change(lambda policy: self._changed())

    # -- what connections ask -----------------------------------------------------------------------------

    @property
    def is_on(self) -> bool:
        """Whether anybody is asked for permission."""
        return self._follower.policy.mode is not Mode.OFF

    @property
    def enforces(self) -> bool:
        """Whether what is not allowed is refused."""
        return self._follower.policy.mode is Mode.ENFORCE

    @property
    def limits(self) -> bool:
        """Whether there are quotas to be asked."""
        policy = self._follower.policy
        return policy.mode is not Mode.OFF and bool(policy.quotas or any(t.quota.document() for t in policy.tenants))

    @property
    def quotas(self) -> QuotaBook:
        """The quotas, as they are used on this bookie."""
        return self._follower.quotas

    def on_change(self, callback: Callable[[], None]) -> None:
        """Call back when what was answered counts no more."""
        self._listeners.append(callback)

    def allowed(self, who: Principal, ledger_id: LedgerId) -> int | None:
        """The operations that ``who`` may do with a ledger, as bits. They are the same until :meth:`on_change` tells.
        None: its owner is not kept here; then :meth:`ask`. Negative ids stand for the whole cluster."""
        if ledger_id < 0:
            return self._rights(who, CLUSTER)
        if ledger_id in self._waiting:
            return None  # nothing may overtake what waits
        owner = self._owner(ledger_id)
        if owner is None and self._seen.get(ledger_id) == NO_OWNER:
            owner = NO_OWNER  # it is here, and only a hand-over gives it an owner
        return self._rights(who, owner) if owner is not None else None

    def tenant_of(self, ledger_id: LedgerId) -> str | None:
        """The tenant whose quota counts for a ledger's entries; None: none does."""
        owner = self._owner(ledger_id)
        return self._follower.policy.tenant_of(owner) if owner is not None else None

    def ask(self, ledger_id: LedgerId, asked: AccessRequest) -> None:
        """Answer when it is known whether this is allowed, and, if it makes the ledger exist here, when its owner is
        durable. Requests for one ledger are answered in their order."""
        if (waiting := self._waiting.get(ledger_id)) is not None:
            waiting.append(asked)
            return
        name = asked.who.name
        if len(self._waiting) >= WAITING_MAX or self._first_askers[name] >= WAITING_MAX // SHARE:
            asked.then(Status.TOO_MANY_REQUESTS if self.enforces else Status.OK)
            return
        self._waiting[ledger_id] = deque((asked,))
        self._first_askers[name] += 1
        task = asyncio.get_running_loop().create_task(self._settle(ledger_id), name=f"permissions on {ledger_id}")
        self._tasks.add(task)
        task.add_done_callback(partial(self._settled, name))

    def denied(self, who: Principal, ledger_id: LedgerId, operation: LedgerOperation, count: int = 1) -> None:
        """Count requests that are not allowed, refused or not."""
        counter = self._denied.get(operation)
        if counter is None:
            text = "Requests that the access policy does not allow; in the mode observe they are done all the same."
            counter = self._metrics.counter("access_denied_total", text, operation=operation.value)
            self._denied[operation] = counter
        counter.add(count)
        owner = CLUSTER if ledger_id < 0 else self._owner(ledger_id) or self._seen.get(ledger_id) or NO_OWNER
        self._follower.observations.note(who, operation.value, owner)

    def close(self) -> None:
        """Give up what is looked up. What waits is answered with IO_ERROR."""
        for task in list(self._tasks):
            task.cancel()
        for ledger_id in list(self._waiting):
            for asked in self._waiting.pop(ledger_id, ()):
                asked.then(Status.IO_ERROR)
        self._owners.close()

    # -- hand-overs ---------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Follow hand-overs until cancelled; now and then forget the owners of ledgers that are gone."""
        wake = asyncio.Event()
        watch = self._metadata.ledger_owners.watch(wake.set)
        try:
            while True:
                pause = READ_S
                try:
                    await self.read_handed_over()
                    await self._forget_gone()
                except (BookKeeperError, OSError) as error:
                    log.warning("bookie %s cannot follow the hand-overs of ledgers: %s", self._bookie, in_words(error))
                    pause = RETRY_S
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(wake.wait(), pause)
                wake.clear()
        finally:
            watch.close()

    async def _forget_gone(self) -> None:
        """Forget the owners of ledgers of which nothing is here, if there are many, and the claims of those that exist
        no more."""
        for ledger_id, owner in self._owners.forget(self._engine.has):
            if owner.kind is ResourceKind.LEDGERS and not await self._exists(ledger_id):
                await self._metadata.ledger_owners.forget(ledger_id)

    async def _exists(self, ledger_id: LedgerId) -> bool:
        """Whether there is such a ledger, or one that can be brought back."""
        try:
            await self._metadata.ledgers.read(ledger_id)
        except NoSuchLedgerError:
            return await self._metadata.ledgers.restorable.has(ledger_id, fresh=True)
        return True

    async def read_handed_over(self) -> None:
        """Read which ledgers have got another owner; that counts at once. Where a former owner is kept, keep that: also
        what an earlier call could not keep. Raises: MetadataError, OSError."""
        found = await self._metadata.ledger_owners.handed_over()
        if found != self._handed_over:
            self._handed_over = found
            self._seen.clear()
            self._changed()
        for ledger_id in [each for each, owner in found.items() if self._owners.get(each) not in (None, owner)]:
            await self._keep(ledger_id, found[ledger_id])

    # -- inside -------------------------------------------------------------------------------------------

    def _owner(self, ledger_id: LedgerId) -> Resource | None:
        """Whose a ledger is of which an owner is kept; None: none is. A hand-over counts before it is kept."""
        kept = self._owners.get(ledger_id)
        return None if kept is None else self._handed_over.get(ledger_id, kept)

    def _settled(self, name: str, task: asyncio.Task[None]) -> None:
        """Nothing of a ledger waits any more of which this name was the first to ask."""
        self._tasks.discard(task)
        self._first_askers[name] -= 1
        if not self._first_askers[name]:
            del self._first_askers[name]

    def _changed(self) -> None:
        self._bits.clear()
        for callback in self._listeners:
            callback()

    def _rights(self, who: Principal, owner: Resource) -> int:
        key = (who, owner)
        bits = self._bits.get(key)
        if bits is None:
            if len(self._bits) >= REMEMBERED:
                self._bits.clear()
            policy = self._follower.policy
            bits = EVERYTHING if policy.mode is Mode.OFF else bits_of(policy.rights(who, owner))
            self._bits[key] = bits
        return bits

    async def _settle(self, ledger_id: LedgerId) -> None:
        """Answer all who wait for a ledger, in their order."""
        found: _OwnerLookup | None = None
        if (seen := self._seen.get(ledger_id)) is not None:
            found = _OwnerLookup(seen, None)
        elif self._owner(ledger_id) is None:
            try:
                async with asyncio.timeout(ANSWER_S), self._reads:
                    found = await self._look_up(ledger_id)
            except Exception as error:  # whatever it is, somebody waits for an answer
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
            except Exception as error:  # those who wait behind it are answered all the same
                self._log.error("a request that was allowed failed with an unexpected error", error)

    async def _look_up(self, ledger_id: LedgerId) -> _OwnerLookup:
        """Whose a ledger is, by the metadata. A ledger that the store does not show is looked for after a sync: what a
        follower shows may be old."""
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
        self._see(ledger_id, named)
        if named is None and not self._may(asked, owner):
            owner = await self._claim(ledger_id, asked, found) or NO_OWNER
            owner = self._handed_over.get(ledger_id, owner)
        if owner != NO_OWNER and self._may(asked, owner):
            if (refusal := await self._beyond(ledger_id, asked, owner, found)) is not None:
                asked.over(refusal)
                if self.enforces:
                    return Status.TOO_MANY_REQUESTS
            if asked.operation in MAKES or self._engine.has(ledger_id):
                await self._keep_if_possible(ledger_id, owner, asked.operation)
            owner = self._handed_over.get(ledger_id, owner)
        return self._verdict(asked, owner)

    async def _beyond(
        self, ledger_id: LedgerId, asked: AccessRequest, owner: Resource, found: _OwnerLookup
    ) -> QuotaRefusal | None:
        """Count a ledger that begins here with a writer's first request, by the quotas of ledgers; or the one that is
        used up. One that began elsewhere is none: this bookie stands in for another, or gets a copy.

        Raises:
            BookKeeperError: the metadata do not answer.
        """
        if asked.operation not in BEGINS or self._engine.has(ledger_id) or not self.limits:
            return None
        tenant = self._follower.policy.tenant_of(owner)
        principal = asked.who if owner == ledgers_of(asked.who) else None
        if not self.quotas.limits_ledgers(principal, tenant):
            return None
        if ledger_id not in self._made:
            metadata = found.metadata
            if metadata is None:
                async with asyncio.timeout(ANSWER_S), self._reads:
                    metadata = (await self._look_up(ledger_id)).metadata
            begins = metadata is not None and not metadata.is_closed
            if metadata is None or not begins or self._bookie not in metadata.fragments[0].ensemble:
                return None
            if len(self._made) >= REMEMBERED:
                self._made.clear()
            self._made[ledger_id] = metadata.ctime_ms  # who is refused asks again and again, and the store is not
        refusal = self.quotas.begin(principal, tenant, self._made[ledger_id])
        if refusal is None:
            del self._made[ledger_id]
        return refusal

    def _may(self, asked: AccessRequest, owner: Resource) -> bool:
        return bool(self._rights(asked.who, owner) & BIT[asked.operation])

    def _verdict(self, asked: AccessRequest, owner: Resource) -> Status:
        if self._may(asked, owner):
            return Status.OK
        asked.denied()
        return Status.UNAUTHORIZED if self.enforces else Status.OK

    def _see(self, ledger_id: LedgerId, owner: Resource | None) -> None:
        if owner is None and not self._engine.is_strange(ledger_id):
            owner = NO_OWNER
        if owner is not None:
            if len(self._seen) >= REMEMBERED:
                self._seen.clear()
            self._seen[ledger_id] = owner

    async def _claim(self, ledger_id: LedgerId, asked: AccessRequest, found: _OwnerLookup) -> Resource | None:
        """Make the principal of a first request the owner of a ledger that has none. Returns the owner; None: none."""
        wanted, metadata = ledgers_of(asked.who), found.metadata
        if wanted is None or metadata is None or asked.key is None or asked.operation not in CLAIMS:
            return None
        if not self._engine.is_strange(ledger_id):
            return None  # it was here before anybody was asked: whoever comes first now need not be its writer
        if metadata.password is None or not fits(metadata, asked.key):
            return None  # the first format of metadata tells no key: every one would do
        async with asyncio.timeout(ANSWER_S):
            return await self._metadata.ledger_owners.claim(ledger_id, wanted)

    async def _keep_if_possible(self, ledger_id: LedgerId, owner: Resource, operation: LedgerOperation) -> None:
        """Keep an owner. On a full disk fences, recovery adds and reads go on without."""
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
