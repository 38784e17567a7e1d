"""Who may answer: a lease of at most one second, kept in the metadata store.

    take         epoch + 1, by compare-and-set on the version that was read
    renewal      every third of a lease, by compare-and-set on the version written last
    is_held      by our own clock, the last successful write was *sent* less than a lease ago, and no earlier holder
                 can hold the lease any more

The journal fences *writes* of a former owner. It cannot fence reads: a paused gateway that wakes up would answer from a
tree that another gateway has changed since. So a gateway answers only while ``is_held``.

Why two gateways never hold it at the same moment (linearizable reads)
    Every write of the lease replaces the version before it, so all writes have one order. Let A hold the lease by a
    write a, and let B take it by a later write b. All successful writes of A are older than b. A holds the lease until
    one lease after it *sent* its newest write. B has read the version that b replaced, which is A's newest or a later
    one. Let s be the time of the reply by B's clock: A sent its newest write before s. B holds the lease only from
    DRIFT leases after s on, by its own clock. Clocks differ in speed by less than a tenth, and do not stop, also not
    while the machine sleeps. So A's lease has run out by then. It does not matter what happened in between: claims that
    were given up, lost replies, a claim of B that B does not know of. The store always holds *some* version that B has
    read at a time s, and every earlier holder has sent its last write before s.

    In three cases the wait is shorter, because nobody holds the lease any more:
    * The value says ``released``. Its writer had waited itself, stopped answering, and then wrote it.
    * It is our own claim, as its epoch shows. The wait for earlier holders continues, or is over.
    * Its writer is dead (``place``), as the kernel that ran it says. A dead process answers nothing. (A machine that is
      copied while it runs is two machines with one name; leases do not protect against that.)
    In the last case we also wait for those before the dead writer, unless it held the lease itself. It says so in what
    it writes (``held``).

Who waits for whom
    A gateway that starts, or stands by, does not disturb an owner that renews. It takes the lease when that was not
    renewed for VACANT_AFTER of its lengths, which is longer than the wait above. A gateway that listens at the owner's
    address waits for DRIFT leases only, because the owner no longer listens there. A slow store does not make a lease
    vacant: time in which the store did not answer does not count. A gateway that is told to take over does so at once
    and waits afterwards. Meanwhile it may claim the journal and replay it, but it answers nothing.
"""

from __future__ import annotations

import asyncio
import json
import logging
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Final, Protocol

from bookkeeper.errors import (
    BookKeeperError,
    KeyExistsError,
    MetadataConflictError,
    MetadataFormatError,
    NoSuchKeyError,
)
from bookkeeper.leases.process_location import NOWHERE, OwnLocation, ProcessLocation
from bookkeeper.meta.store import MetadataStore, Version, settled_create, settled_set
from bookkeeper.seams import Clock

logger = logging.getLogger(__name__)

LEASE_S: Final = 1.0
"""How long an owner may answer after the start of its last renewal: at most one second."""

DRIFT: Final = 1.1
"""A successor waits this many lease lengths: clocks may run apart by a tenth."""

VACANT_AFTER: Final = 1.5
"""A standby takes over when the owner has not renewed its lease for this many of its lengths."""

LOOKS: Final = 5
"""How often per lease length a standby checks whether the lease was renewed."""

RELEASE_S: Final = 2.0
"""How long the release of a lease waits for a store that does not answer. The lease has run out by then."""

RETRY_S: Final = 0.2
"""The pause after a failed attempt to ask the store."""


class LeaseLostError(Exception):
    """Another gateway took the lease over."""


class NamespaceOwnedError(BookKeeperError):
    """Another gateway owns the namespace and answers for it."""

    def __init__(self, address: str) -> None:
        super().__init__(
            f"the gateway at {address} owns this namespace and renews its lease: use that one, stop it, or take the "
            "namespace over (take_over=True; bk gateway webhdfs --take-over)"
        )
        self.address = address


class LeaseEntry(Enum):
    """The ways to take a lease."""

    IF_VACANT = "if vacant"
    """Raise NamespaceOwnedError if another gateway renews it."""
    WHEN_VACANT = "when vacant"
    """Wait until no other gateway renews it."""
    TAKE_OVER = "take over"
    """Take it at once, also from an owner."""


class Lease(Protocol):
    """The right to answer."""

    @property
    def is_held(self) -> bool:
        """Whether this gateway certainly holds the lease now."""

    @property
    def others_seen(self) -> int:
        """How many writes of other gateways were seen. A new one shows that a gateway was alive at that moment."""

    @property
    def other(self) -> str | None:
        """The address of the other gateway that was last seen to hold the lease; None if none is known."""

    async def acquire(self, entry: LeaseEntry) -> None:
        """Write this gateway into the lease, and renew it from now on.

        The lease is held only after the wait for earlier holders: see :meth:`wait_until_held`.

        Raises:
            NamespaceOwnedError: for IF_VACANT only.
        """

    async def wait_until_held(self) -> None:
        """Wait until this gateway certainly holds the lease, and no other one does.

        Raises:
            LeaseLostError: another gateway took it meanwhile.
        """

    async def lost(self) -> None:
        """Wait until another gateway has the lease. Failed renewals do not count: the lease may come back."""

    async def release(self) -> None:
        """Give the lease up, so that a successor need not wait. Idempotent."""


class SoleOwner:
    """The lease of a journal that one process locks: no other process can be the owner."""

    is_held = True
    others_seen = 0
    other = None

    async def acquire(self, entry: LeaseEntry) -> None:
        """Returns at once: there is no other process."""

    async def wait_until_held(self) -> None:
        """Returns at once: there is no other process."""

    async def lost(self) -> None:
        await asyncio.Event().wait()

    async def release(self) -> None:
        """Does nothing: there is no lease to give up."""


@dataclass(frozen=True, slots=True)
class LeaseValue:
    """The value of a lease in the metadata store."""

    epoch: int
    owner: str
    """The gateway process. No other process has the same."""
    address: str
    """The address at which it answers, for people and for ``bk``."""
    lease_ms: int
    released: bool = False
    held: bool = False
    """Whether no earlier holder could hold the lease any more when this was written."""
    place: ProcessLocation | None = None

    def encode(self) -> bytes:
        fields: dict[str, Any] = {"epoch": self.epoch, "owner": self.owner, "address": self.address}
        fields |= {"lease_ms": self.lease_ms, "released": self.released, "alone": self.held}
        if self.place is not None:
            fields["place"] = self.place.fields()
        return json.dumps(fields).encode()

    @classmethod
    def decode(cls, data: bytes) -> LeaseValue:
        """Read a stored lease. Raises ValueError, KeyError or TypeError if the bytes are not a lease."""
        try:
            f = json.loads(data)
        except RecursionError as error:
            raise ValueError("it is nested too deeply") from error
        place = None
        with suppress(ValueError, KeyError, TypeError):  # nothing is known of a gateway that writes something else
            place = ProcessLocation.of(f["place"])
        try:
            epoch, lease_ms = int(f["epoch"]), int(f["lease_ms"])
        except OverflowError as error:
            raise ValueError("it has an infinite number") from error
        released, held = bool(f["released"]), bool(f.get("alone", False))
        return cls(epoch, str(f["owner"]), str(f["address"]), lease_ms, released, held, place)


@dataclass(frozen=True, slots=True)
class LeaseSighting:
    """A version of the lease, and a time at which the store had it: its writer sent it before ``at``."""

    value: LeaseValue
    version: Version
    at: float


async def renewed_by(store: MetadataStore, path: str, clock: Clock) -> str | None:
    """The address of the gateway that renews the lease. None: nobody does, for as long as a standby waits; or it was
    given up, or there is none.

    Raises: MetadataUnavailableError and others of the store. MetadataFormatError: the value is no lease.
    """
    looks = StoreLease(store, path, clock, owner="", address="")
    try:
        seen = await looks.sighting()
        quiet_s = 0.0
        while not seen.value.released and quiet_s <= VACANT_AFTER * seen.value.lease_ms / 1000:
            await asyncio.sleep(seen.value.lease_ms / 1000 / LOOKS)
            asked = clock.monotonic()
            now = await looks.sighting()
            if now.version != seen.version:
                return None if now.value.released else now.value.address
            quiet_s += asked - seen.at  # without the time that the store took to answer
            seen = now
    except NoSuchKeyError:
        pass
    return None


class StoreLease:
    """A lease at one path of a metadata store."""

    def __init__(
        self,
        store: MetadataStore,
        path: str,
        clock: Clock,
        *,
        owner: str,
        address: str,
        lease_s: float = LEASE_S,
        here: OwnLocation = NOWHERE,
    ) -> None:
        self._store = store
        self._path = path
        self._clock = clock
        self._owner = owner
        self._address = address
        self._lease_s = lease_s
        self._here = here
        self._valid_until = float("-inf")
        self._held_from = float("-inf")
        """From when on no holder before our claim ``_value`` can hold the lease."""
        self._version: Version | None = None
        self._value: LeaseValue | None = None
        """The value that this gateway has written last, as far as it knows."""
        self._renewing: asyncio.Task[None] | None = None
        self.others_seen = 0
        self.other: str | None = None

    @property
    def is_held(self) -> bool:
        return self._held_from <= self._clock.monotonic() < self._valid_until

    @property
    def epoch(self) -> int:
        """The epoch of this gateway's claim; 0 before the first ``acquire``."""
        return self._value.epoch if self._value else 0

    async def acquire(self, entry: LeaseEntry) -> None:
        await self._stop()
        while True:
            seen = await self._read() if entry is LeaseEntry.TAKE_OVER else await self._wait_until_vacant(entry)
            try:
                await self._take(seen)
            except (MetadataConflictError, KeyExistsError, NoSuchKeyError):
                continue  # another gateway wrote in between: read again
            except BookKeeperError as error:
                if not error.retryable:
                    raise
                await asyncio.sleep(RETRY_S)
                continue
            break
        if seen is not None and entry is LeaseEntry.TAKE_OVER and not self._is_free(seen.value):
            logger.warning(
                "this gateway took the namespace over from the gateway at %s (lease %s)", seen.value.address, self._path
            )
        self.other = None
        self._renewing = asyncio.get_running_loop().create_task(self._keep_renewing(), name="lease renewal")

    async def wait_until_held(self) -> None:
        assert self._renewing is not None
        while not self.is_held:
            if self._renewing.done():
                raise LeaseLostError(self._gone_to)
            left, look = self._held_from - self._clock.monotonic(), self._lease_s / LOOKS
            await asyncio.sleep(min(left, look) if left > 0 else look)

    async def lost(self) -> None:
        assert self._renewing is not None
        await asyncio.wait([self._renewing])

    async def release(self) -> None:
        value, version = self._value, self._version
        waited = self._clock.monotonic() >= self._held_from
        await self._stop()
        if version is None or value is None or not waited:
            return  # an earlier holder may still hold it, so a successor must wait
        try:
            async with asyncio.timeout(RELEASE_S):
                await self._store.set(self._path, replace(value, released=True).encode(), version)
        except (BookKeeperError, TimeoutError):
            pass  # the lease runs out by itself
        self._version = None

    # -- taking it -----------------------------------------------------------------------------------------

    async def _read(self) -> LeaseSighting | None:
        """The stored lease, as soon as the store answers; None if there is none."""
        while True:
            try:
                return await self.sighting()
            except NoSuchKeyError:
                return None
            except BookKeeperError as error:
                if not error.retryable:
                    raise
                await asyncio.sleep(RETRY_S)

    async def sighting(self) -> LeaseSighting:
        """What the store has now. Raises: NoSuchKeyError: there is no lease. And as the store."""
        await self._store.sync(self._path)
        found = await self._store.get(self._path)
        try:
            value = LeaseValue.decode(found.value)
        except (ValueError, KeyError, TypeError) as error:
            raise MetadataFormatError(
                f"the value at {self._path} is not a gateway's lease: {found.value[:200].decode(errors='replace')}"
            ) from error
        return LeaseSighting(value, found.version, self._clock.monotonic())

    async def _wait_until_vacant(self, entry: LeaseEntry) -> LeaseSighting | None:
        """Wait until no other gateway has or renews the lease. Returns the stored lease."""
        seen: LeaseSighting | None = None
        quiet_since = 0.0
        while True:
            asked = self._clock.monotonic()
            now = await self._read()
            if now is None or self._is_free(now.value):
                self.other = None
                return now
            if seen is None or seen.version != now.version:
                if seen is not None:
                    self._note_other(now.value)
                    if entry is LeaseEntry.IF_VACANT:
                        raise NamespaceOwnedError(now.value.address)
                seen, quiet_since = now, now.at
            else:
                quiet_since += now.at - asked  # the store was slow for us, and maybe for the owner
            patience = DRIFT if self._here.has_address_of(seen.value.place) else VACANT_AFTER
            if now.at - quiet_since > patience * seen.value.lease_ms / 1000:
                self.other = None
                return seen
            await asyncio.sleep(self._lease_s / LOOKS)

    def _is_free(self, value: LeaseValue) -> bool:
        return value.released or value.owner == self._owner or self._here.knows_dead(value.place)

    async def _take(self, seen: LeaseSighting | None) -> None:
        """Write this gateway into the lease, if it still has the version that was seen."""
        epoch = seen.value.epoch + 1 if seen else 1
        held_from = self._others_end(seen)
        now = self._clock.monotonic()
        value = LeaseValue(
            epoch,
            self._owner,
            self._address,
            round(self._lease_s * 1000),
            held=held_from <= now,
            place=self._here.place,
        )
        if seen is None:
            version = await settled_create(self._store, self._path, value.encode(), parents=True)
        else:
            version = await settled_set(self._store, self._path, value.encode(), seen.version)
        self._value, self._version, self._held_from = value, version, held_from
        self._valid_until = now + self._lease_s

    def _others_end(self, seen: LeaseSighting | None) -> float:
        """When, by our clock, nobody holds the lease by ``seen`` or an earlier version (see above)."""
        if seen is None or seen.value.released:
            return float("-inf")
        value = seen.value
        if self._value is not None and (value.owner, value.epoch) == (self._owner, self._value.epoch):
            return self._held_from
        if value.held and self._here.knows_dead(value.place):
            return float("-inf")
        return seen.at + value.lease_ms / 1000 * DRIFT

    # -- keeping it ----------------------------------------------------------------------------------------

    async def _keep_renewing(self) -> None:
        while True:
            await asyncio.sleep(self._lease_s / 3)
            try:
                await self._renew()
            except LeaseLostError:
                return
            except BookKeeperError as error:
                if not error.retryable:
                    self._valid_until = float("-inf")
                    return
                await asyncio.sleep(min(RETRY_S, self._lease_s / 3))

    async def _renew(self) -> None:
        """Renew the lease. After a failure the outcome is unknown.

        Raises:
            LeaseLostError: another gateway has the lease.
        """
        while True:
            assert self._version is not None and self._value is not None
            sent = self._clock.monotonic()
            self._value = replace(self._value, held=self._held_from <= sent)
            try:
                self._version = await settled_set(self._store, self._path, self._value.encode(), self._version)
            except (MetadataConflictError, NoSuchKeyError) as error:
                if await self._was_us():
                    continue
                self._valid_until = float("-inf")
                raise LeaseLostError(self._gone_to) from error
            self._valid_until = sent + self._lease_s
            return

    async def _was_us(self) -> bool:
        """Whether the stored lease is our own renewal, whose reply was lost. Then its version is ours."""
        try:
            found = await self.sighting()
        except NoSuchKeyError:
            return False
        assert self._value is not None
        if (found.value.owner, found.value.epoch) != (self._owner, self._value.epoch):
            self._note_other(found.value)
            return False
        if found.version == self._version:
            return False
        self._version = found.version
        return True

    def _note_other(self, value: LeaseValue) -> None:
        self.others_seen += 1
        self.other = value.address

    @property
    def _gone_to(self) -> str:
        return (
            f"the gateway at {self.other} took the lease over"
            if self.other
            else "the lease was removed from the metadata store"
        )

    async def _stop(self) -> None:
        self._valid_until = float("-inf")
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.wait([self._renewing])
            self._renewing = None
