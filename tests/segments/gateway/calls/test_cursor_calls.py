from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bookkeeper.access import Grant, Mode, Policy, Resource, Right, Subject
from bookkeeper.gateways.caller import Caller
from bookkeeper.gateways.permissions import CallerRights
from segments.errors import (
    CursorConflictError,
    CursorExistsError,
    CursorNotFoundError,
    PositionFormatError,
    StreamAccessError,
    StreamConfigError,
    StreamCorruptError,
)
from segments.gateway.calls.cursor_calls import CursorCalls
from segments.gateway.guard.grpc_call import GrpcCall
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


STREAM = Resource.parse("streams:s")
READERS = Policy(
    Mode.ENFORCE,
    (
        Grant(Subject.parse("audit"), frozenset({Right.READ}), STREAM),
        Grant(Subject.parse("etl"), frozenset({Right.READ}), STREAM),
        Grant(Subject.parse("boss"), frozenset({Right.READ, Right.ADMINISTER}), STREAM),
    ),
)
NAMED: dict[str, Any] = {"stream": "s", "name": "c"}


def by(name: str) -> GrpcCall:
    """A call by somebody who has shown this name."""
    return GrpcCall(Caller(name), permissions=CallerRights(lambda: READERS))


def moves(calls: CursorCalls, who: str, claim: pb.CursorClaim | None = None) -> list[Any]:
    """Everything that moves or takes a cursor, as somebody asks for it."""
    seek, call = pb.Seek(latest=pb.Empty()), by(who)
    return [
        calls.claim(pb.ClaimCursorRequest(**NAMED), call),
        calls.claim(pb.ClaimCursorRequest(**NAMED, must_exist=True), call),
        calls.release(pb.ReleaseCursorRequest(**NAMED, claim=claim), call),
        calls.advance(pb.AdvanceCursorRequest(**NAMED, claim=claim, to=pb.Position(segment=1)), call),
        calls.ack(pb.AckRequest(**NAMED, claim=claim), call),
        calls.skip(pb.SkipCursorRequest(**NAMED, claim=claim, count=1), call),
        calls.reset(pb.ResetCursorRequest(**NAMED, claim=claim, seek=seek, force=True), call),
        calls.restore(pb.RestoreCursorRequest(**NAMED, claim=claim, version=1, force=True), call),
        calls.set_properties(pb.SetPropertiesRequest(**NAMED, claim=claim, set={"a": "b"}, force=True), call),
        calls.delete(pb.DeleteCursorRequest(**NAMED), call),
    ]


@pytest.mark.rule("X12")
@pytest.mark.parametrize("made", ["created", "claimed"])
async def test_a_cursor_is_moved_and_deleted_by_who_has_made_it_or_by_an_administrator(
    made: str, tmp_path: Path
) -> None:
    """Cause: whoever might read a stream could move or delete the cursor of an audit, and retention then deleted what
    it kept."""
    async with served(tmp_path) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        stream = await namespace.create("s", config=CONFIG)
        async with stream.writer() as writer:
            for number in range(5):
                await writer.append(b"%d" % number)
        assert gateway._table is not None
        calls = CursorCalls(gateway._table)
        if made == "created":
            info = await calls.create(pb.CreateCursorRequest(**NAMED), by("audit"))
        else:
            info = await calls.claim(pb.ClaimCursorRequest(**NAMED), by("audit"))
        assert info.by == "audit"
        before = await stream.cursor("c").state()
        for claim in (None, pb.CursorClaim(epoch=before.epoch, nonce=info.claim.nonce)):  # also with a stolen claim
            for attempt in moves(calls, "etl", claim):
                with pytest.raises((StreamAccessError, CursorConflictError), match=r"administer|taken over"):
                    await attempt
        assert await stream.cursor("c").state() == before
        assert (await calls.get(pb.GetCursorRequest(**NAMED), by("etl"))).by == "audit", "he may look"
        for who in ("audit", "boss"):
            held = (await calls.claim(pb.ClaimCursorRequest(**NAMED), by(who))).claim
            await calls.skip(pb.SkipCursorRequest(**NAMED, claim=held, count=1), by(who))
            await calls.release(pb.ReleaseCursorRequest(**NAMED, claim=held), by(who))
        moved = await calls.reset(pb.ResetCursorRequest(**NAMED, seek=pb.Seek(latest=pb.Empty())), by("audit"))
        assert (moved.seq_no, moved.by) == (5, "audit"), "it stays his, whoever has moved it"
        with pytest.raises(StreamConfigError, match="says whose the cursor is"):
            await calls.set_properties(pb.SetPropertiesRequest(**NAMED, remove=["bookkeeper.by"]), by("audit"))
        await calls.delete(pb.DeleteCursorRequest(**NAMED), by("boss"))
        with pytest.raises(CursorNotFoundError):
            await calls.delete(pb.DeleteCursorRequest(**NAMED), by("etl"))


@pytest.mark.rule("X12")
async def test_a_cursor_that_is_nobodys_is_moved_by_every_reader_and_a_damaged_one_by_an_administrator(
    tmp_path: Path,
) -> None:
    """Nobody's are those of earlier versions, and those that were made without a gateway, or where it asks nobody."""
    async with served(tmp_path) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        stream = await namespace.create("s", config=CONFIG)
        assert await stream.cursor("c").make()
        assert gateway._table is not None
        calls = CursorCalls(gateway._table)
        held = (await calls.claim(pb.ClaimCursorRequest(**NAMED), by("etl"))).claim
        assert (await calls.release(pb.ReleaseCursorRequest(**NAMED, claim=held), by("etl"))).by == ""
        await calls.delete(pb.DeleteCursorRequest(**NAMED), by("audit"))
        await calls.create(pb.CreateCursorRequest(**NAMED), by("etl"))
        cursor = (await gateway._table.get("s")).stream.cursor("c")
        await cursor.reading.source.client.metadata_store.store.set(cursor.path, b"damaged", None)
        reset = pb.ResetCursorRequest(**NAMED, seek=pb.Seek(earliest=pb.Empty()), force=True)
        for attempt in (calls.reset(reset, by("etl")), calls.delete(pb.DeleteCursorRequest(**NAMED), by("etl"))):
            with pytest.raises(StreamAccessError, match="administer"):
                await attempt
        with pytest.raises(StreamCorruptError):
            await cursor.state()
        assert (await calls.reset(reset, by("boss"))).by == "boss"
        await calls.delete(pb.DeleteCursorRequest(**NAMED), by("boss"))


async def test_who_uses_a_cursor_is_a_short_text_in_one_line(tmp_path: Path) -> None:
    """Cause: any text was kept in the cursor's node, so one reader could leave others no room in it, and it stands in
    messages to others."""
    async with served(tmp_path) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        await namespace.create("s", config=CONFIG)
        assert gateway._table is not None
        calls = CursorCalls(gateway._table)
        for owner in ("o" * 513, "\u00fc" * 257, "a\nb", "\x1b[2J"):
            with pytest.raises(StreamConfigError, match="printable"):
                await calls.claim(pb.ClaimCursorRequest(**NAMED, owner=owner), by("etl"))
        with pytest.raises(CursorNotFoundError):
            await calls.get(pb.GetCursorRequest(**NAMED), by("etl"))
        assert (await calls.claim(pb.ClaimCursorRequest(**NAMED, owner="o" * 512), by("etl"))).owner == "o" * 512
