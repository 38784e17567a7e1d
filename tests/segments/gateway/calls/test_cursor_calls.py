from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from segments.errors import CursorConflictError, CursorExistsError, CursorNotFoundError, PositionFormatError
from segments.position import LATEST
from segments.protocol import segments_pb2 as pb
from segments.protocol.messages import get_position, put_position
from segments.remote import connect
from tests.segments.gateway.clusters import CONFIG, served


async def test_a_cursor_is_made_moved_looked_at_and_deleted_through_a_gateway(tmp_path: Path) -> None:
    async with served(tmp_path) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        stream = await namespace.create("s", config=CONFIG)
        async with stream.writer() as writer:
            at = [(await writer.append(b"%d" % number)).position for number in range(5)]
        call, stream_call = namespace.channels.call, namespace.channels.stream
        named: dict[str, Any] = {"stream": "s", "name": "c"}
        made = await call("Cursors.Create", pb.CreateCursorRequest(**named))
        assert get_position(made.position) == at[0] and made.owner == ""
        assert not await stream.cursor("c").make()
        assert await stream.cursor("d", start=LATEST).make() and (await stream.cursor("d").state()).mark.seq_no == 5
        await stream.cursor("d").delete()
        with pytest.raises(CursorExistsError):
            await call("Cursors.Create", pb.CreateCursorRequest(**named))
        moved = await call("Cursors.Advance", pb.AdvanceCursorRequest(to=put_position(at[1]), **named))
        assert at[1] < get_position(moved.position) <= at[2]
        with pytest.raises(CursorConflictError):
            wrong = pb.AdvanceCursorRequest(to=put_position(at[3]), expected=put_position(at[0]), **named)
            await call("Cursors.Advance", wrong)
        await call("Cursors.Ack", pb.AckRequest(positions=[put_position(at[3])], **named))
        found = await call("Cursors.Get", pb.GetCursorRequest(**named))
        assert get_position(found.position) <= at[2]
        await call("Cursors.Ack", pb.AckRequest(positions=[put_position(at[2])], **named))
        found = await call("Cursors.Get", pb.GetCursorRequest(**named))
        assert get_position(found.position) > at[3]
        history = [each async for each in stream_call("Cursors.History", pb.CursorHistoryRequest(**named))]
        assert history[0].version == found.version
        back = await call("Cursors.Reset", pb.ResetCursorRequest(seek=pb.Seek(earliest=pb.Empty()), **named))
        assert get_position(back.position) == at[0]
        listed = [each.name async for each in stream_call("Cursors.List", pb.ListCursorsRequest(stream="s"))]
        assert listed == ["c"]
        await call("Cursors.Delete", pb.DeleteCursorRequest(**named))
        with pytest.raises(CursorNotFoundError):
            await call("Cursors.Get", pb.GetCursorRequest(**named))


@pytest.mark.parametrize(("owner", "shown"), [("me", "me"), ("", "a claim at a gateway")])
async def test_a_call_without_a_claim_moves_nothing_that_somebody_has_claimed(
    owner: str, shown: str, tmp_path: Path
) -> None:
    """Clients that were made before there were claims go on, and are kept apart from owners; also from those that gave
    no name, whose claims were taken for calls without one."""
    async with served(tmp_path) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        stream = await namespace.create("s", config=CONFIG)
        async with stream.writer() as writer:
            at = [(await writer.append(b"%d" % number)).position for number in range(5)]
        call = namespace.channels.call
        named: dict[str, Any] = {"stream": "s", "name": "c"}
        with pytest.raises(CursorNotFoundError):
            await call("Cursors.Claim", pb.ClaimCursorRequest(must_exist=True, **named))
        made = await call("Cursors.Claim", pb.ClaimCursorRequest(owner=owner, start=pb.Seek(seq_no=1), **named))
        assert (made.claim.epoch, made.epoch, made.owner, made.seq_no) == (1, 1, shown, 1) and made.claim.nonce
        step = pb.AdvanceCursorRequest(to=put_position(at[3]), **named)
        for key, refused in (
            ("Cursors.Advance", step),
            ("Cursors.Ack", pb.AckRequest(positions=[put_position(at[3])], **named)),
            ("Cursors.Reset", pb.ResetCursorRequest(seek=pb.Seek(earliest=pb.Empty()), **named)),
            ("Cursors.Restore", pb.RestoreCursorRequest(version=1, **named)),
            ("Cursors.Skip", pb.SkipCursorRequest(count=1, **named)),
            ("Cursors.SetProperties", pb.SetPropertiesRequest(set={"a": "b"}, **named)),
        ):
            with pytest.raises(CursorConflictError, match=f"in use by {shown}"):
                await call(key, refused)
        for wrong in (pb.CursorClaim(epoch=1, nonce="other"), pb.CursorClaim(epoch=2, nonce=made.claim.nonce)):
            with pytest.raises(CursorConflictError, match=f"taken over by {shown}"):
                await call("Cursors.Advance", pb.AdvanceCursorRequest(to=put_position(at[3]), claim=wrong, **named))
        numbered = pb.AdvanceCursorRequest(to=put_position(at[2]), seq_no=2, claim=made.claim, **named)
        assert (await call("Cursors.Advance", numbered)).seq_no == 3
        numbered.seq_no = -1
        with pytest.raises(PositionFormatError):
            await call("Cursors.Advance", numbered)
        assert not (await call("Cursors.Get", pb.GetCursorRequest(**named))).HasField("claim")
        for _ in range(2):  # the answer to the first one may be lost
            assert (await call("Cursors.Release", pb.ReleaseCursorRequest(claim=made.claim, **named))).owner == ""
        moved = await call("Cursors.Advance", step)
        assert (moved.seq_no, moved.epoch) == (4, 2)
        with pytest.raises(CursorConflictError, match="taken over"):
            await call("Cursors.Ack", pb.AckRequest(positions=[put_position(at[4])], claim=made.claim, **named))
        back = await call("Cursors.Restore", pb.RestoreCursorRequest(version=1, **named))
        assert (back.seq_no, back.owner, back.change) == (1, "", pb.CURSOR_CHANGE_RESTORED)
        skipped = await call("Cursors.Skip", pb.SkipCursorRequest(count=2, **named))
        assert skipped.seq_no == 3
        noted = await call("Cursors.SetProperties", pb.SetPropertiesRequest(set={"a": "b"}, **named))
        assert dict(noted.properties) == {"a": "b"}
