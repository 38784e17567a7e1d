"""How much one bookie may have in progress, which requests have priority, and what each is charged with.

    ROOM ──▶ more than half of the limit is in progress, or the journal is behind ──▶ CROWDED
    CROWDED ──▶ at most a quarter is in progress, and the journal has caught up ──▶ ROOM: all who wait go on

Where shares are enforced, an authenticated client has one *share* for all of its connections: with more than a quarter
of the limit in progress they wait, and with a half its requests are refused. So one client alone never makes the bookie
crowded for the others.

Rules
    X32  Requests that are accepted and not answered yet are charged in bytes. While the bookie is crowded it stops
         reading from connections that bring more, and TCP slows their senders down. Requests above ``limit`` are
         refused.
    X33  Fences, recovery reads and recovery adds have a reserve of their own: an overloaded bookie can still be
         recovered from (F11).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final
from weakref import WeakValueDictionary

from bookkeeper import wire

SHARE: Final = 4
"""A client's connections wait above 1/SHARE of the limit; above twice that its requests are refused."""


class Share:
    """What one client has in progress, over all of its connections."""

    __slots__ = ("__weakref__", "in_progress", "waiting")

    def __init__(self) -> None:
        self.in_progress = 0
        self.waiting: dict[object, Callable[[], None]] = {}


class Admission:
    """Counts the bytes that one bookie has in progress, and decides who may add to them."""

    def __init__(self, limit: int, reserve: int) -> None:
        self.limit = limit
        self.reserve = reserve
        self.in_progress = 0
        self.refused = 0
        """Requests refused so far."""
        self.pauses = 0
        """How often a connection was told to wait."""
        self._waiting: dict[object, Callable[[], None]] = {}
        self._pressure = False
        self._shares: WeakValueDictionary[Hashable, Share] = WeakValueDictionary()
        """By client, while it has connections or something in progress."""
        self._shares_enforced = False

    def share_of(self, client: Hashable) -> Share:
        """The share of an authenticated client, one for all of its connections."""
        share = self._shares.get(client)
        if share is None:
            share = self._shares[client] = Share()
        return share

    def enforce_shares(self, enforce: bool) -> None:
        """Whether shares limit what a client may have in progress."""
        self._shares_enforced = enforce
        if not enforce:
            for share in list(self._shares.values()):
                _resume(share)

    def admit(self, size: int, *, reserved: bool = False, share: Share | None = None) -> bool:
        """Charge ``size`` bytes if there is room. A ``reserved`` request may also use the reserve.

        A request of any size is admitted while nothing else is in progress, and, within the limit, while nothing else
        of its client is.
        """
        limit = self.limit + self.reserve if reserved else self.limit
        if self.in_progress and self.in_progress + size > limit:
            self.refused += 1
            return False
        if share is not None:
            if self._shares_enforced and share.in_progress and share.in_progress + size > limit * 2 // SHARE:
                self.refused += 1
                return False
            share.in_progress += size
        self.in_progress += size
        return True

    def has_room(self, size: int, share: Share | None = None) -> bool:
        """Whether :meth:`admit` would accept this now. For requests that are answered at once and charge nothing."""
        if self.in_progress and self.in_progress + size > self.limit:
            return False
        if share is None or not self._shares_enforced or not share.in_progress:
            return True
        return share.in_progress + size <= self.limit * 2 // SHARE

    def release(self, size: int, share: Share | None = None) -> None:
        """Take back the charge of a request that is answered."""
        self.in_progress -= size
        assert self.in_progress >= 0, "released more than was admitted"
        if share is not None:
            share.in_progress -= size
            assert share.in_progress >= 0, "released more than was admitted of a share"
            if share.waiting and share.in_progress <= self.limit // SHARE // 2:
                _resume(share)
        if self._waiting:
            self._wake()

    @property
    def crowded(self) -> bool:
        """Whether connections that bring more should wait (:meth:`wait`)."""
        return self._pressure or self.in_progress > self.limit // 2

    def is_crowded_for(self, share: Share | None) -> bool:
        """Whether connections of a client with this share that bring more should wait."""
        if self._pressure or self.in_progress > self.limit // 2:
            return True
        return share is not None and self._shares_enforced and share.in_progress > self.limit // SHARE

    def wait(self, waiter: object, resume: Callable[[], None], share: Share | None = None) -> bool:
        """Call ``resume`` once there is room again, for all or for this client. Returns False if ``waiter`` waits
        already."""
        waiting = self._waiting if share is None or self.crowded else share.waiting
        if waiter in waiting:
            return False
        self.pauses += 1
        waiting[waiter] = resume
        return True

    def forget(self, waiter: object, share: Share | None = None) -> None:
        """Remove a waiter that has ended."""
        self._waiting.pop(waiter, None)
        if share is not None:
            share.waiting.pop(waiter, None)

    def set_pressure(self, pressure: bool) -> None:
        """Note whether too much waits for the journal (True), or the journal has caught up (False)."""
        self._pressure = pressure
        self._wake()

    def validate_state(self) -> None:
        """Check what must hold between any two calls. For tests."""
        assert self.in_progress >= 0, "released more than was admitted"
        assert not self._waiting or self._pressure or self.in_progress > self.limit // 4, (
            "connections wait although there is room"
        )
        for share in self._shares.values():
            assert 0 <= share.in_progress <= self.in_progress, "a share is not a part"
            assert not share.waiting or share.in_progress > self.limit // SHARE // 2, (
                "a client's connections wait although its share has room"
            )

    def _wake(self) -> None:
        if not self._pressure and self.in_progress <= self.limit // 4:
            waiting, self._waiting = self._waiting, {}
            for resume in waiting.values():
                resume()


def _resume(share: Share) -> None:
    waiting, share.waiting = share.waiting, {}
    for resume in waiting.values():
        resume()


READ_CHARGE: Final = 16 * 1024
"""Bytes that a single read is charged with while it is in progress, because the size of its reply is not known."""

BATCH_CHARGE_MAX: Final = 1024 * 1024
"""The most bytes that a batch read is charged with."""


def may_use_reserve(request: wire.Request) -> bool:
    """Whether the request may use the reserve: a fence (every read of a recovery is one) or a recovery add. The
    priority in its header does not count, because any client may set it."""
    match request:
        case wire.ReadEntry() | wire.BatchRead():
            return request.fence
        case wire.AddEntry():
            return request.recovery
        case _:
            return False


def reply_charge(request: wire.Request) -> int:
    """Bytes that the reply to ``request`` may take; 0 for a long poll, which may wait long."""
    match request:
        case wire.ReadEntry():
            return 0 if request.long_poll else READ_CHARGE
        case wire.BatchRead():
            return max(READ_CHARGE, min(request.size_max, BATCH_CHARGE_MAX))
        case wire.ReadLac() | wire.ListEntries():
            return READ_CHARGE
        case _:
            return 0
