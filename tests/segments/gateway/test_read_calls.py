"""What clients see of reads is in test_command and in tests/segments/remote; here are credits, message by message."""

from __future__ import annotations

from pathlib import Path

import pytest

from segments.errors import PositionFormatError, SeekFormatError
from segments.remote import connect
from segments.rpc import segments_pb2 as pb
from segments.rpc.resume_token import ResumeToken
from tests.segments.gateway.clusters import CONFIG, served


async def test_a_tail_sends_what_it_has_credits_for_and_tells_where_it_stands(tmp_path: Path) -> None:
    """SEG-121: a tail honours flow control and resumes from a token."""
    async with served(tmp_path) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        stream = await namespace.create("s", config=CONFIG)
        async with stream.writer() as writer:
            await writer.append_batch([b"%d" % number for number in range(10)])
        call = namespace.channels.open("Read.Tail", str(gateway.address))
        opened = pb.TailRequest.Open(stream="s", progress_ms=50)
        await call.send(pb.TailRequest(open=opened))
        assert (await call.receive()).HasField("progress")
        await call.send(pb.TailRequest(credits=pb.Credits(records=4, bytes=1000)))
        while not (reply := await call.receive()).HasField("batch"):
            pass
        assert [each.record.value for each in reply.batch.records] == [b"0", b"1", b"2", b"3"]
        assert (await call.receive()).HasField("progress")
        token = ResumeToken.decode(reply.resume_token)
        assert (token.stream_id, token.position.slot) == (stream.id, 4)
        await call.send(pb.TailRequest(credits=pb.Credits(records=-1, bytes=0)))
        with pytest.raises(SeekFormatError, match="never taken back"):
            while await call.receive() is not None:
                pass
        other = ResumeToken("00" * 16, token.position).encode()
        call = namespace.channels.open("Read.Tail", str(gateway.address))
        await call.send(pb.TailRequest(open=pb.TailRequest.Open(stream="s", resume_token=other)))
        with pytest.raises(PositionFormatError, match="another stream"):
            await call.receive()
