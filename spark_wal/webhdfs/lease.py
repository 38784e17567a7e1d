"""Who may answer: a lease of at most one second, kept in the metadata store.

    acquire      epoch + 1 by compare-and-set; then wait until the lease it replaced must have run out
    renewal      every third of a lease, by compare-and-set on the version written last
    is_held      the last renewal that succeeded was *sent* less than a lease ago, by our own clock

The journal fences *writes* of an owner that was replaced. Reads have no such guard: a paused gateway that
wakes up would answer from a tree that someone else has changed since. So it answers only while ``is_held``:
its successor took the lease over by a compare-and-set, after which no renewal of ours can succeed, and waited
a whole lease (and a margin for clocks that run apart) before it acknowledged anything. Hence at any moment at
most one gateway answers (linearizable reads, D22).
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any, Final, Protocol

from bookkeeper.errors import BookKeeperError, KeyExistsError, MetadataConflictError, NoSuchKeyError
from bookkeeper.meta.store import MetadataStore, Version, Versioned, settled_create, settled_set
from bookkeeper.seams import Clock

LEASE_S: Final = 1.0
"""How long an owner may answer after the start of its last renewal (D22: at most one second)."""

DRIFT: Final = 1.1
"""A successor waits this many leases: clocks may run apart by a tenth."""

VACANT_AFTER: Final = 3
"""One that stands by takes over when the owner has not renewed its lease for so many of its lengths."""

RETRY_S: Final = 0.2
"""Pause after the store could not be asked."""


class LeaseLostError(Exception):
    """Another gateway took the lease over."""


class Lease(Protocol):
    """The right to answer."""

    @property
    def is_held(self) -> bool:
        """Whether it is certain, now, that nobody else has it."""

    @property
    def is_others(self) -> bool:
        """Whether somebody else was seen to have it, and to renew it, a moment ago."""

    async def acquire(self, *, wait_vacant: bool) -> None:
        """Take it over and wait until nobody else can hold it; with ``wait_vacant``, only from an owner that
        does not renew it any more."""

    async def lost(self) -> None:
        """Wait until someone else has it. Being unable to renew is no loss: it may come back."""

    async def release(self) -> None:
        """Give it up, so that a successor need not wait. Idempotent."""


class SoleOwner:
    """For a journal that one process locks: nobody else can be the owner."""

    is_held = True
    is_others = False

    async def acquire(self, *, wait_vacant: bool) -> None:
        """At once."""

    async def lost(self) -> None:
        await asyncio.Event().wait()

    async def release(self) -> None:
        """Nothing to give up."""


@dataclass(frozen=True, slots=True)
class LeaseValue:
    """What stands in the metadata store."""

    epoch: int
    owner: str
    """Unique to one gateway process."""
    address: str
    """Where it answers, for people and for ``bk``."""
    lease_ms: int
    released: bool = False

    def encode(self) -> bytes:
        fields: dict[str, Any] = {"epoch": self.epoch, "owner": self.owner, "address": self.address}
        fields |= {"lease_ms": self.lease_ms, "released": self.released}
        return json.dumps(fields).encode()

    @classmethod
    def decode(cls, data: bytes) -> LeaseValue:
        """Raises ValueError, KeyError: not a lease."""
        f = json.loads(data)
        return cls(int(f["epoch"]), str(f["owner"]), str(f["address"]), int(f["lease_ms"]), bool(f["released"]))


class StoreLease:
    """A lease at one path of a metadata store."""

    def __init__(
        self, store: MetadataStore, path: str, clock: Clock, *, owner: str, address: str, lease_s: float = LEASE_S
    ) -> None:
        self._store = store
        self._path = path
        self._clock = clock
        self._owner = owner
        self._address = address
        self._lease_s = lease_s
        self._valid_until = float("-inf")
        self._others_until = float("-inf")
        self._version: Version | None = None
        self._value: LeaseValue | None = None
        self._renewing: asyncio.Task[None] | None = None
        self._waited = False
        """Whoever had the lease before our name stood in it has been waited for: only then it is ours to give away,
        or to take again without waiting. (Our name may stand there by a write whose reply was lost.)"""

    @property
    def is_held(self) -> bool:
        return self._clock.monotonic() < self._valid_until

    @property
    def is_others(self) -> bool:
        return self._clock.monotonic() < self._others_until

    @property
    def epoch(self) -> int:
        """0 before the first ``acquire``."""
        return self._value.epoch if self._value else 0

    async def acquire(self, *, wait_vacant: bool) -> None:
        await self._stop()
        while True:
            if wait_vacant:
                await self._until_vacant()
            try:
                before = await self._take()
            except (MetadataConflictError, KeyExistsError):
                continue  # someone else wrote in between: look again
            except BookKeeperError as error:
                if not error.retryable:
                    raise
                await asyncio.sleep(RETRY_S)
                continue
            break
        if before is not None and not before.released and not (before.owner == self._owner and self._waited):
            self._waited = False
            await asyncio.sleep(before.lease_ms / 1000 * DRIFT)
        self._waited = True
        await self._renew()
        self._renewing = asyncio.get_running_loop().create_task(self._keep_renewing(), name="lease renewal")

    async def lost(self) -> None:
        assert self._renewing is not None
        await asyncio.wait([self._renewing])

    async def release(self) -> None:
        held = self._version is not None and self._value is not None
        await self._stop()
        if not held or not self._waited:
            return
        assert self._value is not None and self._version is not None
        value = LeaseValue(self._value.epoch, self._owner, self._address, self._value.lease_ms, released=True)
        try:
            await self._store.set(self._path, value.encode(), self._version)
        except BookKeeperError:
            pass  # it runs out by itself
        self._version = None

    async def _take(self) -> LeaseValue | None:
        """Write ourselves in; returns what stood there."""
        found: Versioned[bytes] | None
        try:
            await self._store.sync(self._path)
            found = await self._store.get(self._path)
        except NoSuchKeyError:
            found = None
        before = LeaseValue.decode(found.value) if found else None
        value = LeaseValue((before.epoch if before else 0) + 1, self._owner, self._address, round(self._lease_s * 1000))
        if found is None:
            self._version = await settled_create(self._store, self._path, value.encode(), parents=True)
        else:
            self._version = await settled_set(self._store, self._path, value.encode(), found.version)
        self._value = value
        return before

    async def _renew(self) -> None:
        """Raises LeaseLostError: someone else has it. Other failures: unknown, try again."""
        assert self._version is not None and self._value is not None
        while True:
            started = self._clock.monotonic()
            try:
                self._version = await settled_set(self._store, self._path, self._value.encode(), self._version)
            except (MetadataConflictError, NoSuchKeyError) as error:
                if await self._was_us():
                    continue
                self._valid_until = float("-inf")
                self._others_until = self._clock.monotonic() + VACANT_AFTER * self._lease_s
                raise LeaseLostError(str(error)) from error
            self._valid_until = started + self._lease_s
            return

    async def _was_us(self) -> bool:
        """Whether what stands there is our own, by a renewal whose reply was lost (M8); then its version is ours."""
        assert self._value is not None
        try:
            await self._store.sync(self._path)
            found = await self._store.get(self._path)
        except NoSuchKeyError:
            return False
        if found.value != self._value.encode() or found.version == self._version:
            return False
        self._version = found.version
        return True

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

    async def _until_vacant(self) -> None:
        """Return when the lease has not been renewed for VACANT_AFTER of its lengths, is released, or is not there."""
        seen: tuple[Version, float] | None = None
        while True:
            try:
                await self._store.sync(self._path)
                found = await self._store.get(self._path)
            except NoSuchKeyError:
                return
            except BookKeeperError:
                seen = None
                await asyncio.sleep(RETRY_S)
                continue
            value = LeaseValue.decode(found.value)
            now = self._clock.monotonic()
            if seen is None or seen[0] != found.version:
                if seen is not None:
                    self._others_until = now + VACANT_AFTER * value.lease_ms / 1000
                seen = (found.version, now)
            if value.released or now - seen[1] > VACANT_AFTER * value.lease_ms / 1000:
                self._others_until = float("-inf")
                return
            await asyncio.sleep(value.lease_ms / 1000 / 3)

    async def _stop(self) -> None:
        self._valid_until = float("-inf")
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.wait([self._renewing])
            self._renewing = None
