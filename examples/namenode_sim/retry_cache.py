"""Which requests were done, so that one that is repeated after a fail-over is not done twice. A machine.

HDFS's edits carry the id of the client and the number of its call. Whoever replays them knows the requests as well as
the name node that did them. The table is bounded: the oldest request is forgotten first.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

KEPT: Final = 100_000
"""The most requests that are remembered."""


class RetryCache:
    """(Client, call) -> the id of the edit that did it."""

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._done: OrderedDict[tuple[bytes, int], int] = OrderedDict()
        """Ordered by links: a plain dict walks over all that was forgotten to find its oldest item."""

    def note(self, client_id: bytes, call_id: int, txid: int) -> None:
        """The edit ``txid`` did this request."""
        self._done[client_id, call_id] = txid
        if len(self._done) > self._kept:
            self._done.popitem(last=False)

    def done(self, client_id: bytes, call_id: int) -> int | None:
        """The id of the edit that did this request; None: it was not done, or is forgotten."""
        return self._done.get((client_id, call_id))

    def items(self) -> list[tuple[bytes, int, int]]:
        """(Client, call, id of the edit), oldest first."""
        return [(client_id, call_id, txid) for (client_id, call_id), txid in self._done.items()]

    def __len__(self) -> int:
        return len(self._done)
