"""Registration and discovery of bookies.

* A writable bookie has an ephemeral value ``available/<id>``, a read-only one ``available/readonly/<id>``. Changing
  over creates the new one first, so for a moment both exist: such a bookie counts as writable.
* **V5, Z7** After a session is lost the registration is made again by itself, in its present mode. A value that
  belongs to another session is waited out, never deleted; whether it is ours is decided by its owner.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from bookkeeper.ids import Address, BookieId
from bookkeeper.meta.service_info import ServiceInfo
from bookkeeper.meta.store import Watch


class Registration(Protocol):
    """A bookie's presence, kept up until it is unregistered."""

    @property
    def read_only(self) -> bool:
        """The mode that was asked for last."""

    @property
    def present(self) -> bool:
        """The value is there and ours, as far as is known."""

    async def set_read_only(self, read_only: bool) -> None:
        """Change the mode; returns when it is published, retries by itself through an outage."""

    async def unregister(self) -> None:
        """Go. Idempotent."""


class Bookies:
    """The bookies of one cluster."""

    async def register(self, bookie: BookieId, info: ServiceInfo, *, read_only: bool = False) -> Registration:
        """Publish a bookie and keep it published.

        Raises:
            KeyExistsError: another live session holds this id and did not go within its session time-out.
        """
        raise NotImplementedError

    async def writable(self) -> list[BookieId]:
        """Bookies that take new entries, sorted. Raises: NoClusterError."""
        raise NotImplementedError

    async def read_only(self) -> list[BookieId]:
        """Bookies that are registered as read-only and not as writable, sorted."""
        raise NotImplementedError

    async def address(self, bookie: BookieId) -> Address:
        """Where a registered bookie listens.

        Raises:
            BookieUnavailableError: it is not registered.
        """
        raise NotImplementedError

    async def service_info(self, bookie: BookieId) -> ServiceInfo:
        """What a registered bookie publishes. Raises: BookieUnavailableError."""
        raise NotImplementedError

    async def known(self) -> list[BookieId]:
        """Every bookie that has a cookie, sorted."""
        raise NotImplementedError

    def watch(self, callback: Callable[[], None]) -> Watch:
        """Call back (on the loop) when a bookie may have come, gone or changed its mode; also on a slow timer (Z5)."""
        raise NotImplementedError
