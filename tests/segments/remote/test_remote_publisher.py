"""What a publisher behind gateways refuses by itself, and which calls it repeats; test_publish_calls has the rest."""

from __future__ import annotations

from typing import Any, cast

import pytest

from segments.errors import BatchRefusedError
from segments.protocol import segments_pb2 as pb
from segments.publish import BatchKey, PublishedBatch, StagedRows
from segments.remote import remote_stream
from segments.remote.remote_stream import RemotePublisher


class Channels:
    def __init__(self) -> None:
        self.asked: list[tuple[str, str, bool]] = []

    async def call(self, key: str, request: Any, *, stream: str, repeat: bool) -> Any:
        self.asked.append((key, stream, repeat))
        return pb.PublishReply(number=request.key.batch, records=2, first_seq_no=9)


async def test_a_call_with_a_key_is_repeated_and_one_without_is_not() -> None:
    channels = Channels()
    publisher = RemotePublisher(cast(Any, channels), "t")
    assert await publisher.publish(BatchKey("a", "q", 3), []) == PublishedBatch(3, 2, 9, already_there=False)
    await publisher.publish(None, [])
    assert channels.asked == [("Append.Publish", "t", True), ("Append.Publish", "t", False)]
    assert await publisher.clean("a") == []
    await publisher.close()


async def test_more_rows_than_a_message_takes_are_refused_before_they_are_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_stream, "ENTRIES_BYTES", 10)
    channels = Channels()
    rows = [StagedRows("s", "id", 1, entries=(bytes(6),))] * 2
    with pytest.raises(BatchRefusedError, match="has 12 bytes of rows that are in no ledger, and a gateway takes 10"):
        await RemotePublisher(cast(Any, channels), "t").publish(None, rows)
    assert channels.asked == []
