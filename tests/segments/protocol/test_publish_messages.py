from __future__ import annotations

import pytest

from segments.chain import SegmentContents
from segments.protocol.publish_messages import (
    get_key,
    get_published,
    get_rows,
    put_key,
    put_published,
    put_rows,
)
from segments.publish import BatchKey, PublishedBatch, StagedLedger, StagedRows

CONTENTS = SegmentContents(3, 99, 4, (3, 0), None, None, 10, 20, 5, 6, 4)


@pytest.mark.parametrize(
    "rows",
    [
        StagedRows("s", "id", 2, None, (b"x", b"y")),
        StagedRows("s", "id", 3, StagedLedger(0, CONTENTS)),
        StagedRows("s", "id", 0),
    ],
)
def test_rows_come_as_they_were(rows: StagedRows) -> None:
    assert get_rows(put_rows(rows)) == rows


@pytest.mark.parametrize("key", [BatchKey("a", "q", 7), BatchKey("a", "", 0, 0, "run")])
def test_a_key_comes_as_it_was(key: BatchKey) -> None:
    assert get_key(put_key(key)) == key


def test_an_answer_comes_as_it_was() -> None:
    done = PublishedBatch(7, 3, 40, already_there=True)
    assert get_published(put_published(done)) == done
