"""Requests that last: each ends soon after its credential, or a right that it uses, is gone.

One timer looks at all of them, and has each look at itself only when something can have changed: the files of tokens
and certificates, the policy, or the time at which a credential ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

LOOK_S: Final = 1.0
"""Seconds between two looks."""


class LongRequest(Protocol):
    """A request that is being served."""

    @property
    def ends_ms(self) -> int | None:
        """When its credential ends, in milliseconds since 1970; None: by no time."""

    def recheck(self) -> bool:
        """Check whether it may go on, and end it if not. Returns whether it may; if not, it is checked again each time,
        until it has ended."""


class LongRequests:
    """The requests of one port that last. Runs on the loop's thread."""

    def __init__(self, state: Callable[[], object], now_ms: Callable[[], int]) -> None:
        """``state`` is another value whenever files or policy have changed."""
        self._state = state
        self._now_ms = now_ms
        self._requests: dict[LongRequest, object] = {}
        """Each with the state in which it was looked at; None: it has to end."""
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._requests)

    def begin(self, request: LongRequest) -> None:
        """Look at a request from now on. It was let in just now."""
        self._requests[request] = self._state()
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(LOOK_S, self._recheck)

    def end(self, request: LongRequest) -> None:
        """The request has ended. Idempotent."""
        self._requests.pop(request, None)
        if not self._requests and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _recheck(self) -> None:
        self._timer = None
        state, now_ms = self._state(), self._now_ms()
        for request, looked_in in list(self._requests.items()):
            ended = request.ends_ms is not None and request.ends_ms <= now_ms
            if looked_in != state or ended:
                may_go_on = request.recheck()
                if request in self._requests:
                    self._requests[request] = state if may_go_on else None
        if self._requests:
            self._timer = asyncio.get_running_loop().call_later(LOOK_S, self._recheck)
