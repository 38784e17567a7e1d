from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from segments.errors import CursorConflictError, CursorExistsError, CursorNotFoundError
from segments.remote import connect
from segments.rpc import segments_pb2 as pb
from segments.rpc.messages import get_position, put_position
from tests.segments.gateway.clusters import CONFIG, served


async def test_a_cursor_is_made_moved_looked_at_and_deleted_through_a_gateway(tmp_path: Path) -> None:
    async with served(tmp_path) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        stream = await namespace.create("s", config=CONFIG)
        async with stream.writer() as writer:
            at = [(await writer.append(b"%d" % number)).position for number in range(5)]
        call, stream_call = namespace.channels.call, namespace.channels.stream
        named: dict[str, Any] = {"stream": "s", "name": "c"}
        made = await call("Cursors.Create", pb.CreateCursorRequest(**named))
        assert get_position(made.position) == at[0]
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
