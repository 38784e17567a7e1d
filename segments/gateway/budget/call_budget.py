"""How many bytes of requests the gateway holds, in total and for each address, and who waits for room. Pure.

A request takes its bytes from before it is received until it is answered. gRPC tells the size of a message only when
all of it is there; so a call whose one message is due takes the largest size first, and gives back the rest. Who waits
gets room in the order in which addresses asked, a call of each at a time; one that is full waits for itself only.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(slots=True)
class _Share:
    """What one address has."""

    calls: int = 0
    bytes: int = 0
    waiting: deque[Ticket] = field(default_factory=deque)


@dataclass(slots=True, eq=False)
class Ticket:
    """Someone who waits for room. ``granted`` is called once, when the bytes are taken."""

    address: str
    size: int
    granted: Callable[[], None]


class CallBudget:
    """The bytes and calls in progress."""

    def __init__(self, *, bytes_max: int, address_bytes_max: int, address_calls_max: int) -> None:
        self._bytes_max = bytes_max
        self._address_bytes_max = address_bytes_max
        self._address_calls_max = address_calls_max
        self._shares: dict[str, _Share] = {}
        self._waiting: dict[str, None] = {}
        """The addresses that wait, in turn."""
        self.bytes = 0
        """Those of all addresses."""
        self.calls = 0

    @property
    def waiting(self) -> int:
        """How many calls wait for room."""
        return sum(len(self._shares[address].waiting) for address in self._waiting)

    def enter(self, address: str) -> bool:
        """Count a call that has begun. False: its address has as many as it may have."""
        share = self._shares.setdefault(address, _Share())
        if share.calls >= self._address_calls_max:
            return False
        share.calls += 1
        self.calls += 1
        return True

    def leave(self, address: str) -> None:
        """Forget a call that :meth:`enter` has counted. Its bytes were given back."""
        self._shares[address].calls -= 1
        self.calls -= 1
        self._forget(address)

    def try_take(self, address: str, size: int) -> bool:
        """Take so many bytes if there is room for them, and nobody of the address has asked before. With a size of 0:
        whether there is any room."""
        share = self._shares.setdefault(address, _Share())
        if share.waiting or not self._fits(share, size) or self._is_full_for_others():
            return False
        self._add(share, size)
        return True

    def wait(self, address: str, size: int, granted: Callable[[], None]) -> Ticket:
        """Ask for bytes after :meth:`try_take` has refused them."""
        ticket = Ticket(address, size, granted)
        self._shares.setdefault(address, _Share()).waiting.append(ticket)
        self._waiting.setdefault(address)
        return ticket

    def withdraw(self, ticket: Ticket) -> None:
        """Ask no more. No effect if the bytes were taken."""
        share = self._shares.get(ticket.address)
        if share is not None and ticket in share.waiting:
            share.waiting.remove(ticket)
            self._admit()
            self._forget(ticket.address)

    def resize(self, address: str, before: int, after: int) -> None:
        """Take ``after`` bytes in place of ``before``, also above the limit: they are there already."""
        share = self._shares.setdefault(address, _Share())
        self._add(share, after - before)
        if after < before:
            self._admit()
        self._forget(address)

    def _fits(self, share: _Share, size: int) -> bool:
        return self._fits_alone(share, size) and self.bytes + max(size, 1) <= self._bytes_max

    def _fits_alone(self, share: _Share, size: int) -> bool:
        """Whether the address has room for it, whatever the others hold."""
        return share.bytes + max(size, 1) <= self._address_bytes_max

    def _is_full_for_others(self) -> bool:
        """Whether an address waits that is not full itself: nobody overtakes it."""
        shares = (self._shares[address] for address in self._waiting)
        return any(share.waiting and self._fits_alone(share, share.waiting[0].size) for share in shares)

    def _add(self, share: _Share, size: int) -> None:
        share.bytes += size
        self.bytes += size

    def _admit(self) -> None:
        """Give room to those who wait, an address after the other. Nobody overtakes one that is not full itself."""
        admitted = True
        while admitted:
            admitted = False
            for address in tuple(self._waiting):
                share = self._shares[address]
                if share.waiting and not self._fits_alone(share, share.waiting[0].size):
                    continue
                if share.waiting and not self._fits(share, share.waiting[0].size):
                    return
                del self._waiting[address]
                if not share.waiting:
                    continue
                ticket = share.waiting.popleft()
                if share.waiting:
                    self._waiting[address] = None
                self._add(share, ticket.size)
                ticket.granted()
                admitted = True

    def _forget(self, address: str) -> None:
        share = self._shares[address]
        if not (share.calls or share.bytes or share.waiting):
            del self._shares[address]
            self._waiting.pop(address, None)
