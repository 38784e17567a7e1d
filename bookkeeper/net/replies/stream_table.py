"""The open streams of adds on one connection, and which replies belong to which of them.

A stream is known by its stream id (v3) or by its ledger (v2, whose replies carry no transaction id). Nothing is kept
per entry: replies come as runs, and runs of one stream that follow each other are delivered together.
"""

from __future__ import annotations

from itertools import repeat
from typing import Final

from bookkeeper import wire
from bookkeeper.codec import STREAM_SHIFT, ReplyRun
from bookkeeper.net.replies.deliveries import AddRun, AnswerStream, Delivery, StreamLost, StreamReplies, StreamSink
from bookkeeper.wire import Dialect, Status

STATUS: Final[dict[int, Status]] = {int(status): status for status in Status}
"""Looked up for every run of replies: three times as fast as calling the enum."""

_ENTRY_MASK: Final = (1 << STREAM_SHIFT) - 1


class StreamTable:
    """The streams of one connection."""

    __slots__ = ("_by_ledger", "_streams")

    def __init__(self, dialect: Dialect) -> None:
        self._by_ledger = dialect is Dialect.V2
        self._streams: dict[int, StreamSink] = {}

    def _key(self, stream: StreamSink) -> int:
        return stream.ledger_id if self._by_ledger else stream.stream_id

    def open(self, stream: StreamSink) -> None:
        """Deliver replies to ``stream`` from now on.

        Raises:
            ValueError: the stream (v3) or the ledger (v2) has a stream here already.
        """
        key = self._key(stream)
        if key in self._streams:
            raise ValueError(f"this connection already has a stream {stream.stream_id} for ledger {stream.ledger_id}")
        self._streams[key] = stream

    def close(self, stream: StreamSink) -> None:
        """Deliver nothing to ``stream`` any more. Idempotent."""
        key = self._key(stream)
        if self._streams.get(key) is stream:
            del self._streams[key]

    def on_runs(self, runs: list[ReplyRun]) -> list[StreamReplies]:
        """The replies of one chunk, by stream. Those of closed streams are dropped."""
        if len(runs) > 2 and (alike := self._alike(runs)) is not None:
            return alike
        found: list[StreamReplies] = []
        streams, field = self._streams, 1 if self._by_ledger else 0
        current: StreamSink | None = None
        collected: list[AddRun] = []
        for run in runs:
            stream = streams.get(run[field])
            if stream is not current:
                current, collected = stream, []
                if stream is not None:
                    found.append((stream, collected))
            collected.append((run[2], run[3], STATUS[run[4]]))
        return found

    def _alike(self, runs: list[ReplyRun]) -> list[StreamReplies] | None:
        """The same for runs of one stream with one status, as columns: a bookie of a striped ledger answers with a run
        for every few entries. None: they are not all alike."""
        streams, ledgers, firsts, counts, statuses = zip(*runs, strict=True)
        keys = ledgers if self._by_ledger else streams
        if keys.count(keys[0]) != len(keys) or statuses.count(statuses[0]) != len(statuses):
            return None
        stream = self._streams.get(keys[0])
        return [(stream, list(zip(firsts, counts, repeat(STATUS[statuses[0]]))))] if stream is not None else []

    def on_single(self, header: wire.RequestHeader, reply: wire.Reply) -> list[Delivery]:
        """Take a reply that the codec does not know: with other fields, in another order, or an error without ids.

        Only a reply that names its ledger and entry says that the entry is stored (B13).
        """
        entry_id = header.txn_id & _ENTRY_MASK
        if isinstance(reply, wire.AddReply):
            stream = self._streams.get(reply.ledger_id if self._by_ledger else header.txn_id >> STREAM_SHIFT)
            entry_id = int(reply.entry_id) if self._by_ledger else entry_id
            named = stream is not None and (reply.ledger_id, reply.entry_id) == (stream.ledger_id, entry_id)
        else:
            stream = None if self._by_ledger else self._streams.get(header.txn_id >> STREAM_SHIFT)
            named = False
        if stream is None or (reply.status is Status.OK and not named):
            return []
        return [AnswerStream(stream, [(entry_id, 1, reply.status)])]

    def on_lost(self) -> list[Delivery]:
        """The connection has ended: tell every stream, once."""
        streams, self._streams = self._streams, {}
        return [StreamLost(stream) for stream in streams.values()]

    def validate_state(self) -> None:
        """Check what must hold between any two calls. For tests."""
        for key, stream in self._streams.items():
            assert key == self._key(stream), "a stream is kept under another one's name"
