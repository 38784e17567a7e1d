from __future__ import annotations

import pytest

from segments.errors import PositionFormatError
from segments.position import Position
from segments.protocol.resume_token import ResumeToken

TOKEN = ResumeToken("00112233445566778899aabbccddeeff", Position(3, 4, 5))


def test_a_token_names_the_stream_and_the_position() -> None:
    """SEG-121: a tail resumes from a token."""
    assert ResumeToken.decode(TOKEN.encode()) == TOKEN
    assert len(TOKEN.encode()) == 42


@pytest.mark.parametrize("raw", [b"", b"\1", TOKEN.encode()[:17], TOKEN.encode()[:-1], b"\2" + TOKEN.encode()[1:]])
def test_other_bytes_are_refused(raw: bytes) -> None:
    with pytest.raises(PositionFormatError):
        ResumeToken.decode(raw)
