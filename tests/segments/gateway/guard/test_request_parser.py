from __future__ import annotations

import pytest

from segments.errors import StreamConfigError
from segments.gateway.guard.request_parser import RequestParser
from segments.protocol import segments_pb2 as pb
from segments.protocol.methods import METHODS


def test_a_request_is_counted_and_parsed() -> None:
    parser = RequestParser(METHODS["Append.Append"], 2)
    request = pb.AppendRequest(stream="s", values=[b"a", b"b"])
    raw = request.SerializeToString()
    assert (parser.elements(raw), parser.parse(raw)) == (2, request)
    with pytest.raises(StreamConfigError, match="a request may have 2 records"):
        parser.elements(raw + b"\x1a\x00")
    with pytest.raises(StreamConfigError, match="its bytes are no AppendRequest"):
        parser.parse(b"\x12")


def test_only_the_requests_of_a_streaming_append_have_a_reply_each() -> None:
    assert [key for key, method in METHODS.items() if RequestParser(method, 1).answers_each] == ["Append.AppendStream"]
