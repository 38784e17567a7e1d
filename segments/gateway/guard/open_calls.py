"""A call that lasts, as gRPC's task serves it: how it ends when it may go on no more."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from segments.gateway.guard.grpc_call import GrpcCall


@dataclass(slots=True, eq=False)
class OpenCall:
    """A call that is being served by a task."""

    call: GrpcCall
    task: asyncio.Task[object] | None
    is_sending: bool = False
    """Whether a reply is on its way: then the call ends behind it, unless its client does not read."""
    _told: bool = False

    @property
    def ends_ms(self) -> int | None:
        """When its credential ends, in milliseconds since 1970."""
        return None if self.call.caller is None else self.call.caller.ends_ms

    def look(self) -> bool:
        """End the call if its credential or a right is gone: at first in good order, then by force. Returns whether it
        may go on."""
        error = self.call.look()
        if error is None:
            return True
        was_told, self._told = self._told, True
        if not was_told and self.call.on_end is not None:
            self.call.on_end(error)
        elif self.task is not None and (was_told or not self.is_sending):
            self.task.cancel()
        return False
