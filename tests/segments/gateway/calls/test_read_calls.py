"""What clients see of reads is in test_command and in tests/segments/remote; here are credits, message by message."""

from __future__ import annotations

from pathlib import Path

import pytest

from segments.errors import PositionFormatError, SeekFormatError
from segments.protocol import segments_pb2 as pb
from segments.protocol.resume_token import ResumeToken
from segments.remote import RemoteStream, connect
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
        call.cancel()
        other = ResumeToken("00" * 16, token.position).encode()
        call = namespace.channels.open("Read.Tail", str(gateway.address))
        await call.send(pb.TailRequest(open=pb.TailRequest.Open(stream="s", resume_token=other)))
        with pytest.raises(PositionFormatError, match="another stream"):
            await call.receive()


async def test_what_is_sent_beyond_the_credits_is_owed(tmp_path: Path) -> None:
    """Of records that are stored in less room than they take in a message, more were sent than were counted: who gave
    back what it had read was sent more and more."""
    async with served(tmp_path) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        stream = await namespace.create("s", config=CONFIG.patched({"compression": "zstd"}))
        async with stream.writer() as writer:
            await writer.append_batch([bytes(1000)] * 100)
        for entries in (False, True):
            call = namespace.channels.open("Read.Tail", str(gateway.address))
            opened = pb.TailRequest.Open(stream="s", progress_ms=50, entries=entries)
            await call.send(pb.TailRequest(open=opened, credits=pb.Credits(records=20, bytes=300)))
            while (reply := await call.receive()).HasField("progress"):
                pass
            if entries:
                (slice_,) = reply.entries.slices
                assert (slice_.first, slice_.end) == (0, 100), "an entry that has begun is sent up to its end"
                await call.send(pb.TailRequest(credits=pb.Credits(records=80, bytes=10_000)))
            else:
                count = len(reply.batch.records)
                assert 1 < count <= 20
                await call.send(pb.TailRequest(credits=pb.Credits(records=100, bytes=1000 * count - 300)))
            assert [(await call.receive()).WhichOneof("reply") for _ in range(2)] == ["progress"] * 2, "it is owed"
            await call.send(pb.TailRequest(credits=pb.Credits(records=1, bytes=10_000)))
            await writer_appends(stream)
            while (reply := await call.receive()).HasField("progress"):
                pass
            assert reply.HasField("entries" if entries else "batch")
            call.cancel()


async def writer_appends(stream: RemoteStream) -> None:
    async with stream.writer() as writer:
        await writer.append(b"more")


async def test_a_bounded_read_goes_on_where_it_ended_and_not_where_its_reader_had_looked(tmp_path: Path) -> None:
    async with served(tmp_path) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        stream = await namespace.create("s", config=CONFIG)
        async with stream.writer() as writer:
            at = [(await writer.append(b"%d" % number)).position for number in range(5)]
        for entries in (False, True):
            request = pb.ReadRequest(stream="s", stop=pb.Seek(seq_no=2), entries=entries)
            replies = [each async for each in namespace.channels.stream("Read.Read", request)]
            assert replies[-1].HasField("end_of_stream")
            for reply in replies[-2:]:
                assert ResumeToken.decode(reply.resume_token).position == at[1].next
