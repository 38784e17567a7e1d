"""What the commands share: settings, places, errors in a line."""

from __future__ import annotations

import click
import pytest

from segments.commands.shared import Place, in_a_line, told
from segments.errors import StreamNotReadyError, StreamSealedError, StreamUnavailableError
from segments.position import EARLIEST, LATEST, Position
from segments.seek import AtSeqNo


def test_places() -> None:
    assert Place().convert("seq:7", None, None) == AtSeqNo(7)
    assert Place().convert(AtSeqNo(7), None, None) == AtSeqNo(7)
    with pytest.raises(click.BadParameter, match="is no place in a stream"):
        Place().convert("here", None, None)
    assert [told(position) for position in (EARLIEST, LATEST, Position(2, 3, 4), None)] == [
        "earliest",
        "latest",
        "2:3:4",
        None,
    ]


def test_errors_say_whether_to_try_again_and_whether_it_was_done() -> None:
    assert in_a_line(StreamSealedError("it is sealed")) == "it is sealed"
    assert in_a_line(StreamNotReadyError("not yet")) == "not yet (trying again may help)"
    error = StreamUnavailableError("no answer")
    error.add_note("3 records before it are durable")
    assert in_a_line(error) == (
        "no answer (3 records before it are durable; it may have been done; trying again may help)"
    )
