from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from segments.errors import SeekFormatError
from segments.position import EARLIEST, LATEST, Position
from segments.position_format import encode_position
from segments.seek import Ago, AtCursor, AtSeqNo, AtTime, AtTxId, Seek, parse_seek

FORMS: dict[str, Seek] = {
    "earliest": EARLIEST,
    "latest": LATEST,
    "3:4:5": Position(3, 4, 5),
    encode_position(Position(3, 4, 5)): Position(3, 4, 5),
    "txid:12": AtTxId(12),
    "seq:0": AtSeqNo(0),
    "time:2026-11-23T04:00:00Z": AtTime(datetime(2026, 11, 23, 4, tzinfo=UTC)),
    "time:2026-11-23": AtTime(datetime(2026, 11, 23, tzinfo=UTC)),
    "event:2026-11-23T05:00:00+01:00": AtTime(datetime(2026, 11, 23, 4, tzinfo=UTC), event=True),
    "-90s": Ago(timedelta(seconds=90)),
    "-1.5h": Ago(timedelta(minutes=90)),
    "-250ms": Ago(timedelta(milliseconds=250)),
    "cursor:billing/eu": AtCursor("billing/eu"),
}


@pytest.mark.parametrize("text", FORMS)
def test_what_people_write_is_a_place(text: str) -> None:
    assert parse_seek(text) == FORMS[text]


@pytest.mark.parametrize(
    "text", ["", "first", "txid:", "txid:x", "seq:-1", "time:yesterday", "-5", "-5w", "cursor:", "1:2", "AQAA", "-9e9d"]
)
def test_other_text_is_refused_with_the_forms_that_can_be(text: str) -> None:
    with pytest.raises(SeekFormatError, match="earliest, latest, a position"):
        parse_seek(text)
