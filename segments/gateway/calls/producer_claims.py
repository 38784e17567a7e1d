"""The owners of one stream's producers, as one gateway knows them.

Whoever uses a name first through a gateway that knows him has it, until it is handed over: with the numbers of somebody
else's producer one could make that one's next records count as there already.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final

from bookkeeper.client.tasks import Tasks
from bookkeeper.errors import BookKeeperError
from bookkeeper.seams import Clock
from segments.error_translation import worded
from segments.errors import StreamAccessError, StreamError
from segments.gateway.guard.grpc_call import GrpcCall
from segments.gateway.guard.request_rights import OVERRULE
from segments.write.producer_owners import ProducerOwners

OWNER_REREAD_S: Final = 5.0
"""Seconds after which an owner is read again; appends continue meanwhile."""
KNOWN_MAX: Final = 10_000
"""Names that are remembered at once."""


class ProducerClaims:
    """Checked before records of a producer are accepted. Runs on the loop's thread."""

    def __init__(self, owners: ProducerOwners, clock: Clock, tasks: Tasks) -> None:
        self._owners, self._clock, self._tasks = owners, clock, tasks
        self._known: dict[str, tuple[str, float]] = {}
        """Whose a producer is, and when that was read."""
        self._stored: int | None = None
        """How many are somebody's, about; None: nobody has counted."""

    def allows(self, producer: str, call: GrpcCall) -> bool:
        """Whether the producer is known to be the caller's. Does not wait."""
        known = self._known.get(producer)
        if known is None or call.caller is None or known[0] != call.caller.name:
            return False
        now = self._clock.monotonic()
        if now - known[1] >= OWNER_REREAD_S:
            self._note(producer, known[0], now)
            self._tasks.start(self._refresh(producer), f"look whose producer {producer} is")
        return True

    async def require(
        self, producer: str, stream: str, call: GrpcCall, is_needed: Callable[[str], bool], most: int
    ) -> None:
        """Check that a caller may use a producer; one that is nobody's becomes his.

        Args:
            is_needed: whether the stream knows a producer of a name. Whose the others are is forgotten now and then.
            most: so many the stream remembers.

        Raises:
            StreamAccessError: it is somebody else's. StreamMetadataError, StreamCorruptError: nobody can tell.
        """
        if call.caller is None and call.may(stream, OVERRULE):
            return  # nobody is asked who he is
        who = "" if call.caller is None else call.caller.name
        with worded(f"looking whose producer {producer} of stream {stream} is", stream):
            owner = await self._owner(producer, who, is_needed, most)
        if owner and owner != who:
            _overrule(call, stream, producer, owner)

    async def _owner(self, producer: str, who: str, is_needed: Callable[[str], bool], most: int) -> str:
        owner = await self._owners.owner_of(producer)
        if not owner and who:
            if self._stored is None:
                self._stored = await self._owners.count()
            if self._stored >= 2 * most:
                self._stored = await self._owners.tidy(lambda name: name in self._known or is_needed(name))
            owner = await self._owners.claim(producer, who)
            self._stored += 1
        self._note(producer, owner, self._clock.monotonic())
        return owner

    async def _refresh(self, producer: str) -> None:
        """Read the owner again. While the store is away, the last one read stays valid."""
        with suppress(BookKeeperError, StreamError):
            self._note(producer, await self._owners.owner_of(producer), self._clock.monotonic())

    def _note(self, producer: str, owner: str, now: float) -> None:
        if len(self._known) >= KNOWN_MAX:
            self._known.clear()
        self._known[producer] = owner, now


def _overrule(call: GrpcCall, stream: str, producer: str, owner: str) -> None:
    """Check the right to administer, which allows the use of others' producers. Raises: StreamAccessError."""
    try:
        call.require(stream, OVERRULE)
    except StreamAccessError as error:
        who = "NAME" if call.caller is None else call.caller.name
        raise StreamAccessError(
            f"{error}. Producer {producer} of this stream belongs to {owner}, and only he, or who may administer the "
            "stream, appends under its name: use a name of your own, or have it handed over "
            f"(bk stream producer hand-over {stream} {producer} {who})",
            stream=stream,
        ) from error
