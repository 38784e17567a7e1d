"""The flag DEFERRED_SYNC behind frames that were encoded without it."""

from __future__ import annotations

import pytest

from bookkeeper import runs, wire
from bookkeeper.ids import EntryId, LedgerId
from bookkeeper.runs import Dialect
from bookkeeper.wire import AddEntry

KEY = b"k" * 20


@pytest.mark.parametrize("ledger_id", [0, 4, 300, (1 << 63) - 1])
@pytest.mark.parametrize("first", [0, 126, 1 << 40])
def test_a_deferred_add_is_the_plain_one_with_the_flag_of_the_protocol(ledger_id: int, first: int) -> None:
    payloads = [b"x" * size for size in (0, 1, 34, 35, 36, 37, 38, 70, 120, 16_250, 16_320, 70_000)]
    plain, ends = runs.encode_adds(Dialect.V3, ledger_id, first, payloads, -1, 0, KEY, 3, b"", 7 << runs.STREAM_SHIFT)
    frames, moved = runs.defer_sync(plain, ends)
    begin = start = 0
    for index, (end, stop) in enumerate(zip(ends, moved, strict=True)):
        entry_id = first + index
        entry = plain[end - 36 - len(payloads[index]) : end]
        txn = 7 << runs.STREAM_SHIFT | entry_id & (1 << runs.STREAM_SHIFT) - 1
        request = AddEntry(LedgerId(ledger_id), EntryId(entry_id), KEY, entry, deferred_sync=True)
        assert frames[start:stop] == wire.encode_request(request, Dialect.V3, txn)
        begin, start = end, stop
    assert (begin, start) == (len(plain), len(frames))


def test_no_frames_stay_none() -> None:
    assert runs.defer_sync(b"", runs.encode_adds(Dialect.V3, 1, 0, [], -1, 0, KEY, 3)[1])[0] == b""
