"""One call: who sent it, what he may do, and why it has to end. It knows no gRPC."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from bookkeeper.access import Resource
from bookkeeper.gateways.authentication import UnauthenticatedError
from bookkeeper.gateways.caller import Caller, stream_resource
from bookkeeper.gateways.permissions import CallerRights, Denial, Needs
from segments.errors import StreamAccessError, StreamOverloadedError
from segments.gateway.budget.call_bytes import CallBytes

WAIT_S: Final = 1.0
"""Seconds after which a call that waits for its caller's rates checks them again: the policy may have changed."""

WAIT_MIN_S: Final = 0.001
"""The shortest wait, so that one which rounding has left ends."""

NO_LONGER: str = "the credentials of this call are no longer valid"


class CallEndedError(StreamAccessError):
    """A call ends because its credential, or a right that it used, is gone."""

    def __init__(self, message: str, *, why: str, stream: str | None = None) -> None:
        """``why`` is for the audit log."""
        super().__init__(message, stream=stream)
        self.why = why


@dataclass(slots=True, eq=False)
class GrpcCall:
    """One call."""

    caller: Caller | None
    """Who sent it; None if nobody is asked."""
    again: Callable[[], Caller | None] | None = None
    """Who its credentials show now. Raises UnauthenticatedError: nobody any more."""
    bytes: CallBytes | None = None
    """What it holds of the gateway's budget; None if nobody counts."""
    permissions: CallerRights = field(default_factory=CallerRights)
    on_end: Callable[[StreamAccessError], None] | None = None
    """Ends the call in good order, for a call that can answer first what it has begun."""
    ended: CallEndedError | None = None
    """Why it has to end."""
    stop: Callable[[], object] | None = None
    """Has the call end that has to; None for one that is answered at once."""
    _used: dict[tuple[Needs, Resource], None] = field(default_factory=dict)

    def release_oldest(self) -> None:
        """Give back the bytes of the oldest request that is not answered."""
        if self.bytes is not None:
            self.bytes.release_oldest()

    def sees(self, stream: str) -> bool:
        """Whether the caller may know that there is this stream."""
        return self.permissions.sees(self.caller, stream_resource(stream))

    def require(self, stream: str, needs: Needs) -> None:
        """Check that the caller has these rights on a stream; empty: on all streams. While the call lasts he has to
        keep them.

        Raises:
            StreamAccessError: he has not.
        """
        on = stream_resource(stream)
        denial = self.permissions.denial(self.caller, needs, on)
        if denial is not None:
            raise StreamAccessError(_text(denial), stream=stream or None)
        self._used[needs, on] = None

    def may(self, stream: str, needs: Needs) -> bool:
        """Whether the caller has these rights on a stream. Nobody is told of this."""
        return self.permissions.has(self.caller, needs, stream_resource(stream))

    def may_use_all(self, needs: Needs) -> bool:
        """Whether the caller has these rights on all streams. Nobody is told of this."""
        return self.permissions.has(self.caller, needs, stream_resource(""))

    def end(self, error: CallEndedError) -> None:
        """End the call for this reason."""
        self.ended = self.ended or error
        if self.stop is not None:
            self.stop()

    def charge(self, records: int, size: int) -> StreamOverloadedError | None:
        """Count what is appended by the caller's own rates; else why not, and when it may come again."""
        refusal = self.permissions.charge(self.caller, records, size)
        if refusal is None:
            return None
        error = StreamOverloadedError(f"{refusal}; nothing was appended")
        error.after_s = refusal.after_s
        return error

    async def charge_in_time(self, records: int, size: int) -> None:
        """Wait until the caller's own rates admit what is appended, and count it.

        Raises:
            StreamOverloadedError: waiting does not help. StreamAccessError: the call has to end meanwhile.
        """
        while (slower := self.charge(records, size)) is not None:
            if self.ended is not None or slower.after_s is None:
                raise self.ended or slower
            await asyncio.sleep(min(max(slower.after_s, WAIT_MIN_S), WAIT_S))
            if (ended := self.recheck()) is not None:
                raise ended

    def recheck(self) -> CallEndedError | None:
        """Check the call's credential and rights again. Returns why the call has to end; None if it may continue."""
        if self.ended is not None:
            return self.ended
        try:
            caller = self.caller if self.again is None else self.again()
        except UnauthenticatedError as error:
            self.ended = CallEndedError(NO_LONGER, why=error.why)
            return self.ended
        for needs, on in self._used:
            denial = self.permissions.denial(caller, needs, on)
            if denial is not None:
                self.ended = CallEndedError(_text(denial), why=f"taken away: {denial.reason}", stream=on.name or None)
                return self.ended
        self.caller = caller
        return None


def _text(denial: Denial) -> str:
    if not denial.on.name:
        return f"{denial.who} may not look at all streams: {denial.reason}; name one stream"
    return f"{denial.who} may not use stream {denial.on.name} (no right to {denial.right}): {denial.reason}"
